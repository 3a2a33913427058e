// Questions to the panel's half in the kernel, and their answers.
import { button, h } from "./dom.js";
import { watchKernel } from "./page.js";

/** So long after news of its kernel an answer is waited for, before it is called gone; it may only have reconnected. */
const SILENT_MS = 1500;
/** So often a question is asked again that has no answer yet: either may be lost on the way. The kernel answers it once. */
const AGAIN_MS = 5000;
const NOBODY = { message: "The kernel does not answer.", hint: "Restart it and run the cell again." };

/** What the kernel's half raised. */
export class KernelError extends Error {
  constructor({ message, hint, code, detail }) {
    super(message);
    Object.assign(this, { hint, code, detail });
  }
}

let pages = 0;

export class Link {
  constructor(model) {
    this.model = model;
    this.prefix = `${Date.now().toString(36)}-${(pages += 1)}`;
    this.asked = 0;
    this.waiting = new Map();
    this.hears = new Map();
    this.live = true;
    this.take = (content) => {
      for (const told of this.hears.get(content?.event) ?? []) told(content);
      const waiting = this.waiting.get(content?.id);
      if (!waiting) return;
      this.waiting.delete(content.id);
      if (content.error) waiting.reject(new KernelError(content.error));
      else waiting.resolve(content.value);
    };
    model.on("msg:custom", this.take);
    this.unwatch = watchKernel(model, () => this.check());
  }

  /** Find out whether the kernel is there still, and tell those who listen for `live` if that has changed. */
  check() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.be(false), SILENT_MS);
    const answer = this.sent("here");
    answer.then(() => this.be(true)).catch(() => this.be(false));
  }

  be(live) {
    clearTimeout(this.silence);
    if (live === this.live) return;
    this.live = live;
    for (const told of this.hears.get("live") ?? []) told(live);
    if (live) return;
    for (const [id, { reject, op }] of this.waiting) {
      if (op === "here") continue; // it may yet be answered
      this.waiting.delete(id);
      reject(new KernelError(NOBODY));
    }
  }

  /** The answer's promise; its `stop()` ends what the question runs. */
  ask(op, args = {}) {
    const answer = this.live ? this.sent(op, args) : Promise.reject(new KernelError(NOBODY));
    answer.stop ??= () => {};
    return answer;
  }

  sent(op, args = {}) {
    const id = `${this.prefix}-${(this.asked += 1)}`;
    const answer = new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, op });
      const send = () => {
        if (!this.waiting.has(id)) return;
        try {
          this.model.send({ op, id, args });
          if (op !== "here") setTimeout(send, AGAIN_MS);
        } catch {
          this.waiting.delete(id);
          reject(new KernelError(NOBODY));
        }
      };
      send();
    });
    answer.stop = () => this.model.send({ op: "stop", id });
    return answer;
  }

  /**
   * Call `told` with whatever the kernel tells of that kind, unasked; returns what ends that. `live` is told with
   * whether the kernel is there, when that has changed.
   */
  hear(event, told) {
    const all = this.hears.get(event) ?? this.hears.set(event, new Set()).get(event);
    all.add(told);
    return () => all.delete(told);
  }

  close() {
    clearTimeout(this.silence);
    this.unwatch();
    this.hears.clear();
    this.model.off("msg:custom", this.take);
    this.waiting.clear();
  }
}

/**
 * Wait for an answer, with its progress in `place` once that takes a second, and a Stop that touches only the worker.
 */
export async function progress(place, text, answer, { stoppable = true } = {}) {
  const begun = Date.now();
  const clock = h("span", {}, "");
  const stop = button("■ Stop", () => {
    stop.disabled = true;
    stop.textContent = "Stopping…";
    answer.stop();
  });
  const bar = h("div", { class: "hk-progress", role: "status" }, h("progress", {}), h("span", {}, text), clock, stoppable ? stop : null);
  const tick = () => {
    clock.textContent = ` ${Math.round((Date.now() - begun) / 1000)} s`;
  };
  let ticking;
  const later = setTimeout(() => {
    tick();
    place.append(bar);
    ticking = setInterval(tick, 1000);
  }, 1000);
  try {
    return await answer;
  } finally {
    clearTimeout(later);
    clearInterval(ticking);
    bar.remove();
  }
}
