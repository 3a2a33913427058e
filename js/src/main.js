// The bundle's one export: open the panel that a model is.
import { CellOrder } from "./cell_order.js";
import { frame, guarded } from "./frame.js";
import { Heal } from "./heal_panel.js";
import { HealTimeline } from "./heal_timeline.js";
import { Link } from "./link.js";
import { LogBrowser } from "./log_browser.js";
import { PatchEditor } from "./patch_editor.js";
import { PostMortem } from "./post_mortem.js";
import { TracebackView } from "./traceback_view.js";

const KINDS = {
  CellOrder: (link) => new CellOrder({ link }),
  HealPanel: (link, spec) => new Heal({ link, tool: spec.tool, persona: spec.persona, logId: spec.log_id }),
  LogBrowser: (link, spec, memory) => new LogBrowser({ link, filters: spec.filters, memory }),
  PatchEditor: (link, spec, memory) => new PatchEditor({ link, tool: spec.tool, persona: spec.persona, logId: spec.log_id, memory: memory[`draft:${spec.tool}:${spec.persona}`] ?? null }),
  PostMortem: (link, spec) => new PostMortem({ link, logId: spec.log_id }),
  TracebackView: (link, spec, memory) => new TracebackView({ link, logId: spec.log_id, memory }),
};

/** What a model that holds its data itself opens with: it needs no kernel to be read, and asks it only for what was kept. */
function whole(model, link) {
  const story = model.get("story");
  if (!story?.steps) return null;
  return new HealTimeline({ link, story, kept: link.ask("hello").then(({ memory }) => memory) });
}

/** Draw the panel in `el`; returns what takes it away again. */
export async function open(model, el) {
  const link = new Link(model);
  const around = frame(el, "healkit");
  let panel;
  await guarded(around.root, async () => {
    panel = whole(model, link);
    if (!panel) {
      const { kind, spec, memory } = await link.ask("hello");
      panel = KINDS[kind](link, spec, memory);
    }
    around.root.append(panel.element);
    await panel.start();
  });
  return () => {
    panel?.close?.();
    around.close();
    link.close();
  };
}
