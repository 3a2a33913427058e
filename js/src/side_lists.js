// What the side panel lists: for each tab what is asked for, how a row reads, and what it opens.
import { AuditPanel } from "./audit_panel.js";
import { count, h } from "./dom.js";
import { HealTimeline } from "./heal_timeline.js";
import { toolOf, toolPlace } from "./places.js";
import { RequestView } from "./request_view.js";
import { ToolView } from "./tool_view.js";
import { TracebackView } from "./traceback_view.js";

const STATUS = { SUCCESS: ["✓", "good", "succeeded"], FAILURE: ["✗", "bad", "failed"], RUNNING: ["…", "warn", "running"] };
const STATES = { pending: ["●", "warn", "waits"], accepted: ["✓", "good", "accepted"], declined: ["✗", "bad", "declined"], overtaken: ["≠", "", "overtaken"] };
const TONES = new Set(["good", "warn", "bad"]);

/** Keep the rows in which every word of the text is found; for lists that come whole. */
function holding(rows, text, ...names) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const said = names.map((name) => row[name] ?? "").join(" ").toLowerCase();
    return words.every((word) => said.includes(word));
  });
}

const toTool = ({ tool, persona }) => [`Tool ${tool}`, "tools", toolPlace(tool, persona)];

function execution(panel, place) {
  const view = new TracebackView({ link: panel.link, logId: Number(place) });
  const links = () => (view.run ? [toTool(view.run)] : []);
  return { view, title: `Log row ${place}`, links };
}

/** `extra` are further fields below the search; `load` returns rows and where the pages beside begin. */
export const LISTS = [
  {
    name: "failures",
    title: "Failures",
    about: "similar failures together, the newest first",
    search: "tool or message",
    none: "No tool has failed. A failing cell has its card and Fix below the cell itself.",
    extra: [{ name: "open", words: "which failures", choices: [["", "all"], ["yes", "unresolved"]] }],
    async load(panel, { text, fields }) {
      const { groups, most, left_out: refused } = await panel.link.ask("groups", { filters: {} });
      const note = [groups.length >= most ? `The ${most} most recent groups.` : "", refused ? `${count(refused, "refused call")} not listed.` : ""];
      const wanted = fields.open ? groups.filter((group) => group.cured_by === null) : groups;
      return { rows: holding(wanted, text, "tool", "summary"), note: note.join(" ") };
    },
    row(group) {
      const open = group.cured_by === null;
      return {
        id: group.fingerprint,
        place: String(group.last_log_id),
        mark: open ? ["✗", "bad", "unresolved"] : ["✓", "good", `resolved by v${group.cured_by}`],
        name: group.tool,
        aside: [`${group.count.toLocaleString("en")}×`, open ? null : `v${group.cured_by} passes`],
        when: group.last,
        text: group.summary,
        links: [[count(group.count, "execution"), "executions", null, { fingerprint: group.fingerprint }], toTool(group)],
      };
    },
    open: execution,
  },
  {
    name: "executions",
    title: "Executions",
    about: "the newest first",
    search: "tool, or words of a traceback",
    suggests: true,
    none: "No executions match.",
    extra: [
      { name: "status", words: "status", choices: [["", "any status"], ["FAILURE", "✗ failed"], ["REFUSED", "✗ refused"], ["SUCCESS", "✓ succeeded"], ["RUNNING", "… running"]] },
      { name: "since", words: "since, such as 2h, 3d or a date", hint: "since: 2h, 3d…" },
      { name: "persona", words: "persona", hint: "persona" },
      { name: "tried", words: "trials", check: "also trials and searches of healing" },
    ],
    async load(panel, { text, fields, anchor }) {
      const filters = { ...fields, tried: fields.tried ? "yes" : "", ...(text && (await panel.names()).has(text) ? { tool: text } : { text }) };
      const page = await panel.link.ask("page", { filters, ...anchor });
      const hidden = page.left_out ? `${count(page.left_out, "trial run")}${page.left_out >= page.most_left_out ? " or more" : ""} not listed.` : "";
      const turn = (name, id) => (id === null ? null : { [name]: id });
      return { rows: page.rows, newer: turn("after_id", page.newer), older: turn("before_id", page.older), note: hidden };
    },
    row(one) {
      const [mark, tone, words] = STATUS[one.status] ?? STATUS.RUNNING;
      return {
        id: String(one.log_id),
        place: String(one.log_id),
        mark: [mark, tone, one.refused ? "refused" : words],
        name: one.label,
        aside: [one.refused ? "refused" : null, one.tried || one.healing ? one.origin : null, one.took],
        when: one.when,
        text: one.outcome,
        links: [toTool(one)],
      };
    },
    open: execution,
  },
  {
    name: "tools",
    title: "Tools",
    about: "in the vault, by name",
    search: "name, group or description",
    none: "No tools.",
    async load(panel, { text }) {
      const { rows, more } = await panel.link.ask("tools", { text });
      return { rows, note: more ? `${count(more, "more tool")}: search for it.` : "" };
    },
    row(tool) {
      const place = toolPlace(tool.tool, tool.persona);
      const ran = tool.runs ? `${count(tool.runs, "run")}, ${tool.failures.toLocaleString("en")} failed` : "not run yet";
      return { id: place, place, mark: ["", "", ""], name: tool.label, aside: [tool.type === "python" ? null : tool.type, ran], text: tool.about };
    },
    open(panel, place) {
      const { tool, persona } = toolOf(place);
      return { view: new ToolView({ link: panel.link, tool, persona }), title: persona === "default" ? tool : `${tool} (${persona})`, links: () => [["Its executions", "executions", null, { search: tool }]] };
    },
  },
  {
    name: "runs",
    title: "Runs",
    about: "recorded step by step, the newest first",
    search: "part of a run's id",
    none: "No runs are recorded here.",
    async load(panel, { text, anchor }) {
      const { rows, older } = await panel.link.ask("runs", { text, ...anchor });
      const first = anchor.before ?? 0;
      return { rows, older: older === null ? null : { before: older }, newer: first ? { before: Math.max(first - 25, 0) } : null, goesOn: rows.some((row) => !row.finished) };
    },
    row(run) {
      const [mark, tone] = !run.finished ? ["…", "warn"] : run.outcome.startsWith("completed") ? ["✓", "good"] : ["–", ""];
      return { id: run.run_id, place: run.run_id, mark: [mark, tone, ""], name: [run.profile, ...run.tools].filter(Boolean).join(" · "), mono: false, aside: [], when: run.when, text: `${run.outcome}\n${run.run_id}` };
    },
    open(panel, place) {
      const view = {
        element: h("div"),
        async start() {
          const story = await panel.link.ask("story", { run_id: place });
          this.timeline = new HealTimeline({ link: panel.link, story });
          this.element.append(this.timeline.element);
          await this.timeline.start();
        },
        close() {
          this.timeline?.close();
        },
      };
      return { view, title: `Run ${place}` };
    },
  },
  {
    name: "decisions",
    title: "Decisions",
    about: "in the audit, the newest first",
    none: "No decisions are in the audit.",
    async load(panel, { anchor }) {
      const { rows, older } = await panel.link.ask("decisions", anchor);
      return { rows, older: older === null ? null : { before: older }, newer: anchor.before ? {} : null, goesOn: rows.some((row) => row.mark === "…") };
    },
    row(one) {
      return { id: one.execution_id, place: one.execution_id, mark: [one.mark, TONES.has(one.tone) ? one.tone : "good", ""], name: one.title, mono: false, aside: [count(one.steps, "step")], when: one.when, text: one.question };
    },
    open: (panel, place) => ({ view: new AuditPanel({ link: panel.link, about: { execution_id: place } }), title: `Decision ${place}`, links: () => [["Its run, step by step", "runs", place]] }),
  },
  {
    name: "requests",
    title: "Requests",
    about: "patches, waiting ones first",
    search: "tool or reason",
    none: "No patch requests.",
    async load(panel, { text }) {
      const { rows } = await panel.link.ask("requests");
      return { rows: holding(rows, text, "label", "reason", "by", "state") };
    },
    row(one) {
      return { id: String(one.number), place: String(one.number), mark: STATES[one.state] ?? STATES.pending, name: one.label, aside: [one.state === "pending" ? null : one.state, `by ${one.by}`], when: one.when, text: [one.verdict, one.reason].filter(Boolean).join(" · ") };
    },
    open: (panel, place) => ({ view: new RequestView({ link: panel.link, number: Number(place), go: (...to) => panel.go(...to) }), title: `Request ${place}` }),
  },
];
