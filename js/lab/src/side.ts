// The side panel, the count of waiting requests on its icon, and the item in the status bar.
import type { JupyterFrontEnd } from "@jupyterlab/application";
import { Dialog, Notification, showDialog } from "@jupyterlab/apputils";
import { PageConfig, URLExt } from "@jupyterlab/coreutils";
import { ServerConnection } from "@jupyterlab/services";
import type { IStatusBar } from "@jupyterlab/statusbar";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Debouncer, Poll } from "@lumino/polling";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import type { SidePanel } from "../../src/side_panel.js";
import { healkitIcon } from "./icons.js";

/** Answer of the server's operation `waiting`. */
interface Status {
  isolation: string;
  waiting: number;
  untrusted?: Untrusted;
}

/** A database that its user has not trusted yet, and what it would grant. */
interface Untrusted {
  place: string;
  identity: string;
  tools: number;
  grants: string[];
  requests: string[];
}

const POLL_MS = 30_000;
const POLL_MAX_MS = 300_000;
/** So long after a cell has run, or the side panel has news: cells that run one after the other are one question. */
const SOON_MS = 1000;
export const PANEL_ID = "healkit-side-panel";
/** In the browser's storage, once the panel has been opened for the person. */
const SHOWN = "healkit:side-panel-shown";

/** Where the server extension answers, and how it is asked: with Jupyter's own token and XSRF header. */
export function server(): { url: string; request: (url: string, init: RequestInit) => Promise<Response> } {
  const settings = ServerConnection.makeSettings();
  return {
    url: URLExt.join(settings.baseUrl, "healkit", "api", "panels"),
    request: (url, init) => ServerConnection.makeRequest(url, init, settings),
  };
}

/** The tab: what is in it is loaded when it is first shown. */
export class SidePanelTab extends Widget {
  private panel: SidePanel | null = null;
  private opened = false;

  constructor(
    private readonly trans: TranslationBundle,
    private readonly waitingChanged: (waiting: number) => void,
  ) {
    super();
    this.id = PANEL_ID;
    this.addClass("hk-lab-side");
    this.title.icon = healkitIcon;
    this.node.setAttribute("role", "region");
    this.node.setAttribute("aria-label", "healkit");
    this.count(0);
  }

  /** Write the number of waiting requests on the icon. */
  count(waiting: number): void {
    this.title.caption = waiting ? this.trans._n("healkit: %1 request is waiting", "healkit: %1 requests are waiting", waiting, waiting) : this.trans.__("healkit: failures, executions, tools");
    this.title.dataset = { ...this.title.dataset, "hk-waiting": waiting ? String(waiting) : "" };
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this.open();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) void this.open();
  }

  override dispose(): void {
    this.panel?.close();
    super.dispose();
  }

  private async open(): Promise<void> {
    if (this.opened) return;
    this.opened = true;
    try {
      const [{ SidePanel }, { ServerLink }] = await Promise.all([import("../../src/side_panel.js"), import("../../src/server_link.js")]);
      const panel = new SidePanel({ link: new ServerLink(server()), onwaiting: this.waitingChanged });
      this.panel = panel;
      this.node.replaceChildren(panel.element);
      await panel.start();
    } catch (error) {
      this.opened = false;
      this.node.textContent = this.trans.__("healkit: this panel could not be opened (%1). Close it and open it again.", String(error));
    }
  }
}

/**
 * Asks the server now and then how things stand; not while the page is hidden, and not where the server has no healkit.
 * As long as there is no database the answer is null, and the server makes none.
 */
export class StatusPoll {
  status: Status | null = null;
  private readonly poll: Poll;
  private readonly debouncer = new Debouncer(() => this.poll.refresh(), SOON_MS);

  constructor(told: (status: Status | null) => void) {
    const { url, request } = server();
    this.poll = new Poll({
      name: "healkit:status",
      auto: false,
      frequency: { interval: POLL_MS, backoff: true, max: POLL_MAX_MS },
      standby: "when-hidden",
      factory: async () => {
        const answer = await request(url, { method: "POST", body: JSON.stringify({ op: "waiting", args: {} }) });
        if (answer.status === 404) void this.poll.stop();
        this.status = answer.ok ? (((await answer.json()) as { value?: Status }).value ?? null) : null;
        told(this.status);
      },
    });
  }

  start(): void {
    void this.poll.start();
  }

  /** Ask soon: something has happened. */
  soon(): void {
    const { phase } = this.poll.state;
    if (phase !== "constructed" && phase !== "stopped") void this.debouncer.invoke();
  }
}

/** The item in the status bar: the tier that tools run in, and what waits; a press opens the side panel. */
export class StatusItem {
  private readonly button = document.createElement("button");
  private readonly widget = new Widget();

  constructor(
    bar: IStatusBar,
    open: () => void,
    private readonly trans: TranslationBundle,
  ) {
    this.button.type = "button";
    this.button.className = "hk-lab-status jp-mod-highlighted";
    this.button.addEventListener("click", open);
    this.widget.node.append(this.button);
    this.widget.hide();
    bar.registerStatusItem("healkit:status", { item: this.widget, align: "left", rank: 90 });
  }

  show(status: Status | null): void {
    this.widget.setHidden(status === null);
    if (status === null) return;
    const waiting = status.waiting ? ` · ${this.trans._n("%1 request", "%1 requests", status.waiting, status.waiting)}` : "";
    this.button.textContent = `healkit: ${status.isolation}${waiting}`;
    this.button.title = this.trans.__("Isolation of tools: %1. Waiting requests: %2. Click to open healkit's side panel.", status.isolation, status.waiting);
  }
}

/** Asks once whether the person trusts a database that was made elsewhere; *Not now* holds until the page is loaded anew. */
export class TrustQuestion {
  private asked = "";

  constructor(
    private readonly answered: () => void,
    private readonly trans: TranslationBundle,
  ) {}

  async ask(found: Untrusted | undefined): Promise<void> {
    if (!found || this.asked === found.identity + found.place) return;
    this.asked = found.identity + found.place;
    const { trans } = this;
    const body = new Widget();
    body.addClass("hk-lab-trust");
    const lines = [
      trans.__("You did not create %1 on this machine, or you created it before healkit asked this question. Until you trust it, its tools run without grants and calls. No request can be accepted.", found.place),
      trans.__("Tools: %1. They would get these grants:", found.tools),
      ...(found.grants.length ? found.grants : [trans.__("nothing")]),
      ...(found.requests.length ? [trans.__("Waiting requests: %1", found.requests.join(", "))] : []),
      trans.__("Trust it if it is yours, or if you trust the person who made it."),
    ];
    for (const line of lines) body.node.append(Object.assign(document.createElement("p"), { textContent: line }));
    const { button } = await showDialog({ title: trans.__("Trust this database?"), body, buttons: [Dialog.cancelButton({ label: trans.__("Not now") }), Dialog.okButton({ label: trans.__("Trust") })], defaultButton: 0 });
    if (!button.accept) return;
    const settings = ServerConnection.makeSettings();
    const url = URLExt.join(settings.baseUrl, "healkit", "api", "trust");
    const answer = await ServerConnection.makeRequest(url, { method: "POST", body: JSON.stringify({ place: found.place, identity: found.identity }) }, settings);
    if (!answer.ok) Notification.warning(trans.__("The database could not be trusted: %1", await answer.text()), { autoClose: 8000 });
    this.answered();
  }
}

/** Put the tab where the person wants it. */
export function place(app: JupyterFrontEnd, tab: SidePanelTab, side: "left" | "right"): void {
  app.shell.add(tab, side, { rank: 850 });
}

/** Open the tab for the person, in a JupyterLab that `healkit lab` has started; once, so that a closed one stays closed. */
export function openFirst(app: JupyterFrontEnd): void {
  if (PageConfig.getOption("healkitSidePanel") !== "open" || localStorage.getItem(SHOWN) !== null) return;
  localStorage.setItem(SHOWN, "yes");
  app.shell.activateById(PANEL_ID);
}
