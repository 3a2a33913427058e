// The side panel: lists of all that is on record, and one of them in full. It reads through Jupyter's server.
import css from "./side_panel.css";
import { button, clear, count, h, moment } from "./dom.js";
import { addStyle, frame, guarded } from "./frame.js";
import { LISTS } from "./side_lists.js";

const LOOK_MS = 2000;
/** So often it looks while it is hidden: for the count of requests that wait. */
const LOOK_HIDDEN_MS = 30_000;
const TYPING_MS = 250;
const GONE = "Jupyter's server does not answer. This list may be out of date.";

let panels = 0;

export class SidePanel {
  /**
   * `onwaiting(n)` is told how many requests wait, `onplace(place)` where the reader is: a list's name, and behind a
   * slash what is open, as `start` takes it.
   */
  constructor({ link, onwaiting = () => {}, onplace = () => {} }) {
    Object.assign(this, { link, onwaiting, onplace, waiting: 0, marks: {}, named: null, opened: null });
    this.id = `hk-side-${(panels += 1)}`;
    this.element = h("div", { class: "hk-side-host" });
    this.around = frame(this.element, "healkit log");
    addStyle(this.element, "healkit-side-style", css);
    this.states = Object.fromEntries(LISTS.map((list) => [list.name, { text: "", fields: {}, anchor: {}, more: {} }]));
    this.draw();
  }

  /** Show the place, and look for news from now on. */
  async start(place = "") {
    this.link.hear("live", (live) => clear(this.life, live ? null : h("p", { class: "hk-note" }, GONE)));
    this.seen = () => this.look();
    document.addEventListener("visibilitychange", this.seen);
    this.sized = new ResizeObserver(() => this.isVisible() && !this.wasVisible && this.look());
    this.sized.observe(this.element);
    await this.visit(place);
    await this.look();
  }

  isVisible() {
    return this.element.isConnected && this.element.offsetParent !== null && !document.hidden;
  }

  draw() {
    const { root } = this.around;
    root.classList.add("hk-side");
    this.tabs = LISTS.map((list) =>
      h("button", { type: "button", role: "tab", id: `${this.id}-${list.name}`, class: "hk-tab", "aria-controls": `${this.id}-list`, onclick: () => this.choose(list.name) }, list.title),
    );
    this.badge = h("span", { class: "hk-count", hidden: true });
    this.tabs.at(-1).append(" ", this.badge);
    const tablist = h("div", { class: "hk-tabs", role: "tablist", "aria-label": "recorded entries", onkeydown: (event) => this.turn(event) }, this.tabs);
    this.life = h("div", { role: "status" });
    this.search = h("form", { class: "hk-side-search", role: "search", onsubmit: (event) => event.preventDefault() });
    this.trouble = h("div", { class: "hk-side-trouble" });
    this.rows = h("ul", { class: "hk-side-rows", onkeydown: (event) => this.walk(event) });
    this.paging = h("div", { class: "hk-side-paging" });
    this.heading = h("h2", { class: "hk-unseen" });
    this.panel = h("div", { class: "hk-side-list", role: "tabpanel", id: `${this.id}-list`, tabindex: "-1" }, this.heading, this.search, this.trouble, this.rows, this.paging);
    this.detail = h("section", { class: "hk-side-detail", "aria-label": "in full", onkeydown: (event) => event.key === "Escape" && !event.target.closest(".cm-editor") && this.leave() });
    this.foot = h("footer", { class: "hk-side-foot hk-muted" });
    root.append(tablist, this.life, h("div", { class: "hk-side-body" }, this.panel, this.detail), this.foot);
    this.showNothing();
  }

  get state() {
    return this.states[this.list.name];
  }

  /** Go to a place as `onplace` tells it; the first list where that is none. */
  async visit(place) {
    const [name, ...rest] = place.split("/");
    const list = LISTS.find((one) => one.name === name) ?? LISTS[0];
    await this.choose(list.name, { tell: !rest[0] });
    if (rest[0]) await this.open(rest.join("/"));
  }

  /** Go to another list, to one thing in it, or to what a filter chooses; what a view links to. */
  async go(name, place = null, filter = {}) {
    if (!place) this.states[name] = { text: filter.search ?? "", fields: {}, anchor: {}, more: filter.search ? {} : filter };
    await this.choose(name, { tell: !place });
    if (place) await this.open(place);
    else this.tabs[LISTS.indexOf(this.list)].focus();
  }

  async choose(name, { tell = true } = {}) {
    this.list = LISTS.find((list) => list.name === name);
    this.page = null;
    LISTS.forEach((list, at) => {
      const chosen = list === this.list;
      this.tabs[at].setAttribute("aria-selected", String(chosen));
      this.tabs[at].tabIndex = chosen ? 0 : -1;
    });
    this.panel.setAttribute("aria-labelledby", `${this.id}-${name}`);
    this.heading.textContent = `${this.list.title}: ${this.list.about}`;
    this.leave({ focus: false, tell });
    this.drawSearch();
    for (const part of [this.trouble, this.rows, this.paging]) clear(part);
    await this.load();
  }

  /** The keys of a list of tabs: the arrows choose the tab beside, Home and End the first and the last. */
  turn(event) {
    const at = LISTS.indexOf(this.list);
    const to = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: LISTS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + LISTS.length) % LISTS.length;
    this.choose(LISTS[next].name);
    this.tabs[next].focus();
  }

  drawSearch() {
    const { list, state } = this;
    let typing;
    const changed = () => {
      state.anchor = {};
      this.load();
    };
    const later = () => {
      clearTimeout(typing);
      typing = setTimeout(changed, TYPING_MS);
    };
    const names = list.suggests ? h("datalist", { id: `${this.id}-names` }) : null;
    const text = list.search ? h("input", { type: "search", class: "hk-input", placeholder: list.search, "aria-label": `Search ${list.title.toLowerCase()}: ${list.search}`, list: names ? names.id : null, value: state.text, oninput: (event) => ((state.text = event.target.value), later()) }) : null;
    const [first, ...rest] = (list.extra ?? []).map((field) => this.field(field, changed, later));
    const others = rest.length ? h("details", { class: "hk-fold" }, h("summary", {}, "More filters"), h("div", { class: "hk-side-fields" }, rest)) : null;
    const chips = Object.entries(state.more).map(([name, value]) =>
      button(`× only ${name} ${value.length > 14 ? `${value.slice(0, 14)}…` : value}`, () => {
        state.more = {};
        this.drawSearch();
        changed();
      }, { class: "hk-quiet", title: "Show all again" }),
    );
    clear(this.search, h("div", { class: "hk-side-line" }, text, first), names, others, chips);
    this.search.hidden = !text;
    if (names) this.names().then((all) => clear(names, [...all].map((value) => h("option", { value }))), () => {}); // the list says what is wrong
  }

  field({ name, words, hint, choices, check }, changed, later) {
    const { fields } = this.state;
    if (check) return h("label", { class: "hk-line", title: check }, h("input", { type: "checkbox", checked: Boolean(fields[name]), onchange: (event) => ((fields[name] = event.target.checked), changed()) }), words);
    if (choices) {
      const select = h("select", { class: "hk-input", "aria-label": words, onchange: (event) => ((fields[name] = event.target.value), changed()) }, choices.map(([value, text]) => h("option", { value }, text)));
      select.value = fields[name] ?? "";
      return select;
    }
    return h("input", { class: "hk-input", "aria-label": words, title: words, placeholder: hint, value: fields[name] ?? "", oninput: (event) => ((fields[name] = event.target.value.trim()), later()) });
  }

  /** The tools' names, asked for again once a tool has changed. */
  names() {
    this.named ??= this.link.ask("names").then((names) => new Set(names));
    this.named.catch(() => (this.named = null));
    return this.named;
  }

  /** The page that is wanted by now; the answer to an earlier question is dropped. */
  load() {
    const wanted = (this.wanted = {});
    const { list, state } = this;
    return guarded(this.trouble, async () => {
      try {
        const asked = { text: state.text.trim(), fields: { ...state.fields, ...state.more }, anchor: state.anchor };
        const page = await list.load(this, asked);
        if (wanted === this.wanted) this.show(page);
      } catch (error) {
        if (wanted !== this.wanted) return;
        if (this.link.live || !this.page) throw error; // else what stands here stays, and a note says how old it is
      }
    });
  }

  show(page) {
    const { list, state } = this;
    const rows = page.rows.map((row) => list.row(row));
    const before = this.page && new Set(this.page.map((row) => row.id));
    const written = JSON.stringify([rows, page.newer, page.older, page.note]);
    this.goesOn = Boolean(page.goesOn);
    if (before && written === this.written) return;
    Object.assign(this, { page: rows, written });
    const focused = this.rows.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    clear(this.rows, rows.map((row) => this.row(row, before && !before.has(row.id))));
    if (!rows.length) this.rows.append(h("li", { class: "hk-muted hk-side-none" }, list.none));
    this.rove(this.rows.querySelector(`[data-key="${CSS.escape(focused ?? this.opened ?? "")}"]`));
    if (focused !== null) this.rows.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
    const turn = (anchor) => async () => {
      state.anchor = anchor;
      await this.load();
      this.panel.scrollTop = 0;
    };
    clear(
      this.paging,
      page.newer ? button("← Newer", turn(page.newer), { class: "hk-quiet" }) : null,
      page.older ? button("Older →", turn(page.older), { class: "hk-quiet" }) : null,
      page.note ? h("span", { class: "hk-muted" }, page.note) : null,
    );
  }

  row(row, fresh) {
    const [mark, tone, words] = row.mark;
    const open = h(
      "button",
      { type: "button", class: "hk-side-row", tabindex: "-1", dataset: { key: row.place }, "aria-current": this.opened === row.place ? "true" : null, onclick: () => this.open(row.place, row) },
      h(
        "span",
        { class: "hk-side-head" },
        mark ? h("b", { class: `hk-side-mark ${tone ? `hk-${tone}` : ""}`, title: words || null, "aria-hidden": words ? "true" : null }, mark) : null,
        words ? h("span", { class: "hk-unseen" }, `${words}: `) : null,
        h("span", { class: `hk-side-name ${row.mono === false ? "" : "hk-mono"}` }, row.name),
        h("span", { class: "hk-side-aside hk-muted" }, row.aside.filter(Boolean).join(" · ")),
        row.when ? h("span", { class: "hk-side-when hk-muted" }, moment(row.when)) : null,
      ),
      row.text ? h("span", { class: "hk-side-text" }, row.text) : null,
    );
    return h("li", { class: fresh ? "hk-fresh-row" : null }, open);
  }

  /** One row at a time is reached by Tab, the others by the arrow keys. */
  rove(row) {
    for (const other of this.rows.querySelectorAll("button")) other.tabIndex = -1;
    const to = row ?? this.rows.querySelector("button");
    if (to) to.tabIndex = 0;
    return to;
  }

  walk(event) {
    const all = [...this.rows.querySelectorAll("button")];
    const at = all.indexOf(event.target.closest("button"));
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    this.rove(all[Math.max(0, Math.min(to, all.length - 1))]).focus();
  }

  async open(place, row = this.page?.find((one) => one.place === place)) {
    this.view?.close?.();
    this.opened = place;
    this.mark();
    const opened = this.list.open(this, place);
    this.view = opened.view;
    const links = (found) => found.map(([text, ...to]) => button(text, () => this.go(...to), { class: "hk-quiet" }));
    const close = button([h("span", { class: "hk-side-back" }, `← ${this.list.title}`), h("span", { class: "hk-side-close" }, "Close")], () => this.leave(), { class: "hk-quiet" });
    const title = h("h3", { class: "hk-side-title", tabindex: "-1" }, opened.title);
    const bar = h("div", { class: "hk-side-bar" }, close, links(row?.links ?? []));
    const body = h("div", { class: "hk-side-view" }, this.view.element);
    clear(this.detail, bar, title, body);
    this.around.root.classList.add("hk-side-opened");
    this.detail.scrollTop = 0;
    this.onplace(`${this.list.name}/${place}`);
    title.focus({ preventScroll: true });
    await guarded(body, () => opened.view.start());
    if (!row?.links) bar.append(...links(opened.links?.() ?? []));
  }

  mark() {
    for (const one of this.rows.querySelectorAll("button")) {
      if (one.dataset.key === this.opened) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    }
  }

  /** Close what is open, and go back to its row. */
  leave({ focus = true, tell = true } = {}) {
    const was = this.opened;
    this.view?.close?.();
    Object.assign(this, { view: null, opened: null });
    this.around.root.classList.remove("hk-side-opened");
    this.showNothing();
    this.mark();
    if (tell) this.onplace(this.list.name);
    if (focus && was !== null) this.rove(this.rows.querySelector(`[data-key="${CSS.escape(was)}"]`))?.focus();
  }

  showNothing() {
    clear(this.detail, h("p", { class: "hk-muted hk-side-nothing" }, "Choose a row to see it in full."));
  }

  /** Ask whether there is news, and load the list again where it has changed; cheap, and rare while it is not seen. */
  async look() {
    clearTimeout(this.looking);
    const again = this.wasVisible === false;
    this.wasVisible = this.isVisible();
    if (!document.hidden) {
      try {
        const { marks, waiting } = await this.link.ask("news");
        if (waiting !== this.waiting) this.count(waiting);
        if (marks.tools !== this.marks.tools) this.named = null;
        const known = this.marks[this.list.name];
        const changed = known !== undefined && known !== marks[this.list.name];
        const first = !Object.keys(this.state.anchor).length;
        if (this.wasVisible && first && (changed || again || this.goesOn)) await this.load();
        if (this.wasVisible && (marks.tools !== this.marks.tools || !this.foot.firstChild)) await this.showState();
        this.marks = marks;
      } catch {
        // the link tells that the server is gone, and the next question shows any other fault
      }
    }
    if (!this.closed) {
      clearTimeout(this.looking);
      this.looking = setTimeout(() => this.look(), this.wasVisible ? LOOK_MS : LOOK_HIDDEN_MS);
    }
  }

  count(waiting) {
    this.waiting = waiting;
    clear(this.badge, String(waiting), h("span", { class: "hk-unseen" }, waiting === 1 ? " waits" : " wait"));
    this.badge.hidden = waiting === 0;
    this.onwaiting(waiting);
  }

  async showState() {
    const { isolation, executions, failures, running, tools, problem, database } = await this.link.ask("status");
    const counts = [count(executions, "tool execution"), `${failures.toLocaleString("en")} failed`, running ? `${running} running` : null, count(tools, "tool")];
    clear(this.foot, h("span", {}, counts.filter(Boolean).join(" · ")), h("span", {}, `isolation: ${isolation}`), h("span", { class: "hk-side-where", title: database }, database), problem ? h("span", { class: "hk-warn" }, problem) : null);
  }

  close() {
    this.closed = true;
    clearTimeout(this.looking);
    document.removeEventListener("visibilitychange", this.seen);
    this.sized?.disconnect();
    this.view?.close?.();
    this.around.close();
    this.link.close();
  }
}
