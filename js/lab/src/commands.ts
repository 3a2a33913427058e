// The commands: in the palette, with shortcuts, in the menu of a failing cell and on its toolbar.
import type { JupyterFrontEnd } from "@jupyterlab/application";
import { Notification, type ICommandPalette } from "@jupyterlab/apputils";
import type { CodeCell, ICodeCellModel } from "@jupyterlab/cells";
import { URLExt } from "@jupyterlab/coreutils";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import { ServerConnection } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import { CARD_CLASS } from "./card.js";
import { errorAt, isFailing, isFixable } from "./failing.js";
import { fixIcon, healkitIcon } from "./icons.js";
import { fixOf, settled, showFix } from "./kernels.js";
import { PANEL_ID } from "./side.js";

export const COMMANDS = {
  open: "healkit:open-panel",
  page: "healkit:open-page",
  fix: "healkit:fix",
  explain: "healkit:explain",
  next: "healkit:next-failing",
  previous: "healkit:previous-failing",
} as const;

/** Show the fix of a cell's error. */
export async function fixCell(panel: NotebookPanel, cell: CodeCell, trans: TranslationBundle): Promise<void> {
  const fix = await fixOf(panel, cell, trans);
  if (!fix) {
    const { widgets } = cell.outputArea;
    if (!cell.node.querySelector(".hk-lab-aside")) widgets[widgets.length - 1]?.node.scrollIntoView({ block: "nearest" });
    return;
  }
  fix.element.scrollIntoView({ block: "nearest" });
  await fix.look();
}

/** Show the card of a cell's error. */
async function explainCell(panel: NotebookPanel, cell: CodeCell, trans: TranslationBundle): Promise<void> {
  const find = () => [...cell.node.querySelectorAll<HTMLElement>(`.hk, .${CARD_CLASS}`)].find((element) => element.offsetParent !== null);
  await settled(cell);
  const shown = find() ?? ((await showFix(panel, cell, trans)) ? find() : undefined);
  shown?.scrollIntoView({ block: "nearest" });
}

/** Go to the next failing cell in that direction, around the end of the notebook. */
async function goTo(panel: NotebookPanel, step: 1 | -1, trans: TranslationBundle): Promise<void> {
  const { content } = panel;
  const { length } = content.widgets;
  for (let away = 1; away <= length; away += 1) {
    const at = (content.activeCellIndex + step * away + length * 2) % length;
    const cell = content.widgets[at];
    if (cell?.model.type !== "code" || errorAt((cell as CodeCell).model) < 0) continue;
    content.deselectAll();
    content.activeCellIndex = at;
    content.activate(); // the keys go on from here
    await content.scrollToCell(cell);
    return;
  }
  Notification.info(trans.__("No cell of this notebook has failed."), { autoClose: 3000 });
}

export function addCommands(app: JupyterFrontEnd, tracker: INotebookTracker, palette: ICommandPalette | null, trans: TranslationBundle, offered: () => boolean): void {
  const { commands } = app;
  const current = (which: (model: ICodeCellModel) => boolean) => {
    const panel = tracker.currentWidget;
    const cell = panel?.content.activeCell;
    return panel && cell?.model.type === "code" && which((cell as CodeCell).model) ? { panel, cell: cell as CodeCell } : null;
  };
  const toFix = () => (offered() ? current(isFixable) : null);
  const toExplain = () => current(isFailing);
  const ofNotebook = { isEnabled: () => tracker.currentWidget !== null };

  commands.addCommand(COMMANDS.open, {
    label: trans.__("Open healkit's Side Panel"),
    icon: healkitIcon,
    execute: () => app.shell.activateById(PANEL_ID),
  });
  commands.addCommand(COMMANDS.page, {
    label: trans.__("Open healkit's Log in a Browser Tab"),
    execute: () => window.open(URLExt.join(ServerConnection.makeSettings().baseUrl, "healkit/"), "_blank", "noopener"),
  });
  commands.addCommand(COMMANDS.fix, {
    isEnabled: () => toFix() !== null,
    isVisible: () => toFix() !== null,
    label: trans.__("Fix the Failing Cell"),
    caption: trans.__("Look for a fix of this cell's error and show it before anything changes"),
    icon: fixIcon,
    execute: () => {
      const found = toFix();
      return found && fixCell(found.panel, found.cell, trans);
    },
  });
  commands.addCommand(COMMANDS.explain, {
    isEnabled: () => toExplain() !== null,
    isVisible: () => toExplain() !== null,
    label: trans.__("Explain the Failing Cell"),
    execute: () => {
      const found = toExplain();
      return found && explainCell(found.panel, found.cell, trans);
    },
  });
  for (const [id, label, step] of [
    [COMMANDS.next, trans.__("Go to the Next Failing Cell"), 1],
    [COMMANDS.previous, trans.__("Go to the Previous Failing Cell"), -1],
  ] as const) {
    commands.addCommand(id, { ...ofNotebook, label, execute: () => tracker.currentWidget && goTo(tracker.currentWidget, step, trans) });
  }
  for (const command of Object.values(COMMANDS)) palette?.addItem({ command, category: "healkit" });
}
