// The frame around each panel: theme, keyboard, and a place where errors are seen.
import css from "./panels.css";
import { h, pageNonce, problem } from "./dom.js";

const STYLE_ID = "healkit-panels-style";

/** Put a style sheet into the page that `el` is in, once; the page's own policy may ask for its nonce. */
export function addStyle(el, id = STYLE_ID, text = css) {
  const root = el.getRootNode();
  const home = root instanceof ShadowRoot ? root : document.head;
  if (!home.querySelector(`#${id}`)) home.append(h("style", { id, nonce: pageNonce() }, text));
}

/** Whether the page around `el` is dark: as JupyterLab or VS Code say, else as its background is. */
function isDark(el) {
  const { jpThemeLight } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false";
  if (document.body.classList.contains("vscode-light")) return false;
  if (document.body.classList.contains("vscode-dark")) return true;
  for (let at = el; at; at = at.parentElement) {
    const [r, g, b, a = 1] = (getComputedStyle(at).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
    if (b !== undefined && a > 0.5) return 0.299 * r + 0.587 * g + 0.114 * b < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The panel's root element in `el`, and what undoes it. */
export function frame(el, name) {
  addStyle(el);
  const root = h("section", { class: "hk", "aria-label": name, "data-lm-suppress-shortcuts": "true" });
  const theme = () => {
    const dark = isDark(el);
    if (root.dataset.theme !== (dark ? "dark" : "light")) {
      root.dataset.theme = dark ? "dark" : "light";
      root.dispatchEvent(new CustomEvent("hk-theme"));
    }
  };
  const watch = new MutationObserver(theme);
  watch.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class", "data-vscode-theme-kind"] });
  const scheme = matchMedia("(prefers-color-scheme: dark)"); // a page without a theme of its own follows it
  scheme.addEventListener("change", theme);
  // The page's own shortcuts are not for what is typed here: `dd` in a text must not delete a cell.
  for (const kind of ["keydown", "keypress", "keyup", "paste", "copy", "cut"]) {
    root.addEventListener(kind, (event) => event.stopPropagation());
  }
  el.append(root);
  theme();
  const close = () => {
    watch.disconnect();
    scheme.removeEventListener("change", theme);
  };
  return { root, close };
}

/** Call it, and show in `place` what it throws or rejects with. */
export async function guarded(place, work) {
  for (const old of place.querySelectorAll(":scope > .hk-problem")) old.remove();
  try {
    return await work();
  } catch (error) {
    place.append(problem(error));
    return undefined;
  }
}
