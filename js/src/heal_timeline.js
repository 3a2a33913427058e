// The heal timeline: a run to be stepped through, and for a class, a pause before each patch.
import { button, clear, code, coded, count, fold, h } from "./dom.js";
import { Beside, shown, small } from "./editor.js";
import { guarded } from "./frame.js";
import { progress } from "./link.js";
import { outcome } from "./run.js";

const PLAY_MS = 2500;
const REMEMBER_MS = 400;
const MARKS = { good: "✓", warn: "!", bad: "✗" };
/** What a key does: to the step before, to the next one, to the first, to the last. */
const KEYS = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" };

const tone = (of) => (of ? `hk-${of}` : "");

export class HealTimeline {
  /** `kept` is the promise of what the kernel remembered of this panel; without a kernel it never comes, and need not. */
  constructor({ link, story, kept }) {
    Object.assign(this, { link, story, kept });
    this.alone = true;
    this.at = 0;
    this.furthest = 0;
    this.revealed = new Set();
    this.mine = story.base ?? "";
    this.editors = [];
    this.element = h("div", { class: "hk-timeline", role: "group", "aria-label": "timeline; the arrow keys go from step to step", tabindex: "-1", onkeydown: (event) => this.key(event) });
  }

  async start() {
    this.draw();
    this.go(0);
    const touched = () => this.furthest > 0 || this.mine !== (this.story.base ?? "");
    this.kept
      ?.then(({ timeline }) => {
        if (!timeline || touched()) return;
        this.revealed = new Set(timeline.revealed);
        this.furthest = timeline.furthest;
        this.mine = timeline.mine ?? this.mine;
        this.go(timeline.at);
      })
      .catch(() => {});
    return this;
  }

  draw() {
    const { story } = this;
    const last = story.steps.length - 1;
    this.strip = h("div", { class: "hk-strip", role: "group", "aria-label": "patches that were tried" });
    this.slider = h("input", { type: "range", class: "hk-slider", min: "0", max: String(Math.max(last, 0)), step: "1", "aria-label": "step", oninput: () => this.go(Number(this.slider.value)) });
    this.count = h("span", { class: "hk-muted hk-nowrap" });
    this.buttons = {
      first: button("⇤", () => this.go(0), { class: "hk-quiet", "aria-label": "first step", title: "First step (Home)" }),
      back: button("←", () => this.go(this.at - 1), { class: "hk-quiet", "aria-label": "step back", title: "Step back (←)" }),
      next: button("→", () => this.next(), { class: "hk-quiet", "aria-label": "step forward", title: "Step forward (→)" }),
      last: button("⇥", () => this.go(last), { class: "hk-quiet", "aria-label": "last step", title: "Last step (End)" }),
      play: button("▶ Play", () => this.play(!this.playing), { class: "hk-quiet", "aria-pressed": "false" }),
    };
    this.place = h("div", { class: "hk-step", role: "region", "aria-label": "what happened", "aria-live": "polite" });
    const heals = story.profile === "heal";
    clear(
      this.element,
      h("div", { class: "hk-line hk-spread" }, h("b", {}, heals ? `How ${story.label || "the tool"} was healed, step by step` : `Run ${story.run_id}, step by step`), this.count),
      this.strip,
      h("div", { class: "hk-line hk-transport" }, Object.values(this.buttons).slice(0, 4), this.slider, this.buttons.play),
      this.place,
      story.problems.length ? fold(`${count(story.problems.length, "note")} about the record`, h("ul", { class: "hk-plain" }, story.problems.map((problem) => h("li", { class: "hk-muted" }, problem)))) : null,
    );
  }

  /** One chip a patch; in a class, how it went shows only once the class has been there. */
  drawStrip() {
    const { story } = this;
    clear(
      this.strip,
      story.attempts.map((attempt) => {
        const judged = story.steps.findLastIndex((step) => step.attempt === attempt.number);
        const known = !story.teach || (this.revealed.has(attempt.number) && this.furthest >= judged);
        const current = story.steps[this.at]?.attempt === attempt.number;
        const look = known ? `${attempt.mark} ${attempt.words}` : "…";
        return h(
          "button",
          { type: "button", class: `hk-chip ${known ? tone(attempt.tone) : ""}`, "aria-current": current ? "step" : null, onclick: () => this.go(attempt.at) },
          h("b", {}, `${attempt.number} ${look}`),
          attempt.advisor ? ` ${attempt.advisor}` : "",
          known && attempt.decision ? h("span", { class: "hk-tag" }, attempt.decision) : null,
        );
      }),
    );
  }

  key(event) {
    const typing = event.target.closest(".cm-editor, textarea, select, input:not([type=range])");
    const does = KEYS[event.key];
    if (!does || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.buttons[does].click();
  }

  next() {
    if (this.pausesAt(this.at)) this.reveal();
    else this.go(this.at + 1);
  }

  pausesAt(position) {
    const step = this.story.steps[position];
    return this.story.teach && step?.kind === "proposed" && !this.revealed.has(step.attempt);
  }

  /** Go to a step; a class gets no further than the next patch that it has not thought about. */
  go(position) {
    const { steps } = this.story;
    let to = Math.max(0, Math.min(position, steps.length - 1));
    if (this.story.teach) {
      const gate = steps.findIndex((_, index) => this.pausesAt(index));
      if (gate >= 0) to = Math.min(to, gate);
    }
    this.at = to;
    this.furthest = Math.max(this.furthest, to);
    this.show();
    this.remember();
  }

  reveal() {
    this.revealed.add(this.story.steps[this.at].attempt);
    this.show();
    this.remember();
  }

  remember() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const value = { at: this.at, furthest: this.furthest, revealed: [...this.revealed], mine: this.mine };
      this.link.ask("remember", { key: "timeline", value }).catch(() => {});
    }, REMEMBER_MS);
  }

  play(on) {
    clearInterval(this.playing);
    this.playing = on ? setInterval(() => this.playOn(), PLAY_MS) : null;
    this.buttons.play.setAttribute("aria-pressed", String(on));
    this.buttons.play.textContent = on ? "❚❚ Pause" : "▶ Play";
    if (on && this.at === this.story.steps.length - 1) this.go(0);
  }

  playOn() {
    const ends = this.at >= this.story.steps.length - 1 || this.pausesAt(this.at) || !this.element.isConnected;
    if (!ends) this.go(this.at + 1);
    if (ends || this.pausesAt(this.at)) this.play(false);
  }

  closeEditors() {
    for (const editor of this.editors) editor.close();
    this.editors = [];
  }

  show() {
    const root = this.element.getRootNode();
    const inside = this.element.contains(root.activeElement);
    const chip = [...this.strip.children].indexOf(root.activeElement);
    this.redraw();
    if (chip >= 0) this.strip.children[chip].focus({ preventScroll: true });
    // A button that was just disabled, or a part that was replaced, must not take the arrow keys with it.
    else if (inside && (root.activeElement?.disabled || !this.element.contains(root.activeElement))) this.element.focus({ preventScroll: true });
  }

  redraw() {
    const { steps } = this.story;
    const step = steps[this.at];
    const text = steps.length ? `Step ${this.at + 1} of ${steps.length}` : "No steps";
    this.count.textContent = step?.after ? `${text} · after ${step.after}` : text;
    this.slider.value = String(this.at);
    this.slider.setAttribute("aria-valuetext", step ? `${text}: ${step.title}` : text);
    for (const name of ["first", "back"]) this.buttons[name].disabled = this.at === 0;
    for (const name of ["next", "last"]) this.buttons[name].disabled = this.at >= steps.length - 1 && !this.pausesAt(this.at);
    this.drawStrip();
    this.closeEditors();
    if (!step) clear(this.place, h("p", { class: "hk-muted" }, "Nothing of this run can be read."));
    else if (this.pausesAt(this.at)) this.showPause(step);
    else this.showStep(step);
  }

  headline(step) {
    return h("div", { class: `hk-headline ${tone(step.tone)}` }, h("b", {}, MARKS[step.tone] ? `${MARKS[step.tone]} ` : ""), h("span", { class: "hk-prewrap" }, coded(step.title)));
  }

  showStep(step) {
    const codes = h("div", {});
    const checks = step.checks?.length ? this.checks(step.checks) : null;
    clear(
      this.place,
      this.headline(step),
      step.text.map((said) => h("p", { class: "hk-prewrap" }, coded(said))),
      checks,
      codes,
      step.facts.length ? h("p", { class: "hk-muted hk-prewrap" }, step.facts.map(([name, value], i) => [i ? " · " : "", `${name} `, coded(value)])) : null,
    );
    if (step.kind === "proposed" && step.code) this.showPatch(codes, step);
    else if (step.code) this.showCode(codes, step.code);
  }

  checks(rows) {
    const item = (row) =>
      h(
        "li",
        { class: "hk-check" },
        h("b", { class: row.mark === "✓" ? "hk-good" : row.mark === "✗" ? "hk-bad" : "hk-muted" }, row.mark),
        h(
          "div",
          {},
          h("div", {}, h("span", { class: "hk-muted" }, `${row.origin} `), row.what ? code(row.what) : null, ` ${row.outcome}`),
          row.got || row.wanted ? h("div", {}, row.got ? ["got ", code(row.got)] : null, row.wanted ? [row.got ? ", wanted " : "wanted ", code(row.wanted)] : null) : null,
        ),
      );
    const failed = rows.filter((row) => row.mark !== "✓");
    const passed = rows.filter((row) => row.mark === "✓");
    const list = (of) => h("ul", { class: "hk-plain hk-checks" }, of.map(item));
    const rest = failed.length && passed.length > 3 ? fold(`✓ ${count(passed.length, "check")} passed`, list(passed)) : list(passed);
    return h("div", { role: "group", "aria-label": "checks" }, failed.length ? list(failed) : null, passed.length ? rest : null);
  }

  showCode(place, text) {
    const area = h("div", { class: "hk-code-area" });
    place.append(area);
    this.editors.push(shown({ parent: area, doc: text, language: "python", label: "the code that failed", failing: this.story.failing }));
  }

  /** The patch against the code that failed; beside it, in a class, what was typed in the pause. */
  showPatch(place, step) {
    const theirs = step.base || this.story.base;
    if (!this.story.teach || this.mine.trim() === theirs.trim()) {
      place.append(this.difference(theirs, step.code, {}));
      return;
    }
    const same = this.mine.trim() === step.code.trim();
    const results = h("div", { class: "hk-results" });
    clear(
      place,
      same ? h("p", { class: "hk-good" }, "✓ The same code, line by line.") : null,
      h(
        "div",
        { class: "hk-two" },
        h("figure", {}, h("figcaption", {}, "Your edit"), this.difference(theirs, this.mine, { narrow: true })),
        h("figure", {}, h("figcaption", {}, "This patch"), this.difference(theirs, step.code, { narrow: true })),
      ),
      h("div", { class: "hk-actions" }, this.tryButton(results)),
      results,
    );
  }

  difference(theirs, mine, { narrow = false }) {
    const area = h("div", { class: "hk-code-area" });
    // Drawn when it has its place: only then is it known how much room there is.
    queueMicrotask(() => area.isConnected && this.editors.push(new Beside({ parent: area, language: "python", theirs, mine, readOnly: true, narrow })));
    return area;
  }

  showPause(step) {
    const known = this.story.steps.slice(0, this.at).findLast((one) => one.kind === "diagnosed");
    const area = h("div", { class: "hk-code-area" });
    const results = h("div", { class: "hk-results" });
    const reveal = button("Show the patch →", () => this.revealed.has(step.attempt) || this.reveal(), { class: "hk-primary", title: "→" });
    const again = button("Start again", () => this.editor.set(this.story.base), { class: "hk-quiet" });
    clear(
      this.place,
      h("div", { class: "hk-headline hk-pause" }, h("b", {}, `Before patch ${step.attempt}: what would you change?`)),
      known ? h("p", { class: "hk-prewrap" }, coded(known.title)) : null,
      area,
      h("div", { class: "hk-actions" }, reveal, this.tryButton(results), again),
      results,
      h("p", { class: "hk-muted" }, "Nothing that you type here is saved in the vault. Esc leaves the editor."),
    );
    this.editor = small({
      parent: area,
      doc: this.mine,
      language: "python",
      label: "your edit",
      failing: this.mine === this.story.base ? this.story.failing : null,
      onchange: () => {
        this.mine = this.editor.text();
        this.remember();
      },
      onleave: () => reveal.focus(),
    });
    this.editors.push(this.editor);
  }

  /** What was typed, on the arguments that failed; the one thing here that needs the kernel. */
  tryButton(results) {
    const pressed = button("▶ Try your edit", async () => {
      pressed.disabled = true;
      clear(results);
      await guarded(results, async () => {
        const came = await progress(results, "Trying in a restricted worker", this.link.ask("try_mine", { code: this.mine }));
        clear(results, outcome(came));
      });
      pressed.disabled = false;
      if (!this.element.contains(this.element.getRootNode().activeElement)) pressed.focus();
    }, { title: "Run it in a fresh restricted worker with the arguments that failed" });
    return pressed;
  }

  close() {
    this.play(false);
    clearTimeout(this.timer);
    this.closeEditors();
  }
}
