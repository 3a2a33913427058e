// The cell around a panel: its error's library frames, and the card above the panel.

/** The first line of a frame that is no code of the notebook's own, as IPython writes it and as Python does. */
const LIBRARY = /^(?:File | {2}File ").*(?:[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/]python3|\.p(?:yx|xd|xi)\b|<frozen )/;
const FRAME = /^(?:File |Cell | {2}File ")/;

/** Where the runs of library frames are in a traceback: begin, end, and how many frames. */
export function libraryFrames(text) {
  const runs = [];
  let at = 0;
  let inside = false; // a frame of a library
  for (const line of text.split("\n")) {
    if (FRAME.test(line)) {
      const begins = LIBRARY.test(line);
      if (begins && inside) runs.at(-1).count += 1;
      else if (begins) runs.push({ begin: at, end: at, count: 1 });
      inside = begins;
    } else if (/^\S/.test(line) && !/^-*> ?\d|^\d+ |^\(\.\.\.\)/.test(line)) inside = false; // the arrow is shorter before a long number
    at += line.length + 1;
    if (inside) runs.at(-1).end = at;
  }
  return runs;
}

/** The place of a character of an element's text. */
function placeOf(root, offset) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  let left = offset;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (left <= node.data.length) return [node, left];
    left -= node.data.length;
  }
  return [root, root.childNodes.length];
}

/** Fold the library frames of an error that the page shows; what is saved stays as it is. Returns what undoes it. */
export function foldFrames(pre) {
  if (pre.querySelector("details")) return () => {};
  const whole = [...pre.childNodes].map((node) => node.cloneNode(true));
  const runs = libraryFrames(pre.textContent).reverse();
  for (const { begin, end, count } of runs) {
    const range = document.createRange();
    range.setStart(...placeOf(pre, begin));
    range.setEnd(...placeOf(pre, end));
    const summary = Object.assign(document.createElement("summary"), { textContent: `${count} library frame${count > 1 ? "s" : ""}` });
    summary.style.cssText = "cursor:pointer;opacity:.75";
    const folded = document.createElement("details");
    folded.append(summary, range.extractContents());
    range.insertNode(folded);
  }
  return () => runs.length && pre.replaceChildren(...whole);
}

/** Make room for a panel in its cell: its error is folded, and the card right above it is out of the way. */
export function makeRoom(el) {
  const own = el.closest(".jp-OutputArea-child");
  const undo = [...(own?.parentElement?.querySelectorAll('[data-mime-type="application/vnd.jupyter.stderr"] pre, [data-mime-type="application/vnd.jupyter.error"] pre') ?? [])].map(foldFrames);
  const card = own?.previousElementSibling;
  if (card?.querySelector('.hk-lab-card, [style*="--hk-"]')) {
    card.style.display = "none";
    undo.push(() => (card.style.display = ""));
  }
  return () => undo.forEach((back) => back());
}
