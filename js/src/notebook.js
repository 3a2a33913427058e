// The notebook around a panel: its cells are found, edited in one step that can be undone, and run.
//
// Where the page does not know its notebook (VS Code, Colab) there are no cells; without JupyterLab's extension none is run.
import { context, lab } from "./page.js";

const VIEW = "application/vnd.jupyter.widget-view+json";
const TOOL_CELL = /^(\s*%%tool\b.*)\n([\s\S]*)$/;

const textOf = (cell) => cell.sharedModel.getSource();
/** IPython keeps a cell's text without the lines at its end that are empty. */
const bare = (text) => text.replace(/\n+$/, "");

function refused(message, hint = "") {
  return Object.assign(new Error(message), { hint });
}

/** The lines with each run of `old` in them replaced. */
function replaced(lines, old, text) {
  const out = [];
  for (let at = 0; at < lines.length; ) {
    if (old.every((line, i) => lines[at + i] === line)) {
      out.push(...text);
      at += old.length;
    } else out.push(lines[(at += 1) - 1]);
  }
  return out;
}

export class Notebook {
  /** `panel` is the id of the panel's model, by which its cell is known. */
  constructor(model, panel) {
    Object.assign(this, { model, panel });
  }

  get known() {
    return Boolean(context(this.model)?.model);
  }

  get runs() {
    return this.known && lab() !== null;
  }

  get cells() {
    return [...(context(this.model)?.model?.cells ?? [])].filter((cell) => cell.type === "code");
  }

  /** The cell that shows the panel. */
  own() {
    const shows = ({ outputs }) => Array.from({ length: outputs.length }, (_, at) => outputs.get(at)).some(({ data }) => data?.[VIEW]?.model_id === this.panel);
    return this.cells.find(shows) ?? null;
  }

  /** `In [7]`, or where it stands for a cell that has not run. */
  label(cell) {
    return cell.executionCount ? `In [${cell.executionCount}]` : `cell ${[...context(this.model).model.cells].indexOf(cell) + 1}`;
  }

  /** The cell that ran in that place, by the notebook's own id or by its text (`texts`); null where there is none. */
  find({ cell, cell_id: id, source }, texts = [source]) {
    const { cells } = this;
    const same = cells.filter((one) => texts.some((text) => this.has(one, text)));
    return cells.find((one) => one.id === id) ?? same.find((one) => this.label(one) === cell) ?? same[0] ?? null;
  }

  /** Other cells with the lines that an edit takes out, as changes: the same lines, replaced in the same way. */
  similar({ source, code, hunks }, but) {
    const changes = this.cells.filter((cell) => cell !== but).map((cell) => {
      const before = textOf(cell);
      if (this.has(cell, source)) return { cell, before, code, lines: hunks };
      const found = hunks.filter(([old]) => old.some((line) => /\w/.test(line)) && `\n${before}\n`.includes(`\n${old.join("\n")}\n`));
      return { cell, before, code: found.reduce((lines, [old, text]) => replaced(lines, old, text), before.split("\n")).join("\n"), lines: found };
    });
    return changes.filter(({ before, code: after }) => before !== after);
  }

  /** The `%%tool` cells that save that code as the tool, as a function from its new code to changes. */
  ofTool(tool, persona, code) {
    const same = this.cells.filter((cell) => {
      const [, head, body] = TOOL_CELL.exec(textOf(cell)) ?? [];
      if (body?.trimEnd() !== code.trimEnd()) return false;
      const name = /%%tool\s+([^\s-]\S*)/.exec(head)?.[1] ?? tool;
      return name === tool && (/--persona[= ]\s*(\S+)/.exec(head)?.[1] ?? "default") === persona;
    });
    return same.map((cell) => {
      const before = textOf(cell);
      return { cell, before, label: this.label(cell), with: (text) => ({ cell, before, code: `${TOOL_CELL.exec(before)[1]}\n${text.trimEnd()}` }) };
    });
  }

  has(cell, text) {
    return bare(textOf(cell)) === bare(text);
  }

  /** Whether a cell has another text than the one that it ran with. */
  changed(cell, source = null) {
    return cell.isDirty === true || (source !== null && !this.has(cell, source));
  }

  /** Make all the changes, or none: each as one edit that can be undone, and all of them as one transaction. */
  edit(changes) {
    const { cells } = this;
    for (const { cell, before } of changes) {
      if (!cells.includes(cell)) throw refused("A cell to edit was deleted in the meantime, so no cell was changed.", "Press Fix again.");
      if (!this.has(cell, before)) throw refused(`${this.label(cell)} was changed in the meantime, so no cell was edited.`, "Run it again. If it still fails, you get a proposal for its new text.");
      if (cell.getMetadata?.("editable") === false || context(this.model).model.readOnly) throw refused(`${this.label(cell)} is read-only, so no cell was changed.`);
    }
    const shared = context(this.model).model.sharedModel;
    // A cell's own undo knows only what the cell itself has begun; what the notebook has begun has to be named to it.
    const undos = changes.map(({ cell }) => cell.sharedModel.undoManager).filter(Boolean);
    const strangers = undos.filter((undo) => !undo.trackedOrigins.has(shared));
    for (const undo of undos) undo.stopCapturing(); // what was typed before is a step of its own
    for (const undo of strangers) undo.addTrackedOrigin(shared);
    try {
      shared.transact(() => changes.forEach(({ cell, code }) => cell.sharedModel.setSource(code)));
    } finally {
      for (const undo of strangers) undo.removeTrackedOrigin(shared);
    }
    for (const undo of undos) undo.stopCapturing();
  }

  /** Move cells to right above another one, in their order; one edit, which the notebook's undo takes back. */
  moveAbove(cells, below) {
    const shared = context(this.model).model.sharedModel;
    const at = (id) => shared.cells.findIndex((cell) => cell.id === id);
    const ids = cells.map((cell) => cell.id);
    shared.transact(() => ids.forEach((id) => shared.moveCell(at(id), at(below.id))));
  }

  /** Run the cells above the panel's, then that one; the first that fails is the last. */
  async runFromTop() {
    const { cells } = this;
    for (const cell of cells.slice(0, cells.indexOf(this.own()) + 1)) if (!(await this.run(cell))) return;
  }

  /** Run a cell as the user would; whether it ended without an error. */
  run(cell) {
    return lab().run(context(this.model), cell.id);
  }
}
