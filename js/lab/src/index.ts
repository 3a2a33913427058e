// healkit in JupyterLab and Notebook: one plugin.
//
// What Notebook 7 or a trimmed JupyterLab may lack (status bar, palette, settings, translations) is optional. Nothing here
// runs code in a kernel without a click, but for `%load_ext healkit` where the person has asked for it in the settings.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { INotebookTracker, NotebookActions } from "@jupyterlab/notebook";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { IStatusBar } from "@jupyterlab/statusbar";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";
import { cardFactory } from "./card.js";
import { addCommands, COMMANDS, fixCell } from "./commands.js";
import { Dock } from "./dock.js";
import { FailingCells } from "./failing.js";
import { KernelSettings } from "./kernels.js";
import { setLab, setPanels, type HealkitLab } from "./seams.js";
import { Settings } from "./settings.js";
import { openFirst, place, SidePanelTab, StatusItem, StatusPoll, TrustQuestion } from "./side.js";
import css from "./style.css";

/** Hash of healkit/faces/notebook/widgets/static/panels.js; written in by the build. */
declare const PANELS_HASH: string;

const PLUGIN_ID = "healkit:plugin";

function activate(app: JupyterFrontEnd, tracker: INotebookTracker, rendermime: IRenderMimeRegistry, translator: ITranslator | null, registry: ISettingRegistry | null, palette: ICommandPalette | null, bar: IStatusBar | null): void {
  const trans = (translator ?? nullTranslator).load("healkit");
  const settings = new Settings();
  const style = document.createElement("style");
  style.textContent = css;
  document.head.append(style);

  rendermime.addFactory(cardFactory);
  setPanels(PANELS_HASH, () => import("../../src/main.js"));
  const dock = new Dock(app);
  const lab: HealkitLab = {
    dock: (key, title, element, closed) => dock.add(key, title, element, closed),
    run: async (context, cellId) => {
      const panel = tracker.find(({ context: one }) => one === context);
      const cell = panel?.content.widgets.find(({ model }) => model.id === cellId);
      return panel !== undefined && cell !== undefined && NotebookActions.runCells(panel.content, [cell], panel.sessionContext);
    },
    get panels() {
      return settings.panels === "sidebar" ? "sidebar" : "cell";
    },
  };
  setLab(lab);

  addCommands(app, tracker, palette, trans, () => settings.fixes);
  const changed = () => app.commands.notifyCommandChanged(COMMANDS.fix);
  new FailingCells(tracker, (panel, cell) => fixCell(panel, cell, trans), changed, trans);
  tracker.activeCellChanged.connect(changed);
  new KernelSettings(tracker, settings);

  const item = bar && new StatusItem(bar, () => void app.commands.execute(COMMANDS.open), trans);
  const poll = new StatusPoll((status) => {
    item?.show(status);
    tab.count(status?.waiting ?? 0);
    void question.ask(status?.untrusted);
  });
  const question = new TrustQuestion(() => poll.soon(), trans);
  const tab = new SidePanelTab(trans, () => poll.soon());
  NotebookActions.executed.connect(() => poll.soon());
  const arrange = () => {
    document.body.classList.toggle("hk-lab-no-fixes", !settings.fixes);
    place(app, tab, settings.side);
  };
  const arranged = (registry ? settings.load(registry, PLUGIN_ID).catch(() => {}) : Promise.resolve()).then(arrange);
  settings.changed.connect(arrange);
  void app.restored.then(() => poll.start());
  void Promise.all([arranged, app.restored]).then(() => openFirst(app));
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description: "Fix buttons, cards and the side panel of healkit.",
  autoStart: true,
  requires: [INotebookTracker, IRenderMimeRegistry],
  optional: [ITranslator, ISettingRegistry, ICommandPalette, IStatusBar],
  activate,
};

export default plugin;
