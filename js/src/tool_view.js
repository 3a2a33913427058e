// A tool as the vault has it: its code, every revision, and how two of them differ.
import { button, clear, code, h } from "./dom.js";
import { Beside, shown } from "./editor.js";
import { guarded } from "./frame.js";
import { History } from "./history.js";

export class ToolView {
  constructor({ link, tool, persona }) {
    Object.assign(this, { link, tool, persona });
    this.history = new History({ oncompare: (number) => this.compare(number), onshow: (number) => this.show(number) });
    this.said = h("p", { class: "hk-label", role: "status" });
    this.area = h("div", { class: "hk-code-area" });
    this.element = h("div", { class: "hk-view" }, this.history.element, this.said, this.area);
  }

  async start() {
    await guarded(this.element, async () => {
      this.revisions = await this.link.ask("history", { tool: this.tool, persona: this.persona });
      this.active = this.revisions.find((revision) => revision.active) ?? this.revisions.at(-1);
      this.history.show(this.revisions, null);
      await this.show(this.active.number);
    });
  }

  text(revision) {
    return this.link.ask("code", { tool: this.tool, persona: this.persona, revision });
  }

  /** The code of one revision. */
  show(number) {
    return guarded(this.element, async () => {
      const doc = await this.text(number);
      this.clear(null, [`Code of v${number}`, number === this.active.number ? ", the active one" : ""]);
      this.editor = shown({ parent: this.area, doc, language: "python", label: `code of v${number}` });
    });
  }

  /** What the active revision has made of that one. */
  compare(number) {
    return guarded(this.element, async () => {
      const [theirs, mine] = await Promise.all([this.text(number), this.text(this.active.number)]);
      const same = theirs === mine ? ": the same code" : "";
      this.clear(number, [`From v${number} to v${this.active.number}${same} `, button("Show the active code", () => this.show(this.active.number), { class: "hk-quiet" })]);
      this.editor = new Beside({ parent: this.area, language: "python", theirs, mine, readOnly: true, narrow: true });
    });
  }

  clear(compared, said) {
    this.editor?.close();
    clear(this.area);
    clear(this.said, said);
    this.history.show(this.revisions, compared);
  }

  close() {
    this.editor?.close();
  }
}
