// The log browser: filter, search, group, page and watch.
import { button, clear, count, h, moment } from "./dom.js";
import { guarded } from "./frame.js";
import { TracebackView } from "./traceback_view.js";

const WATCH_MS = 2000;
const TYPING_MS = 300;
const MARKS = { SUCCESS: ["✓", "hk-good"], FAILURE: ["✗", "hk-bad"], RUNNING: ["…", "hk-warn"] };
const TEXTS = [
  ["text", "words in the traceback", "words in the traceback", "search"],
  ["persona", "persona", "persona", "text"],
  ["since", "since, such as 2h, 3d or a date", "since: 2h, 3d…", "text"],
  ["until", "until that date, included", "until: a date", "text"],
];

export class LogBrowser {
  constructor({ link, filters = {}, memory = {} }) {
    this.link = link;
    this.memory = memory;
    this.filters = { ...filters, ...(memory.filters ?? {}) };
    this.grouped = memory.grouped ?? false;
    this.page = null;
    this.anchor = {};
    this.element = h("div", { class: "hk-browser" });
  }

  async start() {
    this.draw();
    await this.load();
    this.watching = setInterval(() => this.watch(), WATCH_MS);
    guarded(this.list, async () => {
      const names = await this.link.ask("names");
      clear(this.names, names.map((name) => h("option", { value: name })));
    });
    return this;
  }

  draw() {
    const changed = () => this.filtered();
    let typing;
    const typed = () => {
      clearTimeout(typing);
      typing = setTimeout(changed, TYPING_MS);
    };
    const listId = `hk-tools-${Math.random().toString(36).slice(2)}`;
    this.names = h("datalist", { id: listId });
    this.fields = {
      status: h("select", { class: "hk-input", "aria-label": "status", onchange: changed }, [["", "any status"], ["FAILURE", "✗ failed"], ["REFUSED", "✗ refused"], ["SUCCESS", "✓ succeeded"], ["RUNNING", "… running"]].map(([value, text]) => h("option", { value }, text))),
      tool: h("input", { class: "hk-input", "aria-label": "tool", placeholder: "tool", list: listId, oninput: typed }),
    };
    for (const [name, words, placeholder, type] of TEXTS) this.fields[name] = h("input", { class: "hk-input", type, "aria-label": words, title: words, placeholder, oninput: typed });
    for (const [name, field] of Object.entries(this.fields)) field.value = this.filters[name] ?? "";
    this.triedBox = h("input", { type: "checkbox", checked: Boolean(this.filters.tried), onchange: changed });
    this.groupButton = button("Group similar failures", () => this.group(!this.grouped), { "aria-pressed": String(this.grouped) });
    this.liveBox = h("input", { type: "checkbox", checked: true });
    this.chosen = h("div", {});
    this.list = h("div", {});
    this.paging = h("div", { class: "hk-actions" });
    this.detail = h("div", { class: "hk-detail" });
    clear(
      this.element,
      h("form", { class: "hk-filters", role: "search", onsubmit: (event) => event.preventDefault() }, Object.values(this.fields), this.names, this.groupButton, h("span", { class: "hk-line" }, h("label", { class: "hk-line", title: "also trials and searches of healing" }, this.triedBox, "trials"), h("label", { class: "hk-line" }, this.liveBox, "live"))),
      this.chosen,
      this.list,
      this.paging,
      this.detail,
    );
  }

  filtered() {
    for (const [name, field] of Object.entries(this.fields)) this.filters[name] = field.value.trim();
    this.filters.tried = this.triedBox.checked ? "yes" : "";
    this.anchor = {};
    this.remember();
    return this.load();
  }

  remember() {
    this.link.ask("remember", { key: "filters", value: this.filters }).catch(() => {});
    this.link.ask("remember", { key: "grouped", value: this.grouped }).catch(() => {});
  }

  group(on) {
    this.grouped = on;
    this.groupButton.setAttribute("aria-pressed", String(on));
    this.remember();
    return this.load();
  }

  /** The page that is wanted by now; the answer to an earlier question is dropped. */
  load() {
    const wanted = (this.wanted = {});
    return guarded(this.list, async () => {
      this.asking = true;
      try {
        const answer = this.grouped ? this.link.ask("groups", { filters: this.filters }) : this.link.ask("page", { filters: this.filters, ...this.anchor });
        const came = await answer;
        if (wanted !== this.wanted) return;
        if (this.grouped) this.showGroups(came);
        else this.showPage(came);
        this.showChosen();
      } finally {
        if (wanted === this.wanted) this.asking = false;
      }
    });
  }

  /** New rows come in by themselves, on the first page only, while somebody can see it. */
  watch() {
    const seen = this.element.isConnected && this.element.offsetParent !== null && !document.hidden;
    if (seen && this.link.live && this.liveBox.checked && !this.asking && !Object.keys(this.anchor).length) this.load();
  }

  showChosen() {
    const parts = ["fingerprint", "run", "trace", "origin"].map((name) => [name, this.filters[name]]).filter(([, value]) => value);
    clear(
      this.chosen,
      parts.map(([name, value]) =>
        h("p", { class: "hk-line" }, `Only ${name} ${value.length > 12 ? `${value.slice(0, 12)}…` : value} `, button("× all", () => {
          this.filters[name] = "";
          this.filtered();
        }, { class: "hk-quiet" })),
      ),
    );
  }

  showPage(page) {
    const known = new Set(this.page?.rows.map((row) => row.log_id));
    const same = this.page && JSON.stringify(page) === JSON.stringify(this.page) && this.list.querySelector("table");
    this.page = page;
    if (same) return;
    const rows = page.rows.map((row) => this.row(row, known.size && !known.has(row.log_id)));
    this.replace(["", "when", "tool", "result", "took", "row"], rows, "No executions match.");
    clear(
      this.paging,
      button("← Newer", () => this.turn({ after_id: page.newer }), { disabled: page.newer === null }),
      button("Older →", () => this.turn({ before_id: page.older }), { disabled: page.older === null }),
      Object.keys(this.anchor).length ? button("Newest", () => this.turn({})) : null,
      page.left_out ? this.leftOut(page) : null,
    );
  }

  /** What the page does not list, said in words, and a press away. */
  leftOut({ left_out: number, most_left_out: most }) {
    const many = `${count(number, "trial run")}${number >= most ? " or more" : ""}`;
    const show = () => {
      this.triedBox.checked = true;
      this.triedBox.focus();
      return this.filtered();
    };
    return h("span", { class: "hk-muted hk-left-out" }, `${many}, for example of a healing, ${number === 1 ? "is" : "are"} hidden. `, button(number === 1 ? "Show it" : "Show them", show, { class: "hk-quiet" }));
  }

  turn(anchor) {
    this.anchor = anchor;
    return this.load();
  }

  /** A new table in the old one's place; whoever was on a row stays on that row. */
  replace(names, rows, none) {
    const focused = this.element.getRootNode().activeElement?.dataset?.key;
    const head = h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name))));
    clear(this.list, rows.length ? h("table", { class: "hk-table hk-rows" }, head, h("tbody", {}, rows)) : h("p", { class: "hk-muted" }, none));
    if (focused) this.list.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  row(row, fresh) {
    const [mark, tone] = MARKS[row.status] ?? MARKS.RUNNING;
    const status = row.refused ? "refused" : row.status;
    const open = button(row.label, () => this.open(row.log_id), { class: "hk-link", dataset: { key: String(row.log_id) }, "aria-label": `${row.label}, ${status.toLowerCase()}, open` });
    return h(
      "tr",
      { class: fresh ? "hk-fresh" : "", "aria-selected": String(this.opened === row.log_id) },
      h("td", { class: tone }, h("b", { title: status }, mark), row.refused ? " refused" : null),
      h("td", { class: "hk-nowrap" }, moment(row.when)),
      h("td", {}, open, row.healing ? h("span", { class: "hk-muted" }, ` ${row.origin}`) : null),
      h("td", { class: "hk-outcome-cell" }, row.outcome),
      h("td", { class: "hk-nowrap hk-muted" }, row.took),
      h("td", { class: "hk-muted" }, String(row.log_id)),
    );
  }

  showGroups({ groups, most, left_out: refused }) {
    this.page = null;
    const rows = groups.map((group) =>
      h(
        "tr",
        {},
        h("td", { class: group.cured_by === null ? "hk-bad" : "hk-good" }, h("b", {}, group.cured_by === null ? "✗" : "✓")),
        h("td", { class: "hk-nowrap" }, moment(group.last)),
        h("td", {}, button(group.tool, () => this.only(group), { class: "hk-link", dataset: { key: group.fingerprint } })),
        h("td", { class: "hk-outcome-cell" }, group.summary),
        h("td", { class: "hk-nowrap" }, `${group.count.toLocaleString("en")} ×`),
        h("td", {}, group.cured_by === null ? "unresolved" : `resolved by ${group.tool} v${group.cured_by}`),
      ),
    );
    this.replace(["", "last seen", "tool", "failure", "times", ""], rows, "No failures match.");
    clear(this.paging, h("span", { class: "hk-muted" }, rows.length < most ? count(rows.length, "group") : `the ${most} most recent groups`), refused ? this.leftOutRefused(refused) : null);
  }

  /** How many refused calls the groups leave out, and a press to see them. */
  leftOutRefused(number) {
    const show = () => {
      this.fields.status.value = "REFUSED";
      this.fields.status.focus();
      return this.filtered();
    };
    return h("span", { class: "hk-muted hk-left-out" }, `${count(number, "refused call")} ${number === 1 ? "is" : "are"} not listed. `, button(number === 1 ? "Show it" : "Show them", show, { class: "hk-quiet" }));
  }

  only(group) {
    this.filters.fingerprint = group.fingerprint;
    this.anchor = {};
    return this.group(false);
  }

  get gone() {
    return this.view?.gone;
  }

  async open(logId) {
    this.view?.close();
    this.opened = logId;
    for (const row of this.list.querySelectorAll("tr")) row.setAttribute("aria-selected", String(row.querySelector(`[data-key="${logId}"]`) !== null));
    this.view = new TracebackView({ link: this.link, logId, memory: this.memory });
    const close = button("Close", () => {
      this.view.close();
      this.opened = null;
      clear(this.detail);
      this.list.querySelector(`[data-key="${logId}"]`)?.focus();
    }, { class: "hk-quiet" });
    clear(this.detail, h("div", { class: "hk-line hk-spread" }, h("b", {}, `Log row ${logId}`), close), this.view.element);
    await this.view.start();
    close.focus({ preventScroll: true });
    this.detail.scrollIntoView({ block: "nearest" });
  }

  close() {
    clearInterval(this.watching);
    this.view?.close();
  }
}
