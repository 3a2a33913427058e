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
import { Notebook } from "./notebook.js";
import { countView, dock, lab, offerFix, putCard } from "./page.js";
import { PatchEditor } from "./patch_editor.js";
import { TracebackView } from "./traceback_view.js";

const KINDS = {
  AuditPanel: ({ link }) => new AuditPanel({ link }),
  CellFix: ({ link, notebook }) => new CellFix({ link, notebook }),
  CellOrder: ({ link, notebook }) => new CellOrder({ link, notebook }),
  DecidePanel: ({ link, carded }) => new DecidePanel({ link, carded }),
  HealPanel: ({ link, spec, notebook, carded }) => new Heal({ link, tool: spec.tool, persona: spec.persona, logId: spec.log_id, notebook, carded }),
  LogBrowser: ({ link, spec, memory }) => new LogBrowser({ link, filters: spec.filters, memory }),
  PatchEditor: ({ link, spec, memory }) => new PatchEditor({ link, tool: spec.tool, persona: spec.persona, logId: spec.log_id, memory: memory[`draft:${spec.tool}:${spec.persona}`] ?? null }),
  TracebackView: ({ link, spec, memory, notebook }) => new TracebackView({ link, logId: spec.log_id, memory, notebook }),
};

/** What a model that holds its data itself opens with: it needs no kernel to be read, and asks it only for what was kept. */
function whole(model, link) {
  const story = model.get("story");
  if (!story?.steps) return null;
  return new HealTimeline({ link, story, kept: link.ask("hello").then(({ memory }) => memory) });
}

/** Panels of a failure, which stand for the card above them. */
const OF_FAILURES = new Set(["CellFix", "TracebackView"]);

const GONE = "The kernel was restarted. Run the cells above, then this one.";

/** Draw the panel; say on top of it when its kernel is gone, and disable what would ask it, also what is drawn later. */
function showLife(link, root, panel, notebook) {
  const place = h("div", { role: "status" });
  const controls = h("fieldset", { class: "hk-life", role: "presentation" }, panel.element);
  root.prepend(place);
  root.append(controls);
  link.hear("live", (live) => {
    const again = !panel.gone && notebook?.runs && notebook.own() && button("▶ Run them", () => notebook.runFromTop());
    clear(place, live ? null : h("p", { class: "hk-note hk-line" }, panel.gone ?? GONE, again));
    controls.disabled = !live && !panel.alone; // a timeline can be read without a kernel
  });
}

/** A panel in its cell, or at the side of the window with a line in its cell that says so. */
class View {
  constructor(model, el) {
    Object.assign(this, { model, el });
  }

  /** `again` is whether it was closed before, and asked for anew. */
  async open(again = false) {
    const { model, el } = this;
    const link = new Link(model);
    const around = frame(el, "healkit");
    const { root } = around;
    this.ends = [() => this.panel?.close?.(), around.close, () => root.remove(), () => link.close()];
    await guarded(root, async () => {
      this.panel = whole(model, link) ?? (await this.told(link, root, again));
      if (!this.panel) return;
      showLife(link, root, this.panel, this.notebook);
      await this.panel.start();
      if (this.panel.look && this.el.contains(root)) this.offer(link, root);
    });
  }

  /** The panel that the kernel says is to be drawn, in its place; null for one that was closed. */
  async told(link, root, again) {
    const { model, el } = this;
    const { kind, spec, memory, panel: id, place } = await link.ask("hello");
    const beside = lab() !== null && place.title && (place.docked || lab().panels === "sidebar");
    if (beside && memory.closed && !again) {
      root.remove();
      this.closed(place.title);
      return null;
    }
    const off = countView(model, id, el);
    this.ends.push(() => off({ byHand: this.byHand, live: link.live }));
    link.hear("who", () => link.ask("here").catch(() => {}));
    if (beside) this.dock(link, root, place.title, place.new || again);
    else if (OF_FAILURES.has(kind)) this.ends.push(makeRoom(el));
    this.notebook = new Notebook(model, id);
    return KINDS[kind]({ link, spec, memory, notebook: this.notebook, carded: (data) => putCard(model, id, data) });
  }

  /** Let JupyterLab's extension press Fix, as long as the kernel is there. */
  offer(link, root) {
    let end = () => {};
    const live = (is) => {
      end();
      end = is ? offerFix(root, () => this.panel.look()) : () => {};
    };
    live(link.live);
    link.hear("live", live);
    this.ends.push(() => end());
  }

  dock(link, root, title, front) {
    const gone = () => {
      link.ask("remember", { key: "closed", value: true }).catch(() => {});
      this.byHand = true;
      this.close();
      this.closed(title);
    };
    const tab = dock(this.model, title, root, gone);
    root.prepend(button("✕", gone, { class: "hk-quiet hk-close", "aria-label": "close this panel", title: "Close; a healing that is running here ends" }));
    link.ask("remember", { key: "closed", value: null }).catch(() => {});
    this.note(`${title}: open on the right side of the window.`, "Show it", () => tab.front());
    this.ends.push(tab.close);
    if (front) tab.front();
  }

  closed(title) {
    this.note(`${title}: closed.`, "Open it again", () => {
      this.close();
      this.byHand = false;
      return this.open(true);
    });
  }

  /** A line in the cell of a panel that is elsewhere. */
  note(said, action, act) {
    const place = frame(this.el, "healkit");
    place.root.append(h("div", { class: "hk-line" }, h("span", {}, said), button(action, act, { class: "hk-quiet" })));
    this.ends.push(place.close, () => place.root.remove());
  }

  close() {
    for (const end of this.ends.splice(0)) end();
  }
}

/** Draw the panel in `el`; returns what takes it away again. */
export async function open(model, el) {
  const view = new View(model, el);
  await view.open();
  return () => view.close();
}
