// The page around a panel: its notebook, its kernel and its tab, as far as the page lets on.
//
// JupyterLab's and Notebook 7's widget managers know their notebook. Where one does not (VS Code, Colab), each of these
// does nothing, and a panel is what it is without them.

const RESTARTED = new Set(["restarting", "autorestarting", "terminating", "dead"]);
/** A cell that is moved is drawn again at once, and a notebook that is closed takes its panels before itself. */
const SETTLE_MS = 500;
/** How often to look whether a tab has its place, and for how long. */
const ATTACH_MS = 50;
const GIVE_UP_MS = 10_000;

const context = (model) => model.widget_manager?.context;

/** Where the notebook is; null where that is not known. */
export function notebookPath(model) {
  return context(model)?.path ?? null;
}

/** Call `told` when the kernel may be another one or gone; returns what ends that. */
export function watchKernel(model, told) {
  const session = context(model)?.sessionContext;
  const changed = (_, status) => RESTARTED.has(status) && told();
  model.on("comm_live_update", told);
  session?.statusChanged?.connect(changed);
  session?.kernelChanged?.connect(told); // a shutdown by the menu changes it to none, and no status tells of that
  return () => {
    model.off("comm_live_update", told);
    session?.statusChanged?.disconnect(changed);
    session?.kernelChanged?.disconnect(told);
  };
}

/** Put data into the output that bears this panel's mark, also in what is saved. */
export function putCard(model, panel, data) {
  for (const cell of context(model)?.model?.cells ?? []) {
    for (let at = 0; at < (cell.outputs?.length ?? 0); at += 1) {
      const output = cell.outputs.get(at).toJSON();
      if (output.metadata?.healkit?.panel !== panel) continue;
      const same = Object.entries(data).every(([type, text]) => [output.data[type] ?? ""].flat().join("") === text);
      if (!same) cell.outputs.set(at, { ...output, data });
    }
  }
}

/** How often this page shows each panel. */
const views = (globalThis.__healkitViews ??= new Map());

/**
 * Count a view of that panel; returns what counts it off. The kernel is told of the last one that goes because its cell
 * or its tab does; not of one that goes with the page or the notebook, whose kernel goes on.
 */
export function countView(model, panel, el) {
  views.set(panel, (views.get(panel) ?? 0) + 1);
  const cell = el.closest(".jp-CodeCell");
  const runs = () => cell?.isConnected && cell.querySelector(".jp-InputPrompt")?.textContent.includes("*");
  return ({ byHand = false, live = true } = {}) => {
    views.set(panel, views.get(panel) - 1);
    const check = () => {
      const document = context(model);
      if (!live || views.get(panel) > 0 || !(byHand || (document && !document.isDisposed))) return;
      if (runs()) setTimeout(check, SETTLE_MS); // a cell that is run again may show the same once more
      else tell(model);
    };
    setTimeout(check, SETTLE_MS);
  };
}

function tell(model) {
  try {
    model.send({ op: "left", id: "", args: {} });
  } catch {
    // there is no kernel to be told
  }
}

/** The docked panels of this page. */
const docked = (globalThis.__healkitDocked ??= new Set());

/** One docked panel's tab. Of two tabs of one title in one notebook, the one whose kernel is gone is closed. */
export class Tab {
  constructor(model, { box, title }, onclose) {
    Object.assign(this, { key: `${notebookPath(model)} ${title}`, onclose, dead: false });
    this.views = model.widget_manager.get_model(box).then((found) => Promise.all(Object.values(found.views)));
    this.views.catch(() => {});
    docked.add(this);
  }

  /** Close what it replaces; `front` is called with the tab's id once that is there and hidden, as a new one is. */
  async arrive(root, front) {
    await Promise.all([...docked].filter((other) => other.dead && other.key === this.key).map((other) => other.close()));
    const views = await this.views;
    const waiting = setInterval(() => {
      if (!root.isConnected) return;
      clearInterval(waiting);
      if (root.offsetParent === null) front(views[0].luminoWidget.id);
    }, ATTACH_MS);
    setTimeout(() => clearInterval(waiting), GIVE_UP_MS);
  }

  /** The kernel is gone, or there after all. */
  live(is) {
    this.dead = !is;
    if (this.dead && [...docked].some((other) => !other.dead && other.key === this.key)) this.close();
  }

  async close() {
    this.forget();
    this.onclose();
    for (const view of await this.views) {
      view.luminoWidget.close(); // out of the sidebar
      view.remove();
    }
  }

  forget() {
    docked.delete(this);
  }
}
