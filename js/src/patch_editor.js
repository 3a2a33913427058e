// The patch editor: code beside any revision, Try, then Accept or Discard.
import { block, button, clear, code, fold, h, hiddenNote } from "./dom.js";
import { Beside, small } from "./editor.js";
import { guarded } from "./frame.js";
import { History } from "./history.js";
import { progress } from "./link.js";
import { outcome } from "./run.js";

const REMEMBER_MS = 400;

export class PatchEditor {
  /** `memory` is what the kernel kept of an unsaved patch; `onclose`, if given, is what Discard ends with. */
  constructor({ link, tool, persona, logId = null, memory = null, onclose = null, onsaved = null }) {
    Object.assign(this, { link, tool, persona, logId, memory, onclose, onsaved });
    this.key = `draft:${tool}:${persona}`;
    this.element = h("div", { class: "hk-part hk-editor", role: "group", "aria-label": `patch editor of ${tool}` });
    this.tried = null;
  }

  async start() {
    await guarded(this.element, async () => {
      this.opened = await progress(this.element, "Opening", this.link.ask("edit", { tool: this.tool, persona: this.persona, log_id: this.logId }), { stoppable: false });
      this.base = this.opened.revision;
      this.baseCode = this.opened.code;
      this.compared = this.base;
      this.draw();
    });
    return this;
  }

  draw() {
    const { opened } = this;
    this.history = new History({ oncompare: (number) => this.compare(number), onrevert: (number) => this.revert(number) });
    this.select = h("select", { class: "hk-input", onchange: () => this.compare(Number(this.select.value)) });
    this.comparing = h("label", { class: "hk-line", hidden: true }, "Compare with ", this.select);
    this.two = h("input", { type: "checkbox", onchange: () => this.sideBySide(this.two.checked) });
    this.tryButton = button("▶ Try", () => this.try(), { class: "hk-primary", title: "Run this code in a fresh restricted worker; nothing is saved (Ctrl-Enter)" });
    this.acceptButton = button("✓ Accept", () => this.accept(), { title: "Save it as the next revision" });
    this.discardButton = button("Discard", () => this.discard());
    this.rerunButton = button("↻ Re-run", () => this.rerun());
    this.reason = h("input", { class: "hk-input", "aria-label": "reason for this revision", placeholder: "reason, kept in the history", onkeydown: (event) => event.key === "Escape" && this.acceptButton.focus() });
    this.said = h("div", { class: "hk-said", role: "status" });
    this.results = h("div", { class: "hk-results" });
    const code = h("div", { class: "hk-code-area" });
    const argumentsArea = h("div", { class: "hk-arguments-area" });
    clear(
      this.element,
      h("div", { class: "hk-line hk-spread" }, h("span", {}, "Your edit of ", h("b", { class: "hk-mono" }, opened.label)), h("span", { class: "hk-line" }, this.comparing, h("label", { class: "hk-line" }, this.two, "side by side"))),
      code,
      h("div", { class: "hk-arguments" }, h("div", { class: "hk-line hk-spread" }, h("span", {}, "Arguments (JSON)"), button("Reset", () => this.args.set(opened.arguments), { class: "hk-quiet" })), argumentsArea, this.keptPart(), hiddenNote(opened.hidden), this.schemaPart()),
      h("div", { class: "hk-actions" }, this.tryButton, this.acceptButton, this.reason, this.discardButton, opened.log_id ? this.rerunButton : null),
      this.said,
      this.results,
      h("div", {}, h("div", { class: "hk-label" }, "History"), this.history.element),
    );
    const keys = { onleave: () => this.tryButton.focus(), onrun: () => this.try() };
    this.code = new Beside({ parent: code, language: opened.type === "sql" ? "sql" : "python", theirs: opened.code, mine: this.memory?.code ?? opened.code, onchange: () => this.changed(), narrow: true, ...keys });
    this.args = small({ parent: argumentsArea, doc: this.memory?.arguments ?? opened.arguments, language: "json", label: "arguments", onchange: () => this.changed(), ...keys });
    this.showHistory(opened.history);
    this.mark();
    this.label();
    if (this.memory && this.memory.base !== this.base) this.say(`Unsaved changes were kept; they are based on v${this.memory.base}, but v${this.base} is active now.`);
    else if (this.memory) this.say("Unsaved changes were kept.");
  }

  sideBySide(on) {
    this.two.checked = on;
    this.comparing.hidden = !on;
    this.code.setNarrow(!on);
    this.mark();
  }

  /** The arguments that are no JSON, or too long for the box: they are used as they were. */
  keptPart() {
    const { kept } = this.opened;
    if (!kept.length) return null;
    return h("ul", { class: "hk-plain", "aria-label": "arguments that are used unchanged" }, kept.map(({ name, text }) => h("li", { class: "hk-prewrap" }, code(name), `: ${text}`)));
  }

  /** The input schema, which arguments are checked against; it belongs to the tool, not to a revision. */
  schemaPart() {
    const place = h("div", { class: "hk-arguments-area" });
    const came = h("div", { role: "status" });
    const save = button("Save schema", () => this.saveSchema(came, this.schema.text()));
    const again = button("Read it from the code", () => this.saveSchema(came, ""), { title: "From then on it follows the code" });
    const part = fold("Input schema", place, h("div", { class: "hk-actions" }, save, again), came);
    part.addEventListener("toggle", () => {
      if (part.open && !this.schema) this.schema = small({ parent: place, doc: JSON.stringify(this.opened.schema, null, 2), language: "json", label: "input schema", onleave: () => save.focus() });
    });
    return part;
  }

  saveSchema(place, text) {
    return guarded(place, async () => {
      clear(place);
      const saved = await this.link.ask("schema", { tool: this.opened.tool, persona: this.opened.persona, text });
      this.opened.schema = saved.schema;
      this.schema.set(JSON.stringify(saved.schema, null, 2));
      clear(place, h("p", { class: "hk-good" }, saved.derived ? "✓ Schema read from the code." : "✓ Schema saved."));
    });
  }

  showHistory(revisions) {
    clear(this.select, [...revisions].reverse().map((one) => h("option", { value: String(one.number), selected: one.number === this.compared }, `v${one.number}${one.active ? " (active)" : ""}`)));
    this.history.show(revisions, this.compared);
    this.revisions = revisions;
  }

  /** The line that failed, on either side that shows the revision it failed in. */
  mark() {
    const { failing } = this.opened;
    this.code.markFailing("theirs", failing && this.compared === failing.revision ? failing : null);
    const untouched = !this.memory && !this.accepted && this.base === failing?.revision;
    this.code.markFailing("mine", failing && untouched ? failing : null);
  }

  isChanged() {
    return this.code.text() !== this.baseCode;
  }

  changed() {
    this.label();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.remember(), REMEMBER_MS);
  }

  remember() {
    const kept = this.isChanged() || this.args.text() !== this.opened.arguments ? { code: this.code.text(), arguments: this.args.text(), base: this.base } : null;
    this.link.ask("remember", { key: this.key, value: kept }).catch(() => {});
  }

  /** Accept says what it would accept. */
  label() {
    const seen = this.tried && this.tried.code === this.code.text() ? this.tried.ok : null;
    this.acceptButton.disabled = !this.isChanged();
    this.acceptButton.textContent = seen === null ? "✓ Accept untried" : seen ? "✓ Accept" : "✓ Accept although it fails";
    if (!this.isChanged()) this.acceptButton.textContent = "✓ Accept";
    this.acceptButton.classList.toggle("hk-primary", seen === true && this.isChanged());
  }

  say(text, tone = "") {
    clear(this.said, text ? h("p", { class: tone }, text) : null);
  }

  /** Do one thing at a time; what goes wrong is shown in the panel. `waits`: after what is done now, and not never. */
  async busy(work, { waits = false } = {}) {
    const buttons = [this.tryButton, this.acceptButton, this.rerunButton, this.discardButton];
    while (waits && this.working) await this.working;
    if (this.working) return;
    let done;
    this.working = new Promise((resolve) => (done = resolve));
    const focused = this.element.getRootNode().activeElement;
    for (const one of buttons) one.disabled = true;
    try {
      await guarded(this.results, work);
    } finally {
      this.working = null;
      done();
      for (const one of buttons) one.disabled = false;
      this.label();
      if (buttons.includes(focused) && !focused.disabled) focused.focus();
    }
  }

  try() {
    return this.busy(async () => {
      const code = this.code.text();
      const answer = this.link.ask("try_code", { tool: this.opened.tool, persona: this.persona, code, arguments: this.args.text(), log_id: this.opened.log_id });
      clear(this.results);
      this.say("");
      const came = await progress(this.results, "Trying in a restricted worker", answer);
      this.tried = { code, ok: came.run.ok };
      const { failure } = came.run;
      if (code === this.code.text()) this.code.markFailing("mine", failure?.lineno ? { lineno: failure.lineno, message: failure.summary } : null);
      clear(this.results, outcome(came));
    });
  }

  accept() {
    return this.busy(async () => {
      const code = this.code.text();
      const { tool, persona, log_id } = this.opened;
      const saved = await progress(this.results, "Saving", this.link.ask("accept", { tool, persona, code, parent: this.base, reason: this.reason.value, log_id }), { stoppable: false });
      if (saved.conflict) {
        this.conflict(saved);
        return;
      }
      this.accepted = true;
      this.base = saved.revision;
      this.baseCode = code;
      this.memory = null;
      this.link.ask("remember", { key: this.key, value: null }).catch(() => {});
      this.element.querySelector("b.hk-mono").textContent = saved.label;
      this.showHistory(saved.history);
      this.mark();
      this.say(saved.changed ? `✓ ${saved.label} is active.` : `${saved.label} already has this code.`, "hk-good");
      this.onsaved?.(saved);
      if (this.opened.log_id) setTimeout(() => this.rerunButton.focus());
    });
  }

  /** Somebody else was first: show what they made of it, and build upon that. */
  conflict({ conflict, history }) {
    this.base = conflict.revision;
    this.baseCode = conflict.code;
    this.compared = conflict.revision;
    this.code.compareWith(conflict.code);
    this.sideBySide(true);
    this.showHistory(history);
    this.mark();
    clear(
      this.results,
      h(
        "div",
        { class: "hk-problem", role: "alert" },
        h("b", {}, `✗ v${conflict.revision} was saved in the meantime. `),
        "Your code is unchanged and is now compared with it. Merge the two, then press Accept again.",
        fold("Both sides", block(conflict.message)),
      ),
    );
  }

  compare(number) {
    return guarded(this.results, async () => {
      const code = await this.link.ask("code", { tool: this.opened.tool, persona: this.opened.persona, revision: number });
      this.compared = number;
      this.code.compareWith(code);
      this.sideBySide(true);
      this.showHistory(this.revisions);
      this.mark();
    });
  }

  revert(number) {
    return this.busy(async () => {
      const saved = await this.link.ask("revert", { tool: this.opened.tool, persona: this.opened.persona, to: number });
      this.accepted = true;
      this.base = this.compared = saved.revision;
      this.baseCode = saved.code;
      this.code.set(saved.code);
      this.code.compareWith(saved.code);
      this.showHistory(saved.history);
      this.mark();
      this.element.querySelector("b.hk-mono").textContent = saved.label;
      this.say(`✓ ${saved.label} is active (the code of v${number} again).`, "hk-good");
      this.onsaved?.(saved);
    }, { waits: true });
  }

  rerun() {
    return this.busy(async () => {
      clear(this.results);
      const came = await progress(this.results, "Running in a restricted worker", this.link.ask("rerun", { log_id: this.opened.log_id }));
      clear(this.results, outcome(came));
      this.showHistory(await this.link.ask("history", { tool: this.opened.tool, persona: this.opened.persona }));
    });
  }

  discard() {
    this.code.set(this.baseCode);
    this.args.set(this.opened.arguments);
    this.memory = null;
    this.tried = null;
    clear(this.results);
    this.say("");
    this.mark();
    this.link.ask("remember", { key: this.key, value: null }).catch(() => {});
    this.onclose?.();
  }

  focus() {
    this.code?.focus();
  }

  close() {
    clearTimeout(this.timer);
    this.code?.close();
    this.args?.close();
    this.schema?.close();
  }
}
