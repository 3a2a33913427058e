// The heal panel: Start, progress and Stop, a question, consent, and what came of it.
import { button, clear, code, coded, count, fold, h } from "./dom.js";
import { Beside } from "./editor.js";
import { guarded } from "./frame.js";
import { HealTimeline } from "./heal_timeline.js";
import { progress } from "./link.js";
import { PatchEditor } from "./patch_editor.js";
import { outcome } from "./run.js";

const TICK_MS = 500;
/** So long after its budget, with no word from the kernel, something is wrong; validation may take some seconds. */
const SILENT_S = 20;
const RUNNING = ["working", "question", "consent", "keeping"];
const GONE = "The kernel does not answer: it was restarted or has ended, and so has the healing. `%healkit requests` lists the patches that are waiting for approval. Run the cell again for a new panel.";

function diffLines(text) {
  const look = (line) => (/^(\+\+\+|---|@@)/.test(line) ? "hk-muted" : line.startsWith("+") ? "hk-plus" : line.startsWith("-") ? "hk-minus" : "");
  return h("pre", { class: "hk-block", tabindex: "0", "aria-label": "the change" }, text.trimEnd().split("\n").map((line) => h("span", { class: look(line) }, `${line}\n`)));
}

/** A frame, as the lines of a table. */
function table(text, more = {}) {
  return h("pre", { class: "hk-block hk-table", ...more }, text);
}

export class Heal {
  /**
   * `logId` is the failure that is meant, or null; `headed` is whether the tool and its failure are named on top; `atOnce` is whether it begins by itself;
   * `carded` takes the static card anew, where there is one above; `onsaved` is told when another revision may be active.
   * `notebook` has the `%%tool` cells that a kept patch goes into; `failingCell` gives the cell to be run after that, or null.
   */
  constructor({ link, tool, persona, logId = null, headed = true, atOnce = false, notebook = null, failingCell = () => null, carded = null, onsaved = null }) {
    Object.assign(this, { link, tool, persona, logId, headed, atOnce, notebook, failingCell, carded, onsaved });
    this.element = h("div", { class: "hk-part hk-heal", role: "group", "aria-label": `healing of ${tool}`, tabindex: "-1" });
    this.version = 0;
    this.shown = "";
    this.editors = [];
  }

  ask(op, more = {}) {
    return this.link.ask(op, { tool: this.tool, persona: this.persona, ...more });
  }

  async start() {
    await guarded(this.element, async () => {
      this.deaf = this.link.hear("heal", (event) => event.tool === this.tool && event.persona === this.persona && this.take(event.state));
      this.unbound = this.link.hear("live", (live) => live && this.refresh());
      this.opened = await progress(this.element, "Opening", this.ask("heal_open", { log_id: this.logId }), { stoppable: false });
      this.draw();
      this.take(this.opened.state);
      if (this.atOnce && this.state.phase === "idle") this.begin();
      this.ticking = setInterval(() => this.tick(), TICK_MS);
    });
    return this;
  }

  focus() {
    (this.startButton.hidden ? this.place.querySelector("button") : this.startButton)?.focus();
  }

  draw() {
    const { opened } = this;
    this.boxes = new Map(opened.advisors.map((one) => [one.name, h("input", { type: "checkbox", checked: one.chosen, disabled: Boolean(one.why_not) })]));
    const label = (one) => h("label", { class: "hk-line hk-nowrap", title: one.why_not || null }, this.boxes.get(one.name), one.name);
    this.budget = h("input", { class: "hk-input hk-seconds", type: "number", min: "1", max: "86400", step: "any", value: String(opened.budget_s), "aria-label": "seconds for the whole healing" });
    this.startButton = button("✚ Heal", () => this.begin(), { class: "hk-primary", title: "Look for a patch; nothing is kept without your approval" });
    const missing = opened.advisors.filter((one) => one.why_not);
    this.form = h(
      "form",
      { class: "hk-actions", onsubmit: (event) => { event.preventDefault(); this.begin(); } },
      this.startButton,
      fold(
        "Settings",
        h("fieldset", { class: "hk-asked" }, h("legend", {}, "look in"), opened.advisors.map(label)),
        h("label", { class: "hk-line" }, "for up to ", this.budget, " s"),
        missing.map((one) => h("p", { class: "hk-muted hk-prewrap" }, `${one.name}: ${one.why_not}`)),
      ),
    );
    this.said = h("div", { role: "status", class: "hk-unseen" });
    this.problems = h("div", {});
    this.place = h("div", {});
    this.more = h("div", {});
    const unfailed = `no failure on record; ${count(opened.examples, "example")} to check with`;
    const why = opened.failure ? h("span", { class: "hk-bad hk-prewrap" }, `✗ ${opened.failure}`) : h("span", { class: "hk-muted" }, unfailed);
    const head = this.headed ? h("div", { class: "hk-headline" }, h("b", {}, `Heal ${opened.label} `), why) : null;
    clear(this.element, head, this.form, this.said, this.place, this.problems, this.more);
  }

  /** A state from the kernel; one that is older than what is shown is no news. */
  take(state) {
    if (state.version <= this.version || !this.place) return;
    this.version = state.version;
    this.state = state;
    this.heardAt = Date.now();
    this.show();
  }

  /** What has the focus, if that is in here. */
  get focused() {
    const { activeElement } = this.element.getRootNode();
    return this.element.contains(activeElement) ? activeElement : null;
  }

  get running() {
    return RUNNING.includes(this.state?.phase);
  }

  show() {
    const { state } = this;
    const inside = this.focused !== null;
    this.form.hidden = this.running;
    const again = state.phase === "done";
    this.startButton.textContent = again ? "✚ Heal again" : "✚ Heal";
    this.startButton.classList.toggle("hk-primary", !again);
    // What came of it is read first; whether to go on is asked below.
    const anchor = again ? this.problems : this.said;
    if (this.form.nextSibling !== anchor) this.element.insertBefore(this.form, anchor);
    const key = `${state.phase} ${state.asked?.number ?? ""} ${state.undone} ${state.settled}`;
    if (key !== this.shown) {
      this.shown = key;
      this.close(true);
      this.said.textContent = "";
      this.card();
      ({ idle: () => clear(this.place), working: () => this.showWork(), keeping: () => this.showWork(), question: () => this.showQuestion(), consent: () => this.showConsent(), done: () => this.showReport(), failed: () => this.showProblem() })[state.phase]();
      // Whoever was in the panel goes on in it; whoever types elsewhere is left alone.
      if (inside && (!this.focused || this.focused === this.element)) (this.place.querySelector("[data-first]") ?? this.element).focus({ preventScroll: true });
    }
    this.tick();
  }

  /** The numbers, and the clock between two words from the kernel. */
  tick() {
    const { state } = this;
    if (!state || !this.running || !this.numbers?.isConnected) return;
    const waits = state.phase === "question" || state.phase === "consent";
    const since = waits || !this.link.live ? 0 : (Date.now() - this.heardAt) / 1000;
    const spent = Math.min(state.spent_s + since, state.budget_s);
    this.bar.value = spent;
    const parts = [
      state.stopping ? "Stopping" : state.phase === "keeping" ? "Saving it, and running it once more" : state.advisor ? `Asking ${state.advisor}` : "Looking at the failure",
      state.tried ? `${count(state.tried, "candidate")} tried` : null,
      `${Math.floor(spent)} of ${state.budget_s} s`,
    ];
    this.numbers.textContent = parts.filter(Boolean).join(" · ");
    const lines = state.sentences.map((sentence) => h("li", {}, coded(sentence)));
    if (this.told !== state.sentences.join("\n")) clear(this.log, lines);
    this.told = state.sentences.join("\n");
    if (since > SILENT_S && state.spent_s + since > state.budget_s + SILENT_S) {
      this.heardAt = Date.now();
      this.link.check();
    }
  }

  /** What is said where the kernel is gone; undefined where it is nothing of this panel's own. */
  get gone() {
    return this.running ? GONE : undefined;
  }

  /** What is so by now: the kernel was away, and what it told meanwhile is lost. */
  refresh() {
    this.shown = "";
    this.ask("heal_open", { log_id: this.logId }).then(({ state }) => this.take(state)).catch(() => {});
  }

  /** The card above, which this page may have missed while it was reloaded. */
  card() {
    if (this.carded) this.link.ask("card").then((data) => data && this.carded(data)).catch(() => {});
  }

  begin() {
    if (this.running) return undefined;
    const advisors = [...this.boxes].filter(([, box]) => box.checked && !box.disabled).map(([name]) => name);
    this.shown = "";
    clear(this.more);
    return this.send("heal_start", { advisors, budget_s: this.budget.valueAsNumber || null, log_id: this.logId }, [this.startButton]);
  }

  /** Ask, with the buttons out of reach until it is answered: what follows comes as a new state. */
  async send(op, more, buttons) {
    const before = this.focused;
    if (before) this.element.focus({ preventScroll: true }); // a disabled button has no focus to hand on
    for (const one of buttons) one.disabled = true;
    clear(this.problems);
    try {
      await guarded(this.problems, async () => {
        const came = await this.ask(op, more);
        if (came?.version) this.take(came);
      });
    } finally {
      for (const one of buttons) one.disabled = false;
      if (this.focused === this.element && before?.isConnected) before.focus({ preventScroll: true });
    }
  }

  showWork() {
    this.bar = h("progress", { max: String(this.state.budget_s), "aria-label": "budget used" });
    this.numbers = h("span", {});
    this.told = null;
    this.log = h("ol", { class: "hk-plain hk-told", role: "log", "aria-label": "what was done" });
    const stop = button("■ Stop", () => {
      stop.textContent = "Stopping…";
      return this.send("heal_stop", {}, []);
    }, { dataset: { first: "" }, title: "Stop it and keep what was found; the kernel continues" });
    clear(this.place, h("div", { class: "hk-progress" }, this.bar, this.numbers, this.state.phase === "keeping" ? null : stop), this.log);
  }

  showQuestion() {
    const { asked } = this.state;
    const buttons = [];
    const say = (more) => this.send("heal_answer", { number: asked.number, ...more }, buttons);
    const choices = asked.choices.map((choice, place) => button([choice.table ? table(choice.table) : code(choice.text), h("span", { class: "hk-muted" }, ` ${choice.patches === 1 ? "1 patch" : `${choice.patches} patches`}`)], () => say({ choice: place }), { "aria-label": `${choice.text}, the result of ${choice.patches} of the patches`, dataset: place ? {} : { first: "" } }));
    const field = h("input", { class: "hk-input hk-mono", "aria-label": "another value", placeholder: "another value: JSON, text, or raises ValueError", spellcheck: "false", autocomplete: "off" });
    const other = button("Answer", () => say({ said: field.value }));
    const unknown = button("I don't know", () => say({}));
    buttons.push(...choices, other, unknown);
    clear(
      this.place,
      h(
        "div",
        { class: "hk-outcome hk-asks", role: "group", "aria-label": "question" },
        h("div", { class: "hk-headline" }, h("b", {}, `What is the right result of `), code(asked.call), h("b", {}, " ?")),
        asked.tables.map(({ name, text }) => h("div", {}, h("span", { class: "hk-muted" }, code(name)), table(text, { "aria-label": `the table ${name}`, tabindex: "0" }))),
        h("p", { class: "hk-muted" }, `Patches that pass every check give different results here. Question ${asked.number} of at most 3; the answer becomes an example of the tool.`),
        h("div", { class: "hk-actions", role: "group", "aria-label": "results of the patches" }, choices),
        h("form", { class: "hk-actions", onsubmit: (event) => { event.preventDefault(); if (!other.disabled) other.click(); } }, field, other, unknown, this.stopButton()),
      ),
    );
    this.said.textContent = "healkit has a question.";
  }

  stopButton() {
    return button("■ Stop", () => this.send("heal_stop", {}, []), { title: "Stop it; the question counts as not answered" });
  }

  showConsent() {
    const { asked } = this.state;
    const buttons = [];
    const decide = (decision) => this.send("heal_decide", { number: asked.number, decision }, buttons);
    const sure = asked.verdict === "cured";
    const runs = this.failingCell() !== null;
    const kept = () => {
      this.chosen = (this.cells ?? []).filter(({ box }) => box.checked);
      return decide("keep");
    };
    const keep = button(runs ? "✓ Keep and run" : "✓ Keep", kept, { class: sure ? "hk-primary" : "", title: `Save it as the next revision and run it once more${runs ? ", then run the failing cell" : ""}. You can undo it` });
    const decline = button("Decline", () => decide("decline"), { title: "Nothing is changed" });
    const later = button("Later", () => decide("later"), { title: "It stays as a request: %healkit requests" });
    buttons.push(keep, decline, later);
    const area = h("div", { class: "hk-code-area" });
    const cells = h("div", { class: "hk-cells" });
    this.offerCells(cells, asked.revision);
    clear(
      this.place,
      h(
        "div",
        { class: "hk-outcome hk-asks", role: "group", "aria-label": "consent", dataset: { verdict: asked.verdict } },
        h("div", { class: `hk-headline hk-${asked.tone}` }, h("b", {}, `A patch: ${asked.words}`)),
        asked.means ? h("p", {}, asked.means) : null,
        h("p", { class: "hk-prewrap" }, coded(asked.reason), h("span", { class: "hk-muted" }, ` (${asked.advisor}; ${asked.held})`)),
        area,
        cells,
        h("div", { class: "hk-actions" }, keep, decline, later, h("span", { class: "hk-muted" }, "Nothing is changed before you decide.")),
      ),
    );
    keep.dataset.first = "";
    this.editors.push(new Beside({ parent: area, language: this.opened.type === "sql" ? "sql" : "python", theirs: asked.base, mine: asked.code, readOnly: true }));
    this.said.textContent = "A patch is waiting for your approval.";
  }

  /** A box for each `%%tool` cell that has the code that the patch was made from. */
  async offerCells(place, revision) {
    this.cells = [];
    if (!this.notebook?.known) return;
    await guarded(place, async () => {
      const base = await this.ask("code", { revision });
      this.cells = this.notebook.ofTool(this.tool, this.persona, base).map((one) => ({ ...one, box: h("input", { type: "checkbox", checked: true }) }));
      if (this.cells.length) clear(place, h("div", { class: "hk-line" }, h("span", { class: "hk-muted" }, "Its new code also goes into"), this.cells.map(({ label, box }) => h("label", { class: "hk-line hk-nowrap" }, box, label))));
    });
  }

  /** Put a patch that is kept into the cells that were chosen, and run the failing cell; take one out that is taken back. */
  async reach({ report, undone }) {
    const { chosen, edited } = this;
    this.chosen = null;
    if (undone && edited) {
      this.edited = null;
      await guarded(this.problems, () => this.notebook.edit(edited.map(({ cell, before, code }) => ({ cell, before: code, code: before }))));
    }
    if (!chosen || report.outcome !== "kept" || undone) return;
    await guarded(this.problems, async () => {
      const cell = this.failingCell(); // before the patch goes into it, where it is the cell of the tool too
      if (chosen.length) {
        const code = await this.ask("code", { revision: report.revision });
        this.edited = chosen.map((one) => one.with(code));
        this.notebook.edit(this.edited);
      }
      if (cell) await this.notebook.run(cell);
    });
  }

  showReport() {
    const { report, undone, settled } = this.state;
    const best = report.attempts.find((one) => one.number === report.best);
    const others = report.attempts.filter((one) => one !== best);
    const buttons = [];
    const undo = button("↶ Undo", () => this.send("heal_undo", {}, buttons), { title: "A new revision with the previous code" });
    const steps = button("Step by step", () => this.step(), { "aria-expanded": "false" });
    const edit = button("✎ Change it yourself", () => this.edit(), { "aria-expanded": "false" });
    const kept = report.outcome === "kept" && !undone;
    const again = kept && this.opened.log_id ? button("↻ Re-run", () => this.rerun(again), { class: "hk-primary" }) : null;
    const waits = report.outcome === "pending" && !settled;
    const settle = (decision) => this.send("heal_settle", { decision }, buttons);
    const keep = button("✓ Keep it now", () => settle("keep"), { title: "Save it as the next revision" });
    const decline = button("Decline", () => settle("decline"), { title: "Nothing is changed" });
    buttons.push(undo, keep, decline);
    this.results = h("div", { class: "hk-results" });
    Object.assign(this, { stepsButton: steps, editButton: edit });
    const rows = report.facts.map(([name, value]) => [h("dt", {}, name), h("dd", { class: "hk-prewrap" }, coded(value))]);
    clear(
      this.place,
      h(
        "div",
        { class: `hk-outcome hk-report-card hk-outcome-${report.tone}`, role: "group", "aria-label": "report", dataset: { outcome: report.outcome } },
        h("div", { class: `hk-headline hk-${report.tone}` }, h("b", {}, `${report.mark} ${report.title}`)),
        undone ? h("p", { class: "hk-note" }, `Undone: ${undone} is active, with the previous code.`) : null,
        settled ? h("p", { class: "hk-note" }, settled) : null,
        waits ? h("p", { class: "hk-note" }, "It is waiting for your approval, here or later: ", code(`%healkit requests accept ${report.request_id}`), " or ", code(`%healkit requests decline ${report.request_id}`), ".") : null,
        best?.diff ? diffLines(best.diff) : null,
        h("dl", { class: "hk-facts" }, rows),
        others.length ? fold(`${count(others.length + report.left, "other attempt")}`, others.map((one) => this.attempt(one)), report.left ? h("p", { class: "hk-muted" }, `… and ${report.left} more, in the run folder`) : null) : null,
        h("div", { class: "hk-actions" }, again, kept ? undo : null, waits ? [keep, decline] : null, steps, edit),
        this.results,
      ),
    );
    (again ?? (kept ? undo : steps)).dataset.first = "";
    this.onsaved?.();
    this.reach(this.state);
    this.said.textContent = undone ? `Undone: ${undone}.` : settled || "The healing has ended.";
  }

  /** The failing run once more, with the patch that was kept. */
  async rerun(pressed) {
    pressed.disabled = true;
    await guarded(this.results, async () => {
      clear(this.results);
      clear(this.results, outcome(await progress(this.results, "Running in a restricted worker", this.link.ask("rerun", { log_id: this.opened.log_id }))));
    });
    pressed.disabled = false;
  }

  attempt(one) {
    const summary = h("span", {}, h("b", { class: `hk-${one.tone}` }, `${one.mark} ${one.words} `), h("span", {}, coded(one.reason), h("span", { class: "hk-muted" }, ` (${one.advisor})`)));
    return fold(summary, one.why ? h("p", { class: "hk-prewrap" }, coded(one.why)) : null, one.diff ? diffLines(one.diff) : null);
  }

  showProblem() {
    const { problem } = this.state;
    clear(this.place);
    guarded(this.problems, () => {
      throw Object.assign(new Error(problem.message), problem);
    });
  }

  /** The run, to be stepped through; a second press takes it away. */
  async step() {
    if (this.toggled("steps", this.stepsButton)) return;
    await guarded(this.more, async () => {
      const story = await progress(this.more, "Reading the run", this.ask("heal_story"), { stoppable: false });
      this.put("steps", new HealTimeline({ link: this.link, story }));
    });
  }

  async edit() {
    if (this.toggled("edit", this.editButton)) return;
    await this.put("edit", new PatchEditor({ link: this.link, tool: this.tool, persona: this.persona, logId: this.logId, onsaved: this.onsaved }));
  }

  toggled(name, pressed) {
    const open = this.part?.name === name;
    this.part?.panel.close?.();
    clear(this.more);
    this.part = null;
    for (const one of [this.stepsButton, this.editButton]) one.setAttribute("aria-expanded", String(!open && one === pressed));
    return open;
  }

  async put(name, panel) {
    this.part = { name, panel };
    clear(this.more, h("div", { class: "hk-part" }, panel.element));
    await panel.start();
  }

  /** Let go of what was drawn; `only` that of the last state, and the panel goes on. */
  close(only = false) {
    for (const editor of this.editors) editor.close();
    this.editors = [];
    clear(this.problems ?? h("div"));
    if (only) return;
    clearInterval(this.ticking);
    this.part?.panel.close?.();
    this.deaf?.();
    this.unbound?.();
  }
}
