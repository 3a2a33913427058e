// The audit panel: the steps of an execution, and for a decision its data and its analysis, each in a pane of its own.
import { block, button, clear, code, count, fold, h } from "./dom.js";
import { guarded } from "./frame.js";
import { progress } from "./link.js";

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  audit: ["M8 1 2.5 3v5c0 3.4 2.4 5.9 5.5 7 3.1-1.1 5.5-3.6 5.5-7V3z", "m5.3 8 2 2 3.4-4"],
  data: ["M2.5 3.5v9c0 1.2 2.5 2.2 5.5 2.2s5.5-1 5.5-2.2v-9", "M2.5 3.5c0-1.2 2.5-2.2 5.5-2.2s5.5 1 5.5 2.2-2.5 2.2-5.5 2.2-5.5-1-5.5-2.2", "M2.5 8c0 1.2 2.5 2.2 5.5 2.2s5.5-1 5.5-2.2"],
  analysis: ["M9 1.5 3.5 9h4L7 14.5 12.5 7h-4z"],
};
const TONES = { good: "hk-good", warn: "hk-warn", bad: "hk-bad", quiet: "hk-muted" };

let panes = 0;

function icon(kind) {
  const drawn = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ viewBox: "0 0 16 16", width: "16", height: "16", class: "hk-icon", "aria-hidden": "true" })) drawn.setAttribute(name, value);
  for (const path of ICONS[kind]) {
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", path);
    drawn.append(line);
  }
  return drawn;
}

/** A pane: a region with a heading that names it. */
function pane(kind, heading, ...content) {
  const id = `hk-pane-${(panes += 1)}`;
  const title = h("div", { class: "hk-pane-head", id, role: "heading", "aria-level": "4" }, icon(kind), ` ${heading}`);
  return h("section", { class: `hk-pane hk-pane-${kind}`, "aria-labelledby": id }, title, h("div", { class: "hk-pane-body" }, content));
}

const facts = (rows) => h("dl", { class: "hk-facts" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

function table(label, headers, rows) {
  const head = h("tr", {}, headers.map((name) => h("th", { scope: "col" }, name)));
  const body = rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell))));
  return h("div", { class: "hk-scroll", tabindex: "0", role: "group", "aria-label": label }, h("table", { class: "hk-table" }, h("thead", {}, head), h("tbody", {}, body)));
}

function step(one) {
  const state = h("b", { class: `hk-nowrap ${TONES[one.tone] ?? ""}` }, `${one.mark} ${one.state}`);
  const tool = one.tool ? [" ", code(one.tool)] : null;
  const summary = h("summary", {}, `${one.seq}. `, state, " ", code(one.choice), tool, ` ${one.said}`);
  const held = block(one.facts.map(([name, text]) => `${name.padEnd(10)}  ${text}`).join("\n"), { "aria-label": `details of step ${one.seq}` });
  return h("li", {}, h("details", { class: `hk-audited ${one.apart ? `hk-apart ${TONES[one.tone]}` : ""}`, dataset: { seq: String(one.seq) } }, summary, held));
}

/** A text in which what stands between `~~` is struck out, also for a screen reader. */
function struck(text) {
  const pieces = text.split(/~~(.+?)~~/);
  return pieces.map((piece, at) => (at % 2 ? h("del", { class: "hk-muted" }, h("span", { class: "hk-unseen" }, "struck out: "), piece) : piece));
}

export class AuditPanel {
  /** `about` names the execution, where the other half does not know it. */
  constructor({ link, about = {} }) {
    Object.assign(this, { link, about, shown: 0 });
    this.element = h("div", { class: "hk-part hk-audit", role: "group", "aria-label": "audit, data and analysis" });
  }

  async start() {
    await guarded(this.element, async () => {
      this.found = await progress(this.element, "Reading the audit", this.link.ask("audit_open", this.about), { stoppable: false });
      this.draw();
    });
  }

  draw() {
    const { found } = this;
    clear(
      this.element,
      h("div", { class: `hk-headline ${TONES[found.tone] ?? ""}`, role: "heading", "aria-level": "3" }, h("b", {}, found.title)),
      found.question ? h("p", {}, h("b", {}, found.question)) : null,
      found.reason ? h("p", { class: "hk-muted" }, found.reason) : null,
      found.notes.map((note) => h("p", { class: "hk-note" }, `⚠ ${note}`)),
      this.audit(),
      found.apart ? [this.data(), this.analysis()] : null,
    );
    this.add(found.steps);
  }

  audit() {
    this.list = h("ol", { class: "hk-plain hk-audited-list", "aria-label": "steps" });
    this.count = h("span", { class: "hk-muted", role: "status" });
    this.more = button("More steps", () => this.next(), { class: "hk-quiet" });
    const open = (all) => () => { for (const one of this.list.querySelectorAll("details")) one.open = all; };
    const tools = h("div", { class: "hk-actions" }, button("Open all", open(true), { class: "hk-quiet" }), button("Close all", open(false), { class: "hk-quiet" }));
    return pane("audit", "Audit", facts(this.found.summary), tools, this.list, h("div", { class: "hk-line" }, this.more, this.count));
  }

  add(steps) {
    this.list.append(...steps.map(step));
    this.shown += steps.length;
    this.more.hidden = this.shown >= this.found.total;
    this.count.textContent = this.more.hidden ? count(this.found.total, "step") : `${this.shown} of ${count(this.found.total, "step")}`;
  }

  async next() {
    await guarded(this.list.parentElement, async () => {
      const { steps } = await this.link.ask("audit_steps", { ...this.about, after: this.shown });
      const at = this.shown;
      this.add(steps);
      this.list.querySelectorAll("summary")[at]?.focus();
    });
  }

  data() {
    const { data, files } = this.found;
    const written = files.length ? fold(`${count(files.length, "file")} written`, h("ul", { class: "hk-plain" }, files.map((file) => h("li", {}, code(file))))) : null;
    if (!data) return pane("data", "Data", h("p", {}, "No result."), written);
    this.file = h("input", { class: "hk-input hk-mono", "aria-label": "export file, .csv or .parquet", value: data.file, spellcheck: "false", autocomplete: "off", onkeydown: (event) => event.key === "Enter" && this.save() });
    this.said = h("div", { role: "status" });
    const left = data.left_out ? h("p", { class: "hk-muted" }, `… ${count(data.left_out, "more column")}`) : null;
    return pane(
      "data",
      "Data",
      facts([["view", code(data.name)], ["shape", data.shape]]),
      data.rows.length ? [h("p", { class: "hk-muted" }, data.label), table("first rows", data.headers, data.rows)] : null,
      data.columns.length ? fold(`Columns: ${count(data.columns.length + data.left_out, "column")}`, table("columns", ["column", "dtype", "nulls"], data.columns.map(([name, ...rest]) => [code(name), ...rest])), left) : null,
      this.link.readOnly ? null : [h("div", { class: "hk-actions" }, h("span", { class: "hk-muted" }, "Export to"), this.file, button("Export", () => this.save(), { class: "hk-primary" })), this.said],
      fold("The same in Python", block(data.command)),
      written,
    );
  }

  async save() {
    clear(this.said);
    await guarded(this.said, async () => {
      const { file, shape } = await this.link.ask("audit_export", { file: this.file.value });
      clear(this.said, h("p", { class: "hk-good" }, `✓ Written: ${shape} to `, code(file)));
    });
  }

  analysis() {
    const { analysis, label, no_analysis: none } = this.found;
    const text = analysis ? h("p", { class: "hk-prewrap" }, struck(analysis)) : h("p", { class: "hk-muted" }, none);
    return pane("analysis", "Analysis", h("span", { class: "hk-badge" }, label), text);
  }
}
