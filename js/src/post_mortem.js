// The post-mortem: frames, locals and an expression line on a failed run's worker.
import { block, button, clear, code, h, hiddenNote } from "./dom.js";
import { guarded } from "./frame.js";
import { progress } from "./link.js";

export class PostMortem {
  constructor({ link, logId }) {
    Object.assign(this, { link, logId });
    this.frame = null;
    this.asked = [];
    this.element = h("div", { class: "hk-part", role: "group", "aria-label": "post-mortem" });
  }

  async start() {
    await guarded(this.element, async () => {
      this.frames = await progress(this.element, "Asking the worker of the failed execution", this.link.ask("pm_frames", { log_id: this.logId }), { stoppable: false });
      this.draw();
      const own = this.frames.filter((frame) => frame.own);
      const innermost = (own.length ? own : this.frames).at(-1);
      if (innermost) await this.choose(innermost.number);
    });
  }

  draw() {
    const options = this.frames.map((frame) => h("option", { value: String(frame.number) }, `${frame.own ? "" : "(library) "}#${frame.number} ${frame.where}`));
    this.select = h("select", { class: "hk-input", "aria-label": "frame", onchange: () => this.choose(Number(this.select.value)) }, options);
    this.line = h("div", {});
    this.locals = h("div", {});
    this.answers = h("div", { class: "hk-answers", role: "log" });
    this.input = h("input", { class: "hk-input hk-mono", "aria-label": "expression to evaluate in this frame", placeholder: "expression, such as len(rows)", spellcheck: "false", autocomplete: "off", onkeydown: (event) => this.key(event) });
    this.run = button("Evaluate", () => this.evaluate());
    clear(
      this.element,
      h("label", { class: "hk-line" }, "Frame ", this.select),
      this.line,
      this.locals,
      this.answers,
      h("div", { class: "hk-line" }, this.input, this.run),
      h("p", { class: "hk-muted" }, "Evaluated in the worker of the failed execution, with its restrictions, for at most 5 s."),
    );
  }

  async choose(number) {
    this.frame = number;
    this.select.value = String(number);
    const frame = this.frames.find((one) => one.number === number);
    clear(this.line, frame?.line ? block(frame.line) : null);
    await guarded(this.locals, async () => {
      const found = await this.link.ask("pm_locals", { log_id: this.logId, frame: number });
      const rows = found.locals.map((one) => h("tr", {}, h("td", {}, code(one.name)), h("td", { class: "hk-muted" }, one.type), h("td", {}, code(one.repr))));
      clear(
        this.locals,
        rows.length
          ? h("div", { class: "hk-scroll", tabindex: "0", role: "group", "aria-label": "locals" }, h("table", { class: "hk-table" }, h("thead", {}, h("tr", {}, ["name", "type", "value"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)))
          : h("p", { class: "hk-muted" }, "No locals in this frame."),
        hiddenNote(found.hidden),
      );
    });
  }

  key(event) {
    if (event.key === "Enter") this.evaluate();
    if (event.key === "Escape") this.run.focus();
    if (event.key === "ArrowUp" && this.asked.length) this.input.value = this.asked.at(-1);
  }

  async evaluate() {
    const expression = this.input.value.trim();
    if (!expression) return;
    this.asked.push(expression);
    await guarded(this.element, async () => {
      const done = await progress(this.element, "Evaluating", this.link.ask("pm_eval", { log_id: this.logId, frame: this.frame, expression }), { stoppable: false });
      this.answers.append(
        h(
          "div",
          { class: "hk-answer" },
          h("div", { class: "hk-mono hk-muted" }, `>>> ${expression}`),
          done.output ? block(done.output) : null,
          done.ok ? block(done.value, { title: done.type }) : h("pre", { class: "hk-block hk-bad" }, `✗ ${done.error}`),
        ),
      );
      this.input.value = "";
      this.input.focus();
    });
  }
}
