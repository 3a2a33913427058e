// Cards of failures, drawn from their data.
//
// Each word goes in as text, so nothing of a notebook can become markup, and the card is drawn the same in one that is not
// trusted. The HTML beside it in the output is for pages that have no extension.
import type { IRenderMime } from "@jupyterlab/rendermime";
import { Widget } from "@lumino/widgets";

export const FAILURE_TYPE = "application/vnd.healkit.failure+json";
export const CARD_CLASS = "hk-lab-card";

/** What healkit/faces/notebook/cell_output.py writes. */
export interface Failure {
  version: number;
  /** The first digits of the SHA-256 of the failing cell's text. */
  source: string;
  fixable: boolean;
  cards: unknown[];
}

/** A part that healkit/faces/notebook/to_json.py writes. */
type Part = string | Part[] | Record<string, unknown>;

function element(name: string, className: string, ...children: (Node | string)[]): HTMLElement {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const KNOWN_TONES = new Set(["good", "warn", "bad", "info", "ai", "quiet", "ink"]);

function toned(made: HTMLElement, { tone }: Record<string, unknown>): HTMLElement {
  if (KNOWN_TONES.has(String(tone))) made.dataset["tone"] = String(tone);
  return made;
}

/** Text in which what stands in backticks is code. */
function ticked(text: string): Node[] {
  return text.split(/`([^`\n]+)`/).map((piece, at) => (at % 2 ? element("code", "", piece) : document.createTextNode(piece)));
}

function span(text: string, look: unknown): HTMLElement {
  switch (look) {
    case "code":
    case "label":
      return element("code", "", text);
    case "ticked":
      return element("span", "", ...ticked(text));
    case "strong":
      return element("b", "", ...ticked(text));
    case "state":
      return element("b", "hk-nowrap", text);
    case "mark":
      return element("mark", "", text);
    case "struck":
      return element("del", "", text);
    case "quiet":
      return element("span", "hk-quiet-text", text);
    case "unbroken":
    case "moment":
      return element("span", "hk-nowrap", text);
    default:
      return element("span", "", text);
  }
}

function diff(text: string): HTMLElement {
  const lines = text.replace(/\n$/, "").split("\n");
  const shown = lines.map((line) => {
    const side = /^(\+\+\+|---|@@)/.test(line) ? "" : (line[0] ?? "");
    return element(side === "+" ? "ins" : side === "-" ? "del" : "span", "hk-diff-line", line || " ");
  });
  return element("pre", "hk-diff", ...shown);
}

const list = (value: unknown): Part[] => (Array.isArray(value) ? (value as Part[]) : []);
const all = (value: unknown): Node[] => list(value).map(draw);

function table(rows: Part[], headers: Part[]): HTMLElement {
  const head = headers.map((header) => {
    const cell = element("th", "", draw(header));
    cell.setAttribute("scope", "col");
    return cell;
  });
  const body = rows.map((row) => element("tr", "", ...list(row).map((cell) => element("td", "", draw(cell)))));
  return element("table", "", ...(head.length ? [element("thead", "", element("tr", "", ...head))] : []), element("tbody", "", ...body));
}

function facts(rows: Part[]): HTMLElement {
  const shown = rows.map((row) => {
    const [name, value] = list(row);
    const head = element("th", "", draw(name ?? ""));
    head.setAttribute("scope", "row");
    return element("tr", "", head, element("td", "", draw(value ?? "")));
  });
  return element("table", "hk-facts", element("tbody", "", ...shown));
}

/** A card: its mark and title as a heading, lines right under it, and its parts. */
function card(part: Record<string, unknown>): HTMLElement {
  const made = toned(element("div", CARD_CLASS), part);
  const title = String(part["card"]);
  made.setAttribute("role", "region");
  made.setAttribute("aria-label", (String(part["line"] ?? "") || title).slice(0, 100));
  if (title) {
    const mark = element("span", "hk-lab-mark", `${String(part["mark"] ?? "")} `);
    mark.setAttribute("aria-hidden", "true");
    // A heading by its role: JupyterLab would put an element like h3 into the table of contents.
    const heading = element("div", "hk-lab-title", mark, title);
    heading.setAttribute("role", "heading");
    heading.setAttribute("aria-level", "3");
    made.append(element("div", "hk-lab-head", heading, ...all(part["below"])));
  }
  for (const child of list(part["parts"])) {
    const isObject = typeof child === "object" && !Array.isArray(child);
    const stands = isObject && ("section" in child || "diff" in child || (child["line"] !== undefined && child["look"] === "note"));
    made.append(stands ? draw(child) : element("div", "hk-lab-section", draw(child)));
  }
  return made;
}

function draw(part: Part): Node {
  if (typeof part === "string") return document.createTextNode(part);
  if (Array.isArray(part)) return element("span", "", ...part.map(draw));
  if ("span" in part) return toned(span(String(part["span"]), part["look"]), part);
  if ("line" in part && !("card" in part)) {
    const made = element(part["look"] === "bare" ? "span" : "div", "hk-lab-line", draw(part["line"] as Part));
    made.dataset["look"] = String(part["look"] ?? "");
    return made;
  }
  if ("items" in part) return element("ul", "", ...list(part["items"]).map((item) => element("li", "", ...(typeof item === "string" ? ticked(item) : [draw(item)]))));
  if ("code" in part) {
    const made = element("pre", "hk-lab-code", String(part["code"]));
    const height = Number(part["max_height_px"] ?? 0);
    if (height > 0) {
      made.style.maxHeight = `${height}px`;
      made.tabIndex = 0; // so that the arrow keys can scroll it
    }
    return made;
  }
  if ("diff" in part) return diff(String(part["diff"]));
  if ("table" in part) return table(list(part["table"]), list(part["headers"]));
  if ("facts" in part) return facts(list(part["facts"]));
  if ("fold" in part) {
    const made = toned(element("details", "hk-lab-fold", element("summary", "", draw(part["fold"] as Part)), ...all(part["body"])), part);
    (made as HTMLDetailsElement).open = part["open"] === true;
    return made;
  }
  if ("section" in part) return element("div", "hk-lab-section", ...all(part["section"]));
  if ("card" in part) return card(part);
  throw new Error("This version of healkit cannot show one part of this card.");
}

/** Draws an output; one that it cannot read is shown as its plain text. */
class CardRenderer extends Widget implements IRenderMime.IRenderer {
  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.addClass("hk-lab-cards");
    try {
      const failure = model.data[FAILURE_TYPE] as unknown as Failure;
      if (failure.version !== 1) throw new Error(`This version of healkit cannot show cards of version ${failure.version}.`);
      this.node.replaceChildren(...all(failure.cards));
    } catch {
      this.node.replaceChildren(element("pre", "", String(model.data["text/plain"] ?? "")));
    }
    return Promise.resolve();
  }
}

export const cardFactory: IRenderMime.IRendererFactory = {
  safe: true,
  mimeTypes: [FAILURE_TYPE],
  defaultRank: 40, // before text/html
  createRenderer: () => new CardRenderer(),
};
