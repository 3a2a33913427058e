// Questions to the panel's half in the kernel, and their answers.
import { button, h } from "./dom.js";

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
    this.take = (content) => {
      for (const told of this.hears.get(content?.event) ?? []) told(content);
      const waiting = this.waiting.get(content?.id);
      if (!waiting) return;
      this.waiting.delete(content.id);
      if (content.error) waiting.reject(new KernelError(content.error));
      else waiting.resolve(content.value);
    };
    model.on("msg:custom", this.take);
  }

  /** The answer's promise; its `stop()` ends what the question runs. */
  ask(op, args = {}) {
    const id = `${this.prefix}-${(this.asked += 1)}`;
    const answer = new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      try {
        this.model.send({ op, id, args });
      } catch {
        this.waiting.delete(id);
        reject(new KernelError({ message: "The kernel is not there to be asked.", hint: "Restart it and run the cell again." }));
      }
    });
    answer.stop = () => this.model.send({ op: "stop", id });
    return answer;
  }

  /** Call `told` with whatever the kernel tells of that kind, unasked; returns what ends that. */
  hear(event, told) {
    const all = this.hears.get(event) ?? this.hears.set(event, new Set()).get(event);
    all.add(told);
    return () => all.delete(told);
  }

  /** Call `told` when the kernel is restarted or gone; returns what ends that. */
  lost(told) {
    this.model.on("comm_live_update", told);
    return () => this.model.off("comm_live_update", told);
  }

  close() {
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
