// What the extension and the panels agree on: three globals of the page.
//
// The panels (js/src) also run where there is no extension, so they know it only by these.
import type { DocumentRegistry } from "@jupyterlab/docregistry";

/** What the extension can do for a panel; js/src/page.js is the one that reads it. */
export interface HealkitLab {
  /** Show an element in the right sidebar, in place of the one of that key; `closed` is called when the user closes the tab. */
  dock(key: string, title: string, element: HTMLElement, closed: () => void): { close(): void; front(): void };
  /** Run a cell of that notebook as the user would; resolves to whether it ended without an error. */
  run(context: DocumentRegistry.IContext<DocumentRegistry.IModel>, cellId: string): Promise<boolean>;
  /** Where the person wants panels to open. */
  panels: "cell" | "sidebar";
}

/** A panel of a failure that is drawn in a cell: `look` shows its proposal. */
export interface Fix {
  look(): Promise<void>;
  element: HTMLElement;
}

/** The bundle of the panels, by the hash that a kernel's healkit asks for. */
type Bundle = PromiseLike<{ open: unknown }>;

interface Page {
  __healkitLab?: HealkitLab;
  __healkitFixes?: WeakMap<Element, Fix>;
  __healkitPanels?: Map<string, Bundle>;
}

const page = globalThis as Page;

export function setLab(lab: HealkitLab): void {
  page.__healkitLab = lab;
}

/** The fix that the page shows in a cell. */
export function fixIn(cell: Element): Fix | undefined {
  return (page.__healkitFixes ??= new WeakMap()).get(cell);
}

/** Have the panels of that hash come from `load`, which is called when the first of them is opened. */
export function setPanels(hash: string, load: () => Promise<{ open: unknown }>): void {
  const bundle: Bundle = { then: (resolve, reject) => load().then(resolve, reject) };
  (page.__healkitPanels ??= new Map()).set(hash, bundle);
}
