// Elements of panels as tabs of the right sidebar.
import type { JupyterFrontEnd } from "@jupyterlab/application";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import { healkitIcon } from "./icons.js";

class DockedPanel extends Widget {
  constructor(
    id: string,
    title: string,
    element: HTMLElement,
    private readonly ended: () => void,
  ) {
    super();
    this.id = id;
    this.addClass("hk-lab-docked");
    this.title.icon = healkitIcon;
    this.title.label = title;
    this.title.caption = title;
    this.title.closable = true;
    this.node.append(element);
  }

  protected override onCloseRequest(message: Message): void {
    this.ended();
    super.onCloseRequest(message);
    this.dispose();
  }
}

/** The tabs, by their keys. */
export class Dock {
  private readonly open = new Map<string, DockedPanel>();
  private count = 0;

  constructor(private readonly app: JupyterFrontEnd) {}

  add(key: string, title: string, element: HTMLElement, closed: () => void): { close(): void; front(): void } {
    this.open.get(key)?.dispose();
    const panel = new DockedPanel(`healkit-docked-${(this.count += 1)}`, title, element, () => {
      if (this.open.get(key) === panel) this.open.delete(key);
      closed();
    });
    this.open.set(key, panel);
    this.app.shell.add(panel, "right", { rank: 950 });
    return {
      close: () => {
        if (this.open.get(key) === panel) this.open.delete(key);
        panel.dispose();
      },
      front: () => this.app.shell.activateById(panel.id),
    };
  }
}
