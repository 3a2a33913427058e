// What the extension asks of a notebook's kernel, and nothing more: a failing cell's fix on a click, and healkit itself in
// every notebook where the person has set that.
import { Notification } from "@jupyterlab/apputils";
import type { CodeCell } from "@jupyterlab/cells";
import { NotebookActions, type INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import type { Kernel, KernelMessage } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import CODE from "./call.py";
import { textHash } from "./failing.js";
import { fixIn, type Fix } from "./seams.js";
import type { ForKernel, Settings } from "./settings.js";

/** How long a panel may take to be drawn, once the kernel has answered. */
const DRAWN_MS = 20_000;
const LOOK_AGAIN_MS = 50;
/** How long a page that can draw panels may take to begin with one. */
const BEGUN_MS = 2000;
const PANEL_TYPE = "application/vnd.jupyter.widget-view+json";
const OUTPUTS = new Set(["display_data", "stream"]);

/** What a kernel is asked for; healkit/faces/notebook/page_calls.py checks it and does it. */
type Call = { call: "fix"; execution_count: number; source: string } | ({ call: "settings" } & ForKernel);

/** The one place where a kernel is asked to run anything: always the same code. What comes from a notebook is data. */
function ask(kernel: Kernel.IKernelConnection, call: Call): Kernel.IShellFuture<KernelMessage.IExecuteRequestMsg, KernelMessage.IExecuteReplyMsg> {
  return kernel.requestExecute({ code: CODE, silent: true, store_history: false, stop_on_error: false }, true, { healkit: JSON.stringify(call) });
}

/** The panel of a cell's failure: the one that the page shows, or the one that the kernel then displays below it. */
export async function fixOf(panel: NotebookPanel, cell: CodeCell, trans: TranslationBundle): Promise<Fix | undefined> {
  const there = fixIn(cell.node);
  if (there) return there;
  await settled(cell);
  return (await isComing(panel, cell)) || (await show(panel, cell, trans)) === "panel" ? drawn(cell) : undefined;
}

/** Wait for the end of a cell's run: the error comes before it, the card and the panel at it. */
export async function settled(cell: CodeCell): Promise<void> {
  await Promise.resolve(cell.outputArea.future?.done).catch(() => {}); // the kernel went
}

/** Whether the cell has a panel that its kernel still knows, so that it only has to be drawn. */
async function isComing(panel: NotebookPanel, cell: CodeCell): Promise<boolean> {
  const kernel = panel.sessionContext.session?.kernel;
  const { outputs } = cell.model;
  const views = Array.from({ length: outputs.length }, (_, at) => outputs.get(at).data[PANEL_TYPE] as { model_id?: string } | undefined);
  const ids = views.flatMap((view) => view?.model_id ?? []);
  if (!kernel || !ids.length) return false;
  const { content } = await kernel.requestCommInfo({ target_name: "jupyter.widget" });
  return content.status === "ok" && ids.some((id) => Object.hasOwn(content.comms, id));
}

/** Have the kernel display the failure's card and panel below the cell; says whether it did. */
export const showFix = async (panel: NotebookPanel, cell: CodeCell, trans: TranslationBundle): Promise<boolean> => (await show(panel, cell, trans)) !== "nothing";

/** What came: a panel, only a card, which says why there is no panel, or nothing. */
async function show(panel: NotebookPanel, cell: CodeCell, trans: TranslationBundle): Promise<"panel" | "card" | "nothing"> {
  const kernel = panel.sessionContext.session?.kernel;
  const count = cell.model.executionCount;
  if (!kernel || count === null || !Number.isSafeInteger(count) || count < 1) {
    offerRun(panel, cell, trans.__("The kernel has ended. Run the cells above, then this one."), trans);
    return "nothing";
  }
  let came: "panel" | "card" | "nothing" = "card";
  const future = ask(kernel, { call: "fix", execution_count: count, source: textHash(cell.model) });
  future.onIOPub = ({ header, content }) => {
    const { healkit } = (content as { metadata?: { healkit?: { restarted?: boolean } } }).metadata ?? {};
    if (healkit?.restarted) {
      came = "nothing";
      offerRun(panel, cell, trans.__("The kernel was restarted. Run the cells above, then this one."), trans);
      return;
    }
    if (PANEL_TYPE in ((content as { data?: object }).data ?? {})) came = "panel";
    if (OUTPUTS.has(header.msg_type) && !stands(cell, content)) cell.model.outputs.add({ ...content, output_type: header.msg_type } as never);
  };
  const { content } = await future.done;
  if (content.status !== "error") return came;
  const message = content.ename === "ModuleNotFoundError" ? trans.__("healkit is not installed in this notebook's kernel. Install it there: %pip install healkit.") : `healkit: ${content.ename}: ${content.evalue}`;
  Notification.warning(message, { autoClose: 8000 });
  return "nothing";
}

const ASIDE_CLASS = "hk-lab-aside";

/** Say between a cell's text and its output that it lacks the kernel it ran in, with what runs it once more. */
function offerRun(panel: NotebookPanel, cell: CodeCell, said: string, trans: TranslationBundle): void {
  const remove = (): void => {
    cell.node.querySelector(`.${ASIDE_CLASS}`)?.remove();
    cell.model.outputs.changed.disconnect(remove);
  };
  remove();
  const { content, sessionContext } = panel;
  const run = document.createElement("button");
  run.type = "button";
  run.className = "hk-lab-run";
  run.textContent = trans.__("▶ Run them");
  run.addEventListener("click", () => {
    remove();
    const cells = content.widgets.slice(0, content.widgets.indexOf(cell) + 1);
    void NotebookActions.runCells(content, cells, sessionContext);
  });
  const aside = document.createElement("div");
  aside.className = ASIDE_CLASS;
  aside.setAttribute("role", "status");
  aside.append(said, " ", run);
  cell.node.querySelector(".jp-Cell-outputWrapper")?.before(aside);
  cell.model.outputs.changed.connect(remove);
  aside.scrollIntoView({ block: "nearest" });
}

/** Whether the cell's last output says that already: a second press is told nothing new. */
function stands(cell: CodeCell, content: object): boolean {
  const { outputs } = cell.model;
  const words = (content as { data?: Record<string, unknown> }).data?.["text/plain"];
  return words !== undefined && outputs.length > 0 && String(outputs.get(outputs.length - 1).data["text/plain"]) === String(words);
}

/** Wait until a panel is drawn in the cell; not where the page does not draw any. */
async function drawn(cell: CodeCell): Promise<Fix | undefined> {
  const began = Date.now();
  while (!cell.isDisposed && Date.now() - began < DRAWN_MS) {
    const found = fixIn(cell.node);
    if (found || (Date.now() - began > BEGUN_MS && !cell.node.querySelector(".jupyter-widgets, .hk"))) return found;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
  return undefined;
}

/** Load healkit in the kernels of all notebooks, where that is set. */
export class KernelSettings {
  constructor(
    tracker: INotebookTracker,
    private readonly settings: Settings,
  ) {
    tracker.widgetAdded.connect((_, panel) => this.watch(panel));
    tracker.forEach((panel) => this.watch(panel));
    settings.changed.connect(() => tracker.forEach((panel) => void this.pass(panel)));
  }

  private watch({ sessionContext }: NotebookPanel): void {
    let pending = false;
    const pass = (): void => {
      pending = false;
      void this.pass({ sessionContext });
    };
    const restarted = (_: unknown, status: string): void => {
      if (status === "restarting" || status === "autorestarting") pending = true;
      else if (status === "idle" && pending) pass();
    };
    sessionContext.statusChanged.connect(restarted);
    sessionContext.kernelChanged.connect((_, { newValue }) => newValue && pass());
    if (sessionContext.session?.kernel) pass();
  }

  /** Pass the settings to a notebook's kernel; one without healkit, or of another language, stays as it is. */
  private async pass({ sessionContext }: Pick<NotebookPanel, "sessionContext">): Promise<void> {
    const kernel = sessionContext.session?.kernel;
    if (!kernel || !this.settings.everyNotebook) return;
    const { language_info } = await kernel.info;
    if (language_info.name !== "python" || kernel.isDisposed) return;
    await ask(kernel, { call: "settings", ...this.settings.forKernel() }).done.catch(() => {}); // the kernel went while it was asked
  }
}
