// The traceback view: message first, then what can be done about it.
import { block, button, clear, code, fold, h, hiddenNote } from "./dom.js";
import { guarded } from "./frame.js";
import { Heal } from "./heal_panel.js";
import { HandOn } from "./hand_on.js";
import { progress } from "./link.js";
import { PatchEditor } from "./patch_editor.js";
import { PostMortem } from "./post_mortem.js";
import { facts, frames, headline, outcome } from "./run.js";

export class TracebackView {
  /** `notebook` is the one with the failing cell, which shows this view; null where that is not so. */
  constructor({ link, logId, memory = {}, notebook = null }) {
    Object.assign(this, { link, logId, memory, notebook });
    this.element = h("div", { class: "hk-view" });
    this.parts = {};
  }

  async start() {
    await guarded(this.element, async () => {
      this.run = await progress(this.element, "Opening", this.link.ask("execution", { log_id: this.logId }), { stoppable: false });
      this.draw();
      const open = this.memory[`open:${this.logId}`];
      if (this.buttons[open]) await this.toggle(open);
    });
    return this;
  }

  /** Say above the failure which revision is active by now; nothing while it is the one that failed. */
  async showActive() {
    const { run } = this;
    const revision = run.failure && run.revision !== null ? await this.link.ask("active", { log_id: this.logId }).catch(() => null) : null;
    const newer = revision !== null && revision !== run.revision;
    this.head.hidden = newer;
    const again = newer && !this.link.readOnly && button("↻ Re-run", () => this.rerun(), { class: "hk-primary" });
    clear(this.now, newer ? h("div", { class: "hk-headline hk-good hk-line" }, h("b", {}, `✓ v${revision} is active.`), again, await this.cellButtons(revision).catch(() => null)) : null);
  }

  /** What puts the active code into the `%%tool` cells that still have the failing one, and runs the failing cell. */
  async cellButtons(revision) {
    const { run, notebook } = this;
    if (!notebook?.known) return null;
    const codeOf = (number) => this.link.ask("code", { tool: run.tool, persona: run.persona, revision: number });
    const [old, code] = await Promise.all([codeOf(run.revision), codeOf(revision)]);
    const cells = notebook.ofTool(run.tool, run.persona, old);
    const put = cells.length > 0 && button(`Put it into ${cells.map(({ label }) => label).join(", ")}`, () => this.put(cells.map((one) => one.with(code))), { title: "One edit, which Ctrl-Z in the cell undoes" });
    const cell = this.failingCell;
    const start = cell && button("▶ Run the cell again", () => notebook.run(cell));
    return [put, start];
  }

  put(changes) {
    return guarded(this.results, async () => {
      this.notebook.edit(changes);
      await this.showActive();
    });
  }

  /** The cell that failed, where it can be run again and has not been changed since. */
  get failingCell() {
    const cell = this.notebook?.runs ? this.notebook.own() : null;
    return cell && !this.notebook.changed(cell) ? cell : null;
  }

  /** Look for a fix, and show it; called by JupyterLab's extension. */
  async look() {
    if (this.buttons?.heal && (this.parts.heal?.element.hidden ?? true)) await this.toggle("heal");
  }

  get gone() {
    return this.parts.heal?.gone;
  }

  draw() {
    const { run } = this;
    const { failure } = run;
    const { readOnly } = this.link; // nothing that would need a kernel
    const known = !readOnly && (failure === null || failure.ran);
    this.buttons = {
      heal: failure?.ran && run.may_heal ? button("✚ Fix", () => this.toggle("heal"), { class: "hk-primary", "aria-expanded": "false", title: "Look for a patch; nothing is kept without your approval" }) : null,
      edit: known ? button("✎ Edit", () => this.toggle("edit"), { "aria-expanded": "false", title: "Change the code and try it with the same arguments" }) : null,
      rerun: known ? button("↻ Re-run", () => this.rerun(), { title: "Run it again with the same arguments" }) : null,
      locals: failure?.ran && !readOnly ? button("Look inside", () => this.toggle("locals"), { "aria-expanded": "false", title: "Variables and expressions in the worker that failed" }) : null,
      share: failure ? button("Share", () => this.toggle("share"), { "aria-expanded": "false" }) : null,
    };
    this.head = h(
      "div",
      {},
      headline(run, failure?.title),
      h("p", { class: "hk-where" }, failure?.line ? [h("span", { class: "hk-muted" }, `${failure.place}: `), code(failure.line, { class: "hk-code hk-mark" })] : null, failure?.ending ? h("span", { class: "hk-muted" }, ` ${failure.ending}`) : null),
    );
    const record = fold(failure ? "Frames, arguments and record" : "Value, arguments and record", run.ok ? block(run.value) : null, failure ? frames(failure) : null, facts(run), failure?.traceback ? fold("Full traceback", block(failure.traceback)) : null);
    record.open = Boolean(readOnly);
    this.results = h("div", { class: "hk-results" });
    this.now = h("div", { role: "status" });
    this.place = h("div", {});
    clear(
      this.element,
      this.now,
      this.head,
      failure?.hint ? h("p", { class: "hk-note" }, failure.hint) : null,
      (run.notes ?? []).map((note) => h("p", { class: "hk-note" }, note)),
      hiddenNote(run.hidden),
      h("div", { class: "hk-actions" }, Object.values(this.buttons)),
      this.results,
      this.place,
      record,
    );
    this.showActive();
  }

  /** Open the editor or the post-mortem below the buttons, or close it; what is typed stays. */
  async toggle(name) {
    const open = this.parts[name];
    if (open) {
      const hidden = (open.element.hidden = !open.element.hidden);
      this.expanded(name, !hidden);
      if (!hidden) open.focus?.();
      return;
    }
    const part = (this.parts[name] = this.made(name));
    this.place.append(part.element);
    this.expanded(name, true);
    await part.start?.();
    part.focus?.();
  }

  made(name) {
    const { link, logId } = this;
    if (name === "heal") return new Heal({ link, logId, tool: this.run.tool, persona: this.run.persona, headed: false, atOnce: true, notebook: this.notebook, failingCell: () => this.failingCell, onsaved: () => this.showActive() });
    if (name === "share") return new HandOn({ link, logId });
    return name === "edit" ? this.editor() : new PostMortem({ link, logId });
  }

  editor() {
    const { tool, persona } = this.run;
    return new PatchEditor({
      link: this.link,
      tool,
      persona,
      logId: this.logId,
      memory: this.memory[`draft:${tool}:${persona}`] ?? null,
      onsaved: () => this.showActive(),
      onclose: () => {
        this.parts.edit.element.hidden = true;
        this.expanded("edit", false);
        this.buttons.edit.focus();
      },
    });
  }

  expanded(name, open) {
    this.buttons[name]?.setAttribute("aria-expanded", String(open));
    if (name === "edit" || name === "heal") this.link.ask("remember", { key: `open:${this.logId}`, value: open ? name : null }).catch(() => {});
  }

  async rerun() {
    this.buttons.rerun.disabled = true;
    try {
      await guarded(this.results, async () => {
        clear(this.results);
        const came = await progress(this.results, "Running in a restricted worker", this.link.ask("rerun", { log_id: this.logId }));
        clear(this.results, outcome(came));
      });
    } finally {
      this.buttons.rerun.disabled = false;
    }
  }

  close() {
    for (const part of Object.values(this.parts)) part.close?.();
  }
}
