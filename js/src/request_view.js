// A patch request: who asks, why, with which verdict, what it changes, and where it is decided.
import { button, clear, code, h, moment } from "./dom.js";
import { Beside } from "./editor.js";
import { guarded } from "./frame.js";
import { toolPlace } from "./places.js";

export class RequestView {
  /** `go(tab, place)` opens what the request names. */
  constructor({ link, number, go }) {
    Object.assign(this, { link, number, go });
    this.element = h("div", { class: "hk-view" });
  }

  async start() {
    await guarded(this.element, async () => {
      const request = await this.link.ask("request", { number: this.number });
      const { tool, persona, parent: revision } = request;
      const theirs = await this.link.ask("code", { tool, persona, revision });
      this.draw(request, theirs);
    });
  }

  draw(request, theirs) {
    const link = (text, ...to) => button(text, () => this.go(...to), { class: "hk-link" });
    const rows = [
      ["tool", link(request.label, "tools", toolPlace(request.tool, request.persona))],
      ["state", request.state === "pending" ? "is waiting for a person" : [request.state, request.decided_by ? ` by ${request.decided_by}, ` : ", ", request.decided ? moment(request.decided) : ""]],
      ["verdict", request.verdict],
      ["asked by", [request.by, ", ", moment(request.when)]],
      request.reason ? ["reason", h("span", { class: "hk-prewrap" }, request.reason)] : null,
      request.log_id === null ? null : ["answers", link(`log row ${request.log_id}`, "executions", String(request.log_id))],
      request.run_id ? ["made in", link(`run ${request.run_id}`, "runs", request.run_id)] : null,
      request.note ? ["note", h("span", { class: "hk-prewrap" }, request.note)] : null,
    ];
    const area = h("div", { class: "hk-code-area" });
    const asks = `%healkit requests accept ${request.number}`;
    clear(
      this.element,
      h("dl", { class: "hk-facts" }, rows.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      request.state === "pending" ? h("p", {}, "To decide, run ", code(asks), " in a notebook, or ", code(asks.replace("accept", "decline")), ".") : null,
      h("p", { class: "hk-label" }, `What it changes in v${request.parent}`),
      area,
    );
    this.editor = new Beside({ parent: area, language: "python", theirs, mine: request.code, readOnly: true, narrow: true });
  }

  close() {
    this.editor?.close();
  }
}
