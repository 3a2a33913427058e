// Elements, times and small habits that all panels share.

/** An element; `props` are attributes, `on…` listeners, `class`, `dataset`; children are nodes or text. */
export function h(name, props = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "dataset") Object.assign(element.dataset, value);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  if (name === "button") keepPress(element);
  return element;
}

/** How far the mouse may move while its button is down, for that to be a press. */
const STILL_PX = 8;

/**
 * Have a press count that begins on a button and ends in the same place: where the page moves or replaces the button
 * between the two, the browser sends it no click.
 */
export function keepPress(button) {
  button.addEventListener("pointerdown", (down) => {
    if (down.button !== 0 || down.pointerType !== "mouse") return;
    let clicked = false;
    const click = () => (clicked = true);
    const up = (event) => {
      for (const kind of ["pointerup", "pointercancel"]) removeEventListener(kind, up, true);
      const still = event.type === "pointerup" && Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) <= STILL_PX;
      setTimeout(() => { // a click follows at once
        button.removeEventListener("click", click);
        if (still && !clicked) button.click();
      });
    };
    button.addEventListener("click", click);
    for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, up, true);
  });
}

/** The nonce of the page's own scripts and styles, where it has a policy that asks for one. */
export function pageNonce() {
  return document.querySelector("script[nonce]")?.nonce || null;
}

export function button(text, onclick, props = {}) {
  return h("button", { type: "button", ...props, class: `hk-button ${props.class ?? ""}`, onclick }, text);
}

export function clear(element, ...children) {
  element.replaceChildren(...children.flat(9).filter(Boolean));
  return element;
}

/** `13:52:07` today, else with the day before it; in the reader's time, as on the cards. The title names the zone. */
export function moment(iso) {
  const when = new Date(iso);
  const written = (date) => date.toLocaleString("sv-SE"); // in the reader's zone, with the year first
  const [day, clock] = written(when).split(" ");
  const today = written(new Date()).startsWith(day);
  return h("time", { datetime: iso, title: when.toString() }, today ? clock : `${day} ${clock}`);
}

export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** A sentence for how many values were hidden, or nothing. */
export function hiddenNote(number) {
  if (!number) return null;
  const what = number === 1 ? "1 value hidden: it looked like a secret" : `${number} values hidden: they looked like secrets`;
  return h("p", { class: "hk-note" }, `${what}.`);
}

export function code(text, props = {}) {
  return h("code", { class: "hk-code", ...props }, text);
}

/** Text whose parts in backticks are code. */
export function coded(text) {
  const parts = text.split("`");
  return parts.length % 2 ? parts.map((part, i) => (i % 2 ? code(part) : part)) : text;
}

export function block(text, props = {}) {
  return h("pre", { class: "hk-block", tabindex: "0", ...props }, text);
}

export function fold(summary, ...children) {
  return h("details", { class: "hk-fold" }, h("summary", {}, summary), ...children);
}

/** What went wrong, in the panel itself: a callback's exception is otherwise seen by nobody. */
export function problem(error) {
  const parts = [h("b", {}, "✗ "), h("span", { class: "hk-prewrap" }, error.message ?? String(error))];
  if (error.hint) parts.push(h("div", { class: "hk-muted hk-prewrap" }, error.hint.trim()));
  if (error.code) parts.push(h("div", { class: "hk-muted" }, error.code));
  if (error.detail) parts.push(fold("Details", block(error.detail)));
  return h("div", { class: "hk-problem", role: "alert" }, parts);
}
