// One run as it came out: a value or a failure, what it printed and displayed, and how it differs from before.
import { block, code, count, fold, h, hiddenNote } from "./dom.js";
import { outputs } from "./outputs.js";

export function frames(failure) {
  const items = failure.frames.map((frame) =>
    frame.own
      ? h("li", {}, h("span", { class: "hk-muted" }, frame.where), block(frame.lines[0] ?? ""))
      : h("li", {}, fold(frame.where, block(frame.lines.join("\n")))),
  );
  return items.length ? h("ol", { class: "hk-frames", "aria-label": "frames, the innermost last" }, items) : null;
}

/** `title` is a sentence in the place of the exception's own message. */
export function headline(run, title = null) {
  const { failure } = run;
  const mark = run.ok ? "✓" : failure ? "✗" : "…";
  const text = failure ? (title ?? failure.summary) : run.ok ? "returned a value" : "is running";
  return h("div", { class: `hk-headline ${run.ok ? "hk-good" : failure ? "hk-bad" : "hk-warn"}` }, h("b", {}, `${mark} ${run.label} `), h("span", { class: "hk-prewrap" }, text));
}

function delta(delta) {
  if (!delta) return null;
  if (delta.same) return h("p", { class: "hk-delta" }, `= The same outcome as in log row ${delta.log_id}.`);
  const was = h("li", {}, h("span", { class: "hk-delta-side" }, "was "), code(`${delta.before_ok ? "" : "✗ "}${delta.before}`));
  const now = h("li", {}, h("span", { class: "hk-delta-side" }, "now "), code(delta.now));
  const lines = delta.diff.split("\n").map((line) => {
    const kind = line.startsWith("+") ? "hk-plus" : line.startsWith("-") ? "hk-minus" : "";
    return h("span", { class: kind }, `${line}\n`);
  });
  const many = delta.diff.split("\n").length > 4;
  return [h("ul", { class: "hk-delta", "aria-label": "how the outcome changed" }, was, now), many ? fold("Line by line", h("pre", { class: "hk-block" }, lines)) : null];
}

/** The outcome of a try or a re-run. */
export function outcome({ run, delta: changed }) {
  const { failure } = run;
  return h(
    "div",
    { class: `hk-outcome ${run.ok ? "hk-outcome-good" : "hk-outcome-bad"}`, role: "status", dataset: { ok: String(run.ok) } },
    headline(run),
    failure?.line ? h("p", {}, h("span", { class: "hk-muted" }, `${failure.place}: `), code(failure.line)) : null,
    failure?.ending ? h("p", { class: "hk-muted" }, failure.ending) : null,
    failure?.hint ? h("p", { class: "hk-note" }, failure.hint) : null,
    run.ok ? block(run.value) : null,
    outputs(run.outputs),
    delta(changed),
    (run.notes ?? []).map((note) => h("p", { class: "hk-note" }, note)),
    hiddenNote(run.hidden),
    failure?.traceback ? fold("Traceback", block(failure.traceback)) : null,
    h("p", { class: "hk-muted" }, `${run.took} · isolation ${run.isolation ?? "–"} · log row ${run.log_id ?? "–"}`),
  );
}

/** What is known of an execution besides its outcome. */
export function facts(run) {
  const rows = [
    ["arguments", code(run.arguments)],
    run.last_output?.trim() ? ["last output", block(run.last_output)] : null,
    run.calls?.length ? [count(run.calls.length, "call"), h("ul", { class: "hk-plain" }, run.calls.map((call) => h("li", {}, `${call.mark} `, code(call.name), ` ${call.took} ${call.outcome}`)))] : null,
    ["record", h("span", {}, `log row ${run.log_id} · isolation ${run.isolation ?? "–"} · ${run.took} · ${run.origin}`)],
  ];
  return h("dl", { class: "hk-facts" }, rows.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
