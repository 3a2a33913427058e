// The decide panel: a person chooses the next step, and sees what a model would get, word for word.
import { AuditPanel } from "./audit_panel.js";
import { block, button, clear, h, problem } from "./dom.js";
import { guarded } from "./frame.js";

const TYPES = {
  gather_info: "gather_info: run a tool for information",
  execute_data_op: "execute_data_op: create a view",
  execute_output: "execute_output: write a file",
  finalize: "finalize: end with a view",
};

/** The JSON of a field; its name is in the message where it is none. */
function json(field, name) {
  if (!field.value.trim()) return undefined;
  try {
    return JSON.parse(field.value);
  } catch (error) {
    field.focus();
    throw new Error(`${name}: not JSON (${error.message}).`);
  }
}

export class DecidePanel {
  constructor({ link, carded }) {
    Object.assign(this, { link, carded, version: -1, drafts: {} });
    this.element = h("div", { class: "hk-part hk-decide", role: "group", "aria-label": "a decision in which you choose" });
  }

  async start() {
    this.said = h("div", { role: "status", class: "hk-muted" });
    this.place = h("div", {});
    clear(this.element, this.said, this.place);
    this.link.hear("decide", ({ state }) => this.take(state));
    await guarded(this.element, async () => this.take(await this.link.ask("decide_open")));
  }

  take(state) {
    if (state.version < this.version) return;
    this.version = state.version;
    if (state.phase === "choosing" && state.turn) this.choose(state.turn);
    else if (state.phase === "done") this.end();
    else if (state.phase === "failed") clear(this.place, problem(state.problem));
    else clear(this.place, h("p", {}, "Running the step …"));
    this.said.textContent = { choosing: `Turn ${state.turn?.number ?? ""}: choose the next step.`, done: "The decision has ended.", failed: "The decision could not start." }[state.phase] ?? "";
  }

  choose(turn) {
    const select = (label, options) => h("select", { class: "hk-input", "aria-label": label }, options.map(([value, text]) => h("option", { value }, text)));
    const area = (label, placeholder) => h("textarea", { class: "hk-input hk-mono", "aria-label": label, placeholder, rows: "2", spellcheck: "false" });
    const named = (names) => names.map((name) => [name, name]);
    const fields = {
      type: select("type of the choice", Object.entries(TYPES)),
      tool: select("tool", named(turn.tools)),
      params: area("params, as JSON", '{"df": "sales"}'),
      viewName: h("input", { class: "hk-input hk-mono", "aria-label": "viewName, the name of the new view", placeholder: "viewName", spellcheck: "false", autocomplete: "off" }),
      intended: area("intended, as JSON; may be empty", '{"rows": 5}'),
      final: select("finalViewName", named(turn.views)),
    };
    const line = (name, field, also = {}) => h("label", { class: "hk-choice", ...also }, h("span", { class: "hk-muted" }, name), field);
    const lines = { type: line("type", fields.type), tool: line("tool", fields.tool), params: line("params", fields.params), viewName: line("viewName", fields.viewName), intended: line("intended", fields.intended), final: line("finalViewName", fields.final) };
    const fit = () => {
      const { value } = fields.type;
      for (const name of ["tool", "params"]) lines[name].hidden = value === "finalize";
      for (const name of ["viewName", "intended"]) lines[name].hidden = value !== "execute_data_op";
      lines.final.hidden = value !== "finalize";
    };
    fields.type.addEventListener("change", fit);
    fields.type.value = turn.number === 1 ? "execute_data_op" : "finalize";
    if (turn.problem) {
      for (const [name, value] of Object.entries(this.drafts)) fields[name].value = value; // to be corrected
    } else {
      fields.final.value = turn.views.at(-1);
    }
    fit();
    this.problems = h("div", {});
    const form = h(
      "form",
      { class: "hk-choose", "aria-label": "your choice", onsubmit: (event) => { event.preventDefault(); this.send(turn, fields); } },
      Object.values(lines),
      h("div", { class: "hk-actions" }, h("button", { type: "submit", class: "hk-button hk-primary" }, "Choose"), button("■ Stop", () => this.stop(), { title: "End the decision without a result" })),
    );
    clear(
      this.place,
      turn.problem ? h("p", { class: "hk-note", role: "alert" }, `⚠ ${turn.problem}`) : null,
      h("p", { class: "hk-muted" }, "A model would get only this:"),
      block(turn.told, { class: "hk-block hk-turn", "aria-label": "what a model would get" }),
      form,
      this.problems,
    );
    if (turn.number > 1) fields.type.focus();
  }

  async send(turn, fields) {
    await guarded(this.problems, async () => {
      const type = fields.type.value;
      let choice = { type, finalViewName: fields.final.value };
      if (type !== "finalize") choice = { type, tool: fields.tool.value, params: json(fields.params, "params") ?? {} };
      if (type === "execute_data_op") {
        choice.viewName = fields.viewName.value.trim();
        const intended = json(fields.intended, "intended");
        if (intended !== undefined) choice.intended = intended;
      }
      this.drafts = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value]));
      await this.link.ask("decide_choose", { number: turn.number, choice });
    });
  }

  async stop() {
    await guarded(this.problems, () => this.link.ask("decide_stop"));
  }

  async end() {
    if (this.ended) return;
    this.ended = true;
    const shown = new AuditPanel({ link: this.link });
    clear(this.place, shown.element);
    if (this.carded) this.link.ask("card").then((data) => data && this.carded(data)).catch(() => {});
    await shown.start();
  }
}
