declare module "*.py" {
  const text: string;
  export default text;
}
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*/src/main.js" {
  export function open(model: unknown, el: HTMLElement): Promise<() => void>;
}
declare module "*/src/side_panel.js" {
  export class SidePanel {
    constructor(options: { link: unknown; onwaiting: (waiting: number) => void });
    element: HTMLElement;
    start(): Promise<unknown>;
    close(): void;
  }
}
declare module "*/src/server_link.js" {
  export class ServerLink {
    constructor(options: { url: string; request: (url: string, init: RequestInit) => Promise<Response> });
  }
}

declare module "*/src/cell_page.js" {
  /** Fold the library frames of an error that the page shows; returns what undoes it. */
  export function foldFrames(pre: HTMLElement): () => void;
}

declare module "*/src/dom.js" {
  export function keepPress(button: HTMLButtonElement): void;
}
