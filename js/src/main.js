// The bundle's one export: open the panel that a model is.
import { AuditPanel } from "./audit_panel.js";
import { CellFix } from "./cell_fix.js";
import { CellOrder } from "./cell_order.js";
import { makeRoom } from "./cell_page.js";
import { DecidePanel } from "./decide_panel.js";
import { button, clear, h } from "./dom.js";
import { frame, guarded } from "./frame.js";
import { Heal } from "./heal_panel.js";
import { HealTimeline } from "./heal_timeline.js";
import { Link } from "./link.js";
import { LogBrowser } from "./log_browser.js";
import { countView, putCard, Tab } from "./page.js";
import { PatchEditor } from "./patch_editor.js";
import { TracebackView } from "./traceback_view.js";

const KINDS = {
  AuditPanel: (link) => new AuditPanel({ link }),
  CellFix: (link, spec, memory, carded, model) => new CellFix({ link, model }),
  CellOrder: (link) => new CellOrder({ link }),
  DecidePanel: (link, spec, _, carded) => new DecidePanel({ link, carded }),
  HealPanel: (link, spec, _, carded) => new Heal({ link, tool: spec.tool, persona: spec.persona, logId: spec.log_id, carded }),
  LogBrowser: (link, spec, memory) => new LogBrowser({ link, filters: spec.filters, memory }),
  PatchEditor: (link, spec, memory) => new PatchEditor({ link, tool: spec.tool, persona: spec.persona, logId: spec.log_id, memory: memory[`draft:${spec.tool}:${spec.persona}`] ?? null }),
  TracebackView: (link, spec, memory) => new TracebackView({ link, logId: spec.log_id, memory }),
};

/** What a model that holds its data itself opens with: it needs no kernel to be read, and asks it only for what was kept. */
function whole(model, link) {
  const story = model.get("story");
  if (!story?.steps) return null;
  return new HealTimeline({ link, story, kept: link.ask("hello").then(({ memory }) => memory) });
}

/** Panels of a failure, which stand for the card above them. */
const OF_FAILURES = new Set(["CellFix", "TracebackView"]);

const GONE = "The kernel does not answer: it was restarted or has ended. What stands here is how it was; run the cell again for a new panel.";

/** Draw the panel; say on top of it when its kernel is gone, and disable what would ask it, also what is drawn later. */
function showLife(link, root, panel) {
  const place = h("div", { role: "status" });
  const controls = h("fieldset", { class: "hk-life", role: "presentation" }, panel.element);
  root.prepend(place);
  root.append(controls);
  link.hear("live", (live) => {
    clear(place, live ? null : h("p", { class: "hk-note" }, panel.gone ?? GONE));
    controls.disabled = !live && !panel.alone; // a timeline can be read without a kernel
  });
}

/** The tab of a panel that is docked, with the button that closes it: JupyterLab's sidebar has none. */
function dock(model, link, root, docked, onclose) {
  const tab = new Tab(model, docked, onclose);
  link.hear("live", (live) => tab.live(live));
  guarded(root, () => tab.arrive(root, (id) => docked.new && guarded(root, () => link.ask("front", { tab: id }))));
  root.classList.add("hk-docked");
  root.prepend(button("✕", () => tab.close(), { class: "hk-quiet hk-close", "aria-label": "close this panel", title: "Close; a healing that goes on here ends" }));
  return tab;
}

/** Draw the panel in `el`; returns what takes it away again. */
export async function open(model, el) {
  const link = new Link(model);
  const around = frame(el, "healkit");
  const left = [];
  let panel;
  await guarded(around.root, async () => {
    panel = whole(model, link);
    let tab;
    if (!panel) {
      const { kind, spec, memory, panel: id, docked } = await link.ask("hello");
      const off = countView(model, id, el);
      let byHand = false;
      link.hear("who", () => link.ask("here").catch(() => {}));
      panel = KINDS[kind](link, spec, memory, (data) => putCard(model, id, data), model);
      if (OF_FAILURES.has(kind) && !docked) left.push(makeRoom(el));
      if (docked) tab = dock(model, link, around.root, docked, () => (byHand = true));
      left.push(() => off({ byHand, live: link.live }), () => tab?.forget());
    }
    showLife(link, around.root, panel);
    await panel.start();
  });
  return () => {
    panel?.close?.();
    around.close();
    link.close();
    for (const end of left) end();
  };
}
