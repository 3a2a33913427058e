// The page around a panel: its notebook, its kernel and its side, as far as the page lets on.
//
// JupyterLab's and Notebook 7's widget managers know their notebook. Where one does not (VS Code, Colab), each of these
// does nothing, and a panel is what it is without them.

const RESTARTED = new Set(["restarting", "autorestarting", "terminating", "dead"]);
/** A cell that is moved is drawn again at once, and a notebook that is closed takes its panels before itself. */
const SETTLE_MS = 500;

/** The notebook's document, as the page's widget manager has it. */
export const context = (model) => model.widget_manager?.context;

/** What healkit's extension of JupyterLab and Notebook 7 does for a panel; null where it is not. */
export const lab = () => globalThis.__healkitLab ?? null;

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

/** Docked panels of this page: notebook and title → what is called when another takes the place. */
const tabs = (globalThis.__healkitTabs ??= new Map());

/** Show an element at the side of the window, in place of the one of that title; `gone` is told when it is closed there. */
export function dock(model, title, element, gone) {
  const key = `${notebookPath(model)} ${title}`;
  tabs.get(key)?.();
  const tab = lab().dock(key, title, element, gone);
  tabs.set(key, gone);
  const close = () => {
    if (tabs.get(key) !== gone) return; // another has its place
    tabs.delete(key);
    tab.close();
  };
  return { close, front: () => tab.front() };
}

/** Failing cells' nodes → the panel in them that has a fix; JupyterLab's extension presses its button. */
const fixes = (globalThis.__healkitFixes ??= new WeakMap());

/** Offer a panel's fix to whoever asks for one in its cell; returns what ends that. */
export function offerFix(el, look) {
  const cell = el.closest(".jp-CodeCell");
  const offered = { look, element: el };
  if (cell) fixes.set(cell, offered);
  return () => fixes.get(cell) === offered && fixes.delete(cell);
}
