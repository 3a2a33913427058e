// The history strip: every revision with how it fared, to compare with and to go back to.
import { button, clear, count, h, moment } from "./dom.js";

function fared(revision) {
  if (revision.draft) return ["…", "draft"];
  if (revision.failures) return ["✗", `${count(revision.failures, "failure")} of ${count(revision.runs, "run")}`];
  return revision.runs ? ["✓", count(revision.runs, "run")] : ["–", "not run yet"];
}

const TONES = { "✓": "hk-good", "✗": "hk-bad" };

/**
 * A strip of revisions, newest first; `oncompare(number)`, `onrevert(number)` and `onshow(number)` are what its buttons
 * do. What is not given has no button.
 */
export class History {
  constructor({ oncompare, onrevert, onshow }) {
    Object.assign(this, { oncompare, onrevert, onshow });
    this.element = h("div", { class: "hk-history", role: "group", "aria-label": "revisions" });
    this.chosen = null;
    this.asked = null; // the revision whose second press is waited for
    this.revisions = [];
  }

  show(revisions, compared) {
    this.revisions = revisions;
    this.compared = compared;
    if (!revisions.some((revision) => revision.number === this.chosen)) this.chosen = null;
    const chips = [...revisions].reverse().map((revision) => this.chip(revision));
    const held = this.sure?.matches(":focus");
    clear(this.element, h("div", { class: "hk-strip" }, chips), this.detail());
    if (held) this.sure?.focus();
  }

  chip(revision) {
    const [mark, words] = fared(revision);
    return h(
      "button",
      {
        type: "button",
        class: `hk-chip ${TONES[mark] ?? ""}`,
        "aria-expanded": String(this.chosen === revision.number),
        onclick: () => {
          this.chosen = this.chosen === revision.number ? null : revision.number;
          this.asked = null;
          this.show(this.revisions, this.compared);
          this.element.querySelector('[aria-expanded="true"]')?.focus();
        },
      },
      h("b", {}, `v${revision.number} ${mark}`),
      ` ${words}`,
      revision.active ? [" ", h("span", { class: "hk-tag" }, "active")] : null,
      this.compared === revision.number ? [" ", h("span", { class: "hk-tag" }, "compared")] : null,
    );
  }

  detail() {
    this.sure = null;
    const revision = this.revisions.find((one) => one.number === this.chosen);
    if (!revision) return null;
    const from = revision.parent ? ` from v${revision.parent}` : "";
    return h(
      "div",
      { class: "hk-history-detail" },
      h("p", {}, h("b", {}, `v${revision.number}`), `${from}, by ${revision.author}, `, moment(revision.created_at), revision.reason ? ` — ${revision.reason}` : ""),
      revision.first_failure ? h("p", {}, "✗ first failure ", moment(revision.first_failure)) : null,
      h(
        "div",
        { class: "hk-actions" },
        this.onshow ? button("Show its code", () => this.onshow(revision.number)) : null,
        this.onshow && revision.active ? null : button("Compare with it", () => this.oncompare(revision.number)),
        !this.onrevert || revision.active || revision.draft ? null : this.back(revision.number),
      ),
    );
  }

  /** Going back changes what everybody runs: it takes a second press, also when the strip is drawn anew in between. */
  back(number) {
    if (this.asked !== number) {
      return button("Go back to it…", () => {
        this.asked = number;
        this.show(this.revisions, this.compared);
        this.sure.focus();
      });
    }
    this.sure = button(
      `Make v${number}'s code the active one`,
      () => {
        this.asked = null;
        this.onrevert(number);
      },
      { class: "hk-primary" },
    );
    return this.sure;
  }
}
