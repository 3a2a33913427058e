// Failing cells of the open notebooks, and the Fix button on each error output.
import type { CodeCell, ICodeCellModel } from "@jupyterlab/cells";
import type { INotebookTracker, Notebook, NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";
import { sha256 } from "@noble/hashes/sha2";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils";
import { FAILURE_TYPE, type Failure } from "./card.js";
import { fixIcon } from "./icons.js";
import { foldFrames } from "../../src/cell_page.js";
import { keepPress } from "../../src/dom.js";

/** Errors that are no mistake in the cell. */
const ENDED = new Set(["KeyboardInterrupt", "SystemExit"]);
const HASH_CHARS = 16;
const PANEL_TYPE = "application/vnd.jupyter.widget-view+json";
/** When to look at outputs: a long error is drawn piece by piece, and a panel is asked for first. */
const DRAWN_MS = [100, 1000, 4000, 15_000];

/** The failing cells' class, which the schema's context menu looks for. */
const FAILING_CLASS = "hk-failing";

/** Where the cell's error is among its outputs; -1 where it has none that a fix could be for. */
export function errorAt(model: ICodeCellModel): number {
  for (let at = 0; at < model.outputs.length; at += 1) {
    const output = model.outputs.get(at);
    if (output.type === "error" && !ENDED.has(String((output.toJSON() as { ename?: unknown }).ename))) return at;
  }
  return -1;
}

/** What the card below the error knows of it; nothing without healkit. */
function failureOf(model: ICodeCellModel): Failure | null {
  for (let at = model.outputs.length - 1; at >= 0; at -= 1) {
    const data = model.outputs.get(at).data[FAILURE_TYPE];
    if (data) return data as unknown as Failure;
  }
  return null;
}

/** The hash of a cell's text, as cards and kernels know it (`text_hash` in cell_output.py). */
export function textHash(model: ICodeCellModel): string {
  return bytesToHex(sha256(utf8ToBytes(model.sharedModel.getSource().replace(/\n+$/, "")))).slice(0, HASH_CHARS);
}

/** Where the cell's error is if it is that of the text which it holds now, else -1; and whether a fix may be offered. */
function errorOf(model: ICodeCellModel): { at: number; fixable: boolean } {
  const at = errorAt(model);
  const failure = at < 0 ? null : failureOf(model);
  const stale = failure ? failure.source !== textHash(model) : model.isDirty; // the hash is also known after a reload
  return { at: stale ? -1 : at, fixable: failure?.fixable !== false };
}

/** Whether the cell has an error, and that of the text which it holds now. */
export const isFailing = (model: ICodeCellModel): boolean => errorOf(model).at >= 0;

/** Whether a fix may be offered for its error. */
export function isFixable(model: ICodeCellModel): boolean {
  const { at, fixable } = errorOf(model);
  return at >= 0 && fixable;
}

/** Fold the library frames of an error, and hide a panel whose kernel is gone: the card above it says the same. */
function tidy(cell: CodeCell, at: number): void {
  const { outputs } = cell.model;
  const gone = (place: number) => PANEL_TYPE in outputs.get(place).data && cell.outputArea.widgets[place]?.node.textContent?.includes("model not found");
  const look = (): void => {
    if (cell.isDisposed || at >= outputs.length) return;
    const text = cell.outputArea.widgets[at]?.node.querySelector("pre");
    if (text) foldFrames(text);
    cell.outputArea.widgets.forEach(({ node }, place) => {
      if (place < outputs.length && gone(place)) node.style.display = "none";
    });
  };
  for (const after of DRAWN_MS) setTimeout(look, after);
}

export class FailingCells {
  private readonly watched = new WeakSet<object>();
  private readonly buttons = new WeakMap<CodeCell, HTMLButtonElement>();

  constructor(
    tracker: INotebookTracker,
    private readonly fix: (panel: NotebookPanel, cell: CodeCell) => Promise<void>,
    private readonly changed: () => void,
    private readonly trans: TranslationBundle,
  ) {
    tracker.widgetAdded.connect((_, panel) => this.watch(panel));
    tracker.forEach((panel) => this.watch(panel));
  }

  private watch(panel: NotebookPanel): void {
    const notebook = panel.content;
    notebook.modelChanged.connect(() => this.watchModel(panel, notebook));
    this.watchModel(panel, notebook);
  }

  private watchModel(panel: NotebookPanel, notebook: Notebook): void {
    const all = () => {
      for (const cell of notebook.widgets) if (cell.model.type === "code") this.watchCell(panel, cell as CodeCell);
    };
    // The notebook's own listener, which makes the cells, already exists.
    notebook.model?.cells.changed.connect(all);
    all();
  }

  private watchCell(panel: NotebookPanel, cell: CodeCell): void {
    if (this.watched.has(cell)) return;
    this.watched.add(cell);
    // Before that it has no output area, and what listens first is called first: the area draws, then the button comes.
    void cell.ready.then(() => {
      if (cell.isDisposed) return;
      const draw = () => this.draw(panel, cell);
      cell.model.outputs.changed.connect(draw);
      cell.model.stateChanged.connect(draw);
      cell.model.contentChanged.connect(draw);
      draw();
    });
  }

  private draw(panel: NotebookPanel, cell: CodeCell): void {
    if (cell.isDisposed) return;
    const { at, fixable } = errorOf(cell.model);
    cell.node.classList.toggle(FAILING_CLASS, at >= 0);
    const place = at >= 0 && fixable ? cell.outputArea.widgets[at]?.node : undefined;
    const button = this.buttons.get(cell);
    if (at >= 0 && failureOf(cell.model)) tidy(cell, at);
    if ((button?.parentElement ?? undefined) === place) return;
    button?.remove();
    if (place) {
      place.classList.add("hk-lab-error");
      place.append(button ?? this.button(panel, cell));
    }
    this.changed();
  }

  private button(panel: NotebookPanel, cell: CodeCell): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "hk-lab-fix";
    button.title = this.trans.__("Look for a fix of this error and show it before anything changes");
    fixIcon.element({ container: button, tag: "span", elementSize: "small" });
    button.append(this.trans.__("Fix"));
    button.addEventListener("click", () => {
      button.disabled = true;
      void this.fix(panel, cell).finally(() => {
        button.disabled = false;
      });
    });
    keepPress(button);
    this.buttons.set(cell, button);
    return button;
  }
}
