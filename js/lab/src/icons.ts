// Icons of our own, in the theme's colours.
import { LabIcon } from "@jupyterlab/ui-components";

const svg = (paths: string): string => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">${paths}</svg>`;

/** A plaster with a cross: healkit itself. */
export const healkitIcon = new LabIcon({
  name: "healkit:healkit",
  svgstr: svg('<path class="jp-icon3 jp-icon-selectable" fill="#616161" fill-rule="evenodd" d="M5 3h14a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2Zm5.2 4v3.2H7v3.6h3.2V17h3.6v-3.2H17v-3.6h-3.2V7h-3.6Z"/>'),
});

/** A spanner: a fix. */
export const fixIcon = new LabIcon({
  name: "healkit:fix",
  svgstr: svg('<path class="jp-icon3 jp-icon-selectable" fill="#616161" d="M21.6 6.2 18 9.8 14.2 6l3.6-3.6a6 6 0 0 0-7.6 7.7L2.9 17.4a2.6 2.6 0 0 0 3.7 3.7l7.3-7.3a6 6 0 0 0 7.7-7.6Z"/>'),
});
