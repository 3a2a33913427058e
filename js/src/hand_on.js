// What leaves the notebook: a failure as a notebook of its own, or as a bug report to paste.
import { button, clear, code, h } from "./dom.js";
import { guarded } from "./frame.js";
import { progress } from "./link.js";

export class HandOn {
  constructor({ link, logId }) {
    Object.assign(this, { link, logId });
    this.said = h("div", { role: "status" });
    const save = link.readOnly ? null : button("Save as a notebook", () => this.save(), { title: "Arguments, code and failure, in a notebook that runs without healkit" });
    const copy = button("Copy as bug report", () => this.copy(), { title: "As Markdown, secrets hidden" });
    this.element = h("div", { class: "hk-part" }, h("div", { class: "hk-actions" }, save, copy), this.said);
  }

  ask(op, text) {
    clear(this.said);
    return progress(this.said, text, this.link.ask(op, { log_id: this.logId }), { stoppable: false });
  }

  save() {
    return guarded(this.said, async () => {
      const file = await this.ask("export", "Writing");
      clear(this.said, h("p", { class: "hk-good" }, "✓ ", code(file), " written: it runs without healkit."));
    });
  }

  /** Where the page may not write to the clipboard (plain http, an embedded page), the text is there to be copied. */
  copy() {
    return guarded(this.said, async () => {
      const report = await this.ask("report", "Writing");
      try {
        await navigator.clipboard.writeText(report);
        clear(this.said, h("p", { class: "hk-good" }, "✓ Copied: paste it into an issue."));
      } catch {
        const text = h("textarea", { class: "hk-input hk-report hk-mono", rows: "10", readonly: true, "aria-label": "bug report" }, report);
        clear(this.said, h("p", {}, "This page may not write to the clipboard. Ctrl-C copies the selected text:"), text);
        text.select();
        text.focus();
      }
    });
  }
}
