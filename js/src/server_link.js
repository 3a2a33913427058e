// Questions to Jupyter's server, and their answers: what is behind the side panel and the stand-alone page.
import { KernelError } from "./link.js";

const GONE = { message: "Jupyter's server does not answer.", hint: "Is it still running? This page continues as soon as it answers." };
const LOGGED_OUT = { message: "You are no longer logged in to Jupyter's server.", hint: "Reload the page and log in." };

/**
 * The methods of `Link`. `request(url, init)` is like `fetch`, and brings along what the server asks for (a token, the
 * XSRF token). It only reads: `readOnly` tells the views to offer nothing that would need a kernel.
 */
export class ServerLink {
  constructor({ url, request }) {
    Object.assign(this, { url, request, readOnly: true, live: true, hears: new Map() });
  }

  /** The answer's promise; its `stop()` gives the question up. */
  ask(op, args = {}) {
    const aborting = new AbortController();
    // What a panel has its kernel remember, a page that only reads has no use for.
    const answer = op === "remember" ? Promise.resolve(null) : this.sent(op, args, aborting.signal);
    answer.stop = () => aborting.abort();
    return answer;
  }

  async sent(op, args, signal) {
    let response;
    try {
      response = await this.request(this.url, { method: "POST", body: JSON.stringify({ op, args }), headers: { "Content-Type": "application/json" }, signal });
    } catch (error) {
      if (!signal.aborted) this.be(false);
      throw new KernelError(signal.aborted ? { message: "Stopped." } : GONE);
    }
    const content = await response.json().catch(() => null);
    this.be(response.status < 502 || content?.error !== undefined);
    if (content?.error) throw new KernelError(content.error);
    if (response.ok && content && "value" in content) return content.value;
    if (response.status === 401 || response.status === 403) throw new KernelError(LOGGED_OUT);
    throw new KernelError({ message: `Jupyter's server answered with status ${response.status}.`, hint: content?.message ?? "" });
  }

  be(live) {
    if (live === this.live) return;
    this.live = live;
    for (const told of this.hears.get("live") ?? []) told(live);
  }

  /** Call `told` with whether the server answers, when that has changed (`live`); returns what ends that. */
  hear(event, told) {
    const all = this.hears.get(event) ?? this.hears.set(event, new Set()).get(event);
    all.add(told);
    return () => all.delete(told);
  }

  close() {
    this.hears.clear();
  }
}
