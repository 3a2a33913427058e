// A failing cell of the notebook's own: a fix for it, seen beside the cell's text, put into its cell, and run.
import { button, clear, coded, count, fold, h } from "./dom.js";
import { Beside } from "./editor.js";
import { guarded } from "./frame.js";
import { progress } from "./link.js";

function listed(labels) {
  return labels.length < 2 ? labels.join("") : `${labels.slice(0, -1).join(", ")} and ${labels.at(-1)}`;
}

const asThen = (labels) => labels.join(", then ");

/** The lines that a change takes out and puts in. */
export function lineChanges(hunks) {
  const part = (lines, sign, look) => lines.map((line) => h("span", { class: look }, `${sign} ${line}\n`));
  return h("pre", { class: "hk-block", tabindex: "0", "aria-label": "the change" }, hunks.map(([old, text]) => [part(old, "-", "hk-minus"), part(text, "+", "hk-plus")]));
}

export class CellFix {
  constructor({ link, notebook }) {
    Object.assign(this, { link, notebook });
    this.found = h("div", { class: "hk-results" });
    this.said = h("div", { role: "status" });
    this.fix = button("✚ Fix", () => this.look(), { class: "hk-primary", title: "Look for edits and run each one in a worker; the cell stays unchanged" });
    this.element = h("div", { class: "hk-view" });
  }

  async start() {
    await guarded(this.element, async () => {
      const { card, begun, model } = await this.link.ask("about");
      this.model = model;
      const place = h("div", { class: "hk-card" });
      place.innerHTML = card;
      const [head, ...rest] = place.firstElementChild.children;
      rest.at(-1).remove(); // the magics to copy: here are buttons
      this.suggested = [...place.querySelectorAll("details")].filter((part) => part.firstElementChild.textContent.toLowerCase().includes("suggested fix"));
      head.after(h("div", { class: "hk-actions hk-inside" }, this.fix, ...rest.flatMap((part) => [...part.querySelectorAll(":scope > details")])));
      for (const part of rest) if (part.isConnected || !part.children.length) part.remove();
      place.firstElementChild.append(h("div", { class: "hk-inside" }, this.found, this.said));
      clear(this.element, place);
      if (begun) this.look({ join: true });
    });
  }

  /** Look for a fix, and show it; `join` is for a page that was reloaded: it takes what was found, or soon will be. */
  look({ join = false, ask = false } = {}) {
    this.looking ??= this.looked(join, ask).finally(() => {
      this.looking = null;
      this.fix.disabled = false;
    });
    return this.looking;
  }

  async looked(join, ask) {
    this.fix.disabled = true;
    this.close();
    clear(this.said);
    clear(this.found);
    await guarded(this.found, async () => {
      this.answer = await progress(this.found, ask ? `Asking ${this.model}` : "Looking for a fix", this.link.ask("heal", { join, ask }));
      const [first] = this.answer.fixes;
      // A fix says it all, and what the card suggests may be another change.
      if (this.answer.refutes || first?.sure) this.suggested.forEach((part) => part.remove());
      if (first && first.ran && !first.sure) this.askWhich();
      else if (first) {
        this.show(first);
        if (!join) this.apply?.focus({ preventScroll: true });
      } else {
        const report = h("div", {});
        report.innerHTML = this.answer.html;
        const title = "Sends the cell and the functions of other cells that it calls. Of the cell's values, only the names, types, columns and shapes are sent. The answer is tried like any other edit";
        const model = this.model && this.answer.askable && button(`Ask ${this.model}`, () => this.look({ ask: true }), { title });
        clear(this.found, report, model ? h("div", { class: "hk-actions" }, model) : null);
      }
    });
  }

  /** The cells of a fix as they are now: the one to be edited, and all that are run before and after it. */
  cellsOf({ edit }) {
    const own = this.notebook.own();
    const is = ({ cell, source }, texts) => (cell === this.answer.label && own && texts.some((text) => this.notebook.has(own, text)) ? own : null);
    const texts = [edit.source, edit.code];
    const target = is(edit, texts) ?? this.notebook.find(edit, texts);
    const [first, then] = [edit.first, edit.then].map((some) => some.map((one) => ({ ...one, at: is(one, [one.source]) ?? this.notebook.find(one) })));
    return { first, target, then };
  }

  /** Show the readings of the cell, of which none is likelier than another: a person says which is meant. */
  askWhich() {
    const reading = (one) => h("div", { class: "hk-line" }, h("p", { class: "hk-prewrap" }, coded(one.reason), " ", h("span", { class: "hk-muted" }, one.said)), lineChanges(one.edit.hunks), button("Show it", () => this.show(one), { class: "hk-quiet" }));
    const head = h("div", { class: "hk-headline hk-warn" }, h("b", {}, "? Which one do you mean?"));
    clear(this.found, h("div", { class: "hk-proposal", role: "group", "aria-label": "question" }, head, this.answer.fixes.map(reading), this.answer.notes.map((note) => h("p", { class: "hk-muted hk-prewrap" }, coded(note))), this.notFixes()));
  }

  /** What runs and is no fix, folded, with what it costs. */
  notFixes() {
    const all = this.answer.not_fixes;
    const row = (one) => h("div", { class: "hk-line" }, h("p", { class: "hk-prewrap" }, one.lost.join(" "), " ", coded(one.reason)), lineChanges(one.edit.hunks));
    return all.length ? fold(all.length === 1 ? "Not a fix: an edit that changes or hides data" : `Not fixes: ${all.length} edits that change or hide data`, all.map(row)) : null;
  }

  show(fix) {
    const { edit } = fix;
    const { target } = this.cellsOf(fix);
    const others = this.answer.fixes.filter((one) => one !== fix);
    this.similar = target ? this.notebook.similar(edit, target).map((change) => ({ ...change, box: h("input", { type: "checkbox" }) })) : [];
    this.action = h("div", { class: "hk-actions" });
    this.drawAction(fix, target);
    const area = h("div", { class: "hk-code-area" });
    const label = (change) => h("label", { class: "hk-line" }, change.box, `also in ${this.notebook.label(change.cell)}`);
    const head = `${fix.sure ? "✓ A fix for" : fix.ran ? "? If you mean this, for" : "? A fix, not run, for"} ${edit.cell}`;
    this.close();
    clear(
      this.found,
      h(
        "div",
        { class: "hk-proposal", role: "group", "aria-label": "proposal" },
        h("div", { class: `hk-headline ${fix.sure ? "hk-good" : "hk-warn"}` }, h("b", {}, head)),
        h("p", { class: "hk-prewrap" }, coded(fix.reason), " ", h("span", { class: "hk-muted" }, fix.said)),
        area,
        this.similar.length ? h("fieldset", { class: "hk-asked" }, h("legend", {}, "Other cells have the same lines"), this.similar.map((change) => h("div", {}, label(change), lineChanges(change.lines)))) : null,
        this.action,
        [...fix.unknown, ...this.answer.notes].map((note) => h("p", { class: "hk-muted hk-prewrap" }, coded(note))),
        others.length ? fold(count(others.length, "other edit"), others.map((one) => h("div", { class: "hk-line" }, h("span", {}, coded(one.reason), " ", h("span", { class: "hk-muted" }, one.said)), button("Show it", () => this.show(one), { class: "hk-quiet" })))) : null,
        this.notFixes(),
      ),
    );
    this.editor = new Beside({ parent: area, language: "python", theirs: edit.source, mine: edit.code, readOnly: true });
  }

  /** What can be done with a fix here and now. */
  drawAction(fix, target) {
    const { edit } = fix;
    const labels = [...edit.first, edit, ...edit.then].map(({ cell }) => cell);
    const { known, runs } = this.notebook;
    const done = target && this.notebook.has(target, edit.code); // before the page was reloaded
    this.apply = null;
    if (!known) clear(this.action, h("p", { class: "hk-note" }, "A panel cannot edit the cells of this page: ", coded("`%heal --apply`"), " puts the fix into a new cell."));
    else if (done && !runs) clear(this.action, h("p", { class: "hk-good" }, `✓ The fixed text is in ${edit.cell}: run ${asThen(labels)}.`));
    else {
      const text = done ? "▶ Run" : runs ? "✓ Apply and run" : "✓ Apply";
      this.apply = button(text, () => this.put(fix), { class: "hk-primary", title: done ? null : "One edit of the cell, which Ctrl-Z in the cell undoes" });
      const more = runs ? (labels.length > 1 ? `runs ${asThen(labels)}` : "") : `then run ${asThen(labels)}`;
      clear(this.action, this.apply, h("span", { class: "hk-muted" }, more));
    }
  }

  /** Put a fix into its cell and into those that were chosen, and run what has to be run. */
  async put(fix) {
    const { edit } = fix;
    const { notebook } = this;
    this.apply.disabled = true;
    clear(this.said);
    try {
      await guarded(this.said, async () => {
        const { first, target, then } = this.cellsOf(fix);
        if (!target) throw Object.assign(new Error(`No cell of this notebook has the text of ${edit.cell} any more, because it was changed or deleted.`), { hint: "%heal --apply puts the fix into a new cell." });
        if (!notebook.has(target, edit.code)) {
          const chosen = this.similar.filter(({ box }) => box.checked);
          notebook.edit([{ cell: target, before: edit.source, code: edit.code }, ...chosen]);
          this.similar = this.similar.filter((one) => !chosen.includes(one));
        }
        if (notebook.runs) await this.runAll([...first, { ...edit, source: edit.code, at: target }, ...then]);
      });
    } finally {
      const { target } = this.cellsOf(fix);
      this.drawAction(fix, target);
    }
  }

  /** One after the other; the first that fails, or is another cell by now, is the last. */
  async runAll(steps) {
    for (const [index, { cell, source, at }] of steps.entries()) {
      const rest = steps.slice(index).map((step) => step.cell);
      const left = rest.length > 1 ? ` Not run: ${listed(rest.slice(1))}.` : "";
      if (!at) return this.tell(`No cell of this notebook has the text of ${cell} any more.${left}`, "hk-note");
      if (!this.notebook.has(at, source)) return this.tell(`${cell} was changed since it failed. Look at it, and run it yourself.${left}`, "hk-note");
      if (!(await progress(this.said, `Running ${cell}`, this.notebook.run(at), { stoppable: false }))) return this.tell(`✗ ${cell} failed.${left}`, "hk-bad");
    }
    return this.tell(`✓ ${listed(steps.map(({ cell }) => cell))} ran.`, "hk-good");
  }

  tell(said, look) {
    clear(this.said, h("p", { class: look }, said));
  }

  close() {
    this.editor?.close();
    this.editor = null;
  }
}
