// Cell order: the cells that the failed one lacks, and the button that runs them in the user's kernel.
import { block, button, clear, code, fold, h } from "./dom.js";
import { guarded } from "./frame.js";
import { progress } from "./link.js";
import { outputs } from "./outputs.js";

/** Text whose parts in backticks are code. */
function coded(text) {
  return text.split("`").map((part, i) => (i % 2 ? code(part) : part));
}

function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

export class CellOrder {
  constructor({ link, notebook }) {
    Object.assign(this, { link, notebook });
    this.element = h("div", { class: "hk-view" });
  }

  async start() {
    await guarded(this.element, async () => {
      this.advice = await this.link.ask("advice");
      this.draw();
    });
  }

  draw() {
    const { sentence, steps } = this.advice;
    this.run = button(steps.length > 1 ? `▶ Run these ${steps.length} cells` : "▶ Run that cell", () => this.runAll(), { class: "hk-primary" });
    this.results = h("div", { class: "hk-results" });
    const below = this.cells(this.advice.move);
    const move = below.length > 0 && below.every(Boolean) && this.notebook.runs && this.notebook.own();
    const up = move && button(`⇡ Move ${below.length > 1 ? `these ${below.length} cells` : this.advice.steps[this.advice.move[0]].label} up and run`, () => this.moveUp(), { title: "Above this cell, so that Run All works too; you can undo it in the notebook" });
    const items = steps.map((step) => h("li", {}, fold(h("span", {}, coded(step.label), " ", h("span", { class: "hk-muted" }, coded(step.why))), block(step.source))));
    clear(
      this.element,
      h("p", {}, coded(sentence)),
      h("ol", { class: "hk-plain", "aria-label": "cells to run, in this order" }, items),
      h("div", { class: "hk-actions" }, this.run, up, h("span", { class: "hk-muted" }, "in this notebook's own kernel")),
      this.results,
    );
  }

  /** The notebook's cells of these steps. */
  cells(places) {
    const ids = places.map((place) => this.advice.steps[place].cell_id);
    return ids.map((id) => (id && this.notebook.known && this.notebook.cells.find((cell) => cell.id === id)) || null);
  }

  /** Move the cells that stand too low above the failed one, run all that it lacks, and it. */
  async moveUp() {
    this.run.disabled = true;
    await guarded(this.results, async () => {
      const { notebook } = this;
      const own = notebook.own();
      notebook.moveAbove(this.cells(this.advice.move), own);
      if (await this.runAll({ inPlace: true })) await notebook.run(own);
    });
    this.run.disabled = false;
  }

  /** Bring the button to hand; called by JupyterLab's extension. */
  look() {
    this.run?.focus();
  }

  /** One after the other; the first that fails is the last. `inPlace` runs the cells themselves, where they are known. */
  async runAll({ inPlace = false } = {}) {
    this.run.disabled = true;
    clear(this.results);
    try {
      return await guarded(this.results, async () => {
        const prompts = [];
        for (const [index, step] of this.advice.steps.entries()) {
          const [cell] = inPlace ? this.cells([index]) : [];
          if (cell) {
            if (!(await this.notebook.run(cell))) return false;
            continue;
          }
          const done = await progress(this.results, `Running ${step.label.replaceAll("`", "")}`, this.link.ask("run_cell", { step: index }));
          const mark = done.ok ? "✓" : "✗";
          const prompt = done.count === null ? "" : ` as In [${done.count}]`;
          this.results.append(h("div", { class: done.ok ? "hk-good" : "hk-bad" }, `${mark} `, coded(step.label), `${done.ok ? " ran" : " failed"}${prompt}`, done.failure ? `: ${done.failure}` : ""), ...outputs(done.outputs));
          if (!done.ok) return false;
          if (done.count !== null) prompts.push(`In [${done.count}]`);
        }
        if (inPlace) return true;
        this.results.append(h("p", { class: "hk-note hk-said", role: "status" }, `Done: ${listed(prompts)}. Now run the cell above again.`));
        const own = this.notebook.runs && this.notebook.own();
        if (!own || this.notebook.changed(own)) return true;
        const again = button("▶ Run the cell above again", () => this.notebook.run(own), { class: "hk-primary" });
        this.results.append(again);
        again.focus({ preventScroll: true });
        return true;
      });
    } finally {
      this.run.disabled = false;
    }
  }
}
