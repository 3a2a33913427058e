// A failing cell of the notebook's own: a fix for it, and the button that puts it there.
import { button, clear, h } from "./dom.js";
import { putText } from "./cell_page.js";
import { guarded } from "./frame.js";
import { progress } from "./link.js";

export class CellFix {
  constructor({ link, model }) {
    Object.assign(this, { link, model });
    this.found = h("div", { class: "hk-results" });
    this.said = h("div", { role: "status" });
    this.fix = button("✚ Fix", () => this.look(), { class: "hk-primary", title: "Look for an edit, and run each in a worker; the cell stays as it is" });
    this.element = h("div", { class: "hk-view" });
  }

  async start() {
    await guarded(this.element, async () => {
      const { card } = await this.link.ask("about");
      const place = h("div", { class: "hk-card" });
      place.innerHTML = card;
      const [head, ...rest] = place.firstElementChild.children;
      rest.at(-1).remove(); // the magics to copy: here are buttons
      head.after(h("div", { class: "hk-actions hk-inside" }, this.fix, ...rest.flatMap((part) => [...part.querySelectorAll(":scope > details")])));
      for (const part of rest) if (part.isConnected || !part.children.length) part.remove();
      place.firstElementChild.append(h("div", { class: "hk-inside" }, this.found, this.said));
      clear(this.element, place);
    });
  }

  async look() {
    this.fix.disabled = true;
    try {
      await guarded(this.found, async () => {
        clear(this.said);
        const { html, fix } = await progress(this.found, "Looking for a fix", this.link.ask("heal"));
        const report = h("div", {});
        report.innerHTML = html;
        clear(this.found, report, fix && h("div", { class: "hk-actions" }, button(`Put it into ${fix.cell}`, () => this.put(fix), { class: "hk-primary" })));
      });
    } finally {
      this.fix.disabled = false;
    }
  }

  put({ cell, before, code }) {
    const done = putText(this.model, before, code);
    const said = done ? `✓ The fixed text is in ${cell}: run it.` : `No cell of this page has the text of ${cell} any more. %heal --apply puts the fix into a cell of its own.`;
    clear(this.said, h("p", { class: done ? "hk-good" : "hk-note" }, said));
  }
}
