// CodeMirror 6: one editor, or two side by side; unified where there is no room for two.
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { python } from "@codemirror/lang-python";
import { sql } from "@codemirror/lang-sql";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, highlightSpecialChars, keymap, WidgetType } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { h, pageNonce } from "./dom.js";

const NARROW_PX = 700;
const LANGUAGES = { python, sql, json };
/** Signs that cannot be seen, beside those that CodeMirror marks: text could read in another order than it runs. */
const UNSEEN = /[\u202a-\u202c\u2060-\u2064\u2068]/g;

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.moduleKeyword, tags.operatorKeyword, tags.definitionKeyword], color: "var(--hk-syn-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--hk-syn-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--hk-syn-number)" },
  { tag: [tags.comment, tags.docComment], color: "var(--hk-syn-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.className, tags.propertyName], color: "var(--hk-syn-name)" },
  { tag: [tags.invalid], color: "var(--hk-red)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--hk-ink)", backgroundColor: "var(--hk-paper)", fontSize: "13px" },
  "&.cm-focused": { outline: "2px solid var(--hk-focus)", outlineOffset: "-2px" },
  ".cm-content": { fontFamily: "var(--hk-mono)", caretColor: "var(--hk-ink)" },
  ".cm-gutters": { backgroundColor: "var(--hk-soft)", color: "var(--hk-muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLineGutter": { color: "var(--hk-ink)", fontWeight: "600" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--hk-selection) !important" },
  ".cm-cursor": { borderLeftColor: "var(--hk-ink)" },
  ".cm-panels": { backgroundColor: "var(--hk-soft)", color: "var(--hk-ink)" },
  ".cm-tooltip": { backgroundColor: "var(--hk-paper)", color: "var(--hk-ink)", border: "1px solid var(--hk-line)" },
  ".cm-changedLine": { backgroundColor: "var(--hk-green-soft) !important" },
  ".cm-deletedChunk, &.cm-merge-a .cm-changedLine": { backgroundColor: "var(--hk-red-soft) !important" },
  ".cm-changedText": { background: "none !important", textDecoration: "underline", textDecorationThickness: "2px", textUnderlineOffset: "3px" },
});

class Message extends WidgetType {
  constructor(text) {
    super();
    this.text = text;
  }

  eq(other) {
    return other.text === this.text;
  }

  toDOM() {
    return h("span", { class: "hk-failing-message" }, `✗ ${this.text}`);
  }
}

const setFailing = StateEffect.define();
/** The line that failed, marked by its colour, its bar and the message behind it; it moves as the code is edited. */
const failingLine = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = marks.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(setFailing)) next = mark(transaction.state, effect.value);
    }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function mark(state, failing) {
  if (!failing || failing.lineno < 1 || failing.lineno > state.doc.lines) return Decoration.none;
  const line = state.doc.line(failing.lineno);
  return Decoration.set([
    Decoration.line({ class: "hk-failing-line" }).range(line.from),
    Decoration.widget({ widget: new Message(failing.message), side: 1 }).range(line.to),
  ]);
}

function common(language, label) {
  return [
    basicSetup,
    highlightSpecialChars({ addSpecialChars: UNSEEN }),
    LANGUAGES[language](),
    indentUnit.of(language === "json" ? "  " : "    "),
    syntaxHighlighting(colours),
    look,
    failingLine,
    EditorView.cspNonce.of(pageNonce() ?? ""),
    EditorView.contentAttributes.of({ "aria-label": label }),
  ];
}

/** Keys that leave the editor: Esc goes on to the next control, when nothing in the editor wanted it. */
function leaving({ onleave, onrun }) {
  return [
    Prec.high(keymap.of([{ key: "Mod-Enter", run: () => (onrun?.(), true) }])),
    keymap.of([indentWithTab]),
    Prec.lowest(keymap.of([{ key: "Escape", run: () => (onleave?.(), true) }])),
  ];
}

/** The document or shadow root that the editor is drawn in; a panel may be drawn before it is put into the page. */
function rootOf(parent) {
  const root = parent.getRootNode();
  return root instanceof Document || root instanceof ShadowRoot ? root : document;
}

/** A small editor of its own, such as for arguments; `failing` is a line to be marked. */
export function small({ parent, doc, language, label, onchange, onleave, onrun, failing = null }) {
  const view = new EditorView({
    parent,
    root: rootOf(parent),
    doc,
    extensions: [
      common(language, label),
      leaving({ onleave, onrun }),
      EditorView.lineWrapping,
      EditorView.updateListener.of((update) => update.docChanged && onchange?.()),
    ],
  });
  view.dispatch({ effects: setFailing.of(failing) });
  return {
    focus: () => view.focus(),
    text: () => view.state.doc.toString(),
    set: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    close: () => view.destroy(),
  };
}

/** Code to look at, with its failing line marked. */
export function shown({ parent, doc, language, label, failing = null }) {
  const view = new EditorView({ parent, root: rootOf(parent), doc, extensions: [common(language, label), fixed, EditorView.lineWrapping] });
  view.dispatch({ effects: setFailing.of(failing) });
  return { close: () => view.destroy() };
}

/** Nothing to be typed, but to be reached and scrolled by keyboard. */
const fixed = [EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.contentAttributes.of({ tabindex: "0" })];
const UNCHANGED = { margin: 3, minSize: 6 };

/** The code beside another text of it; `readOnly` only shows how they differ, `narrow` does so in one column. */
export class Beside {
  constructor({ parent, language, theirs, mine, onchange, onleave, onrun, readOnly = false, narrow = false }) {
    Object.assign(this, { parent, language, theirs, onchange, onleave, onrun, readOnly, oneColumn: narrow });
    this.marks = { theirs: null, mine: null };
    this.narrow = undefined;
    this.draw(mine);
    this.watch = new ResizeObserver(() => {
      if (this.isNarrow() !== this.narrow) this.draw(this.text());
    });
    this.watch.observe(parent);
  }

  isNarrow() {
    return this.oneColumn || (this.parent.clientWidth > 0 && this.parent.clientWidth < NARROW_PX);
  }

  draw(mine) {
    const focused = this.editor?.hasFocus;
    const selection = this.editor?.state.selection;
    this.view?.destroy();
    this.narrow = this.isNarrow();
    const extensions = [
      common(this.language, "code"),
      this.readOnly ? fixed : leaving(this),
      EditorView.updateListener.of((update) => update.docChanged && this.onchange?.()),
    ];
    const collapseUnchanged = this.readOnly ? UNCHANGED : undefined;
    const root = rootOf(this.parent);
    if (this.narrow) {
      const unified = unifiedMergeView({ original: this.theirs, mergeControls: false, highlightChanges: true, gutter: true, collapseUnchanged });
      this.view = this.editor = new EditorView({ parent: this.parent, root, doc: mine, extensions: [...extensions, unified, EditorView.lineWrapping] });
    } else {
      extensions.push(EditorView.lineWrapping);
      const readOnly = [common(this.language, "the code it is compared with"), EditorState.readOnly.of(true), EditorView.editable.of(false), EditorView.lineWrapping];
      this.view = new MergeView({ parent: this.parent, root, a: { doc: this.theirs, extensions: readOnly }, b: { doc: mine, extensions }, highlightChanges: true, gutter: true, collapseUnchanged });
      this.editor = this.view.b;
    }
    this.redrawMarks();
    if (selection && selection.main.to <= mine.length) this.editor.dispatch({ selection });
    if (focused) this.editor.focus();
  }

  redrawMarks() {
    this.editor.dispatch({ effects: setFailing.of(this.marks.mine) });
    if (!this.narrow) this.view.a.dispatch({ effects: setFailing.of(this.marks.theirs) });
  }

  text() {
    return this.editor.state.doc.toString();
  }

  set(text) {
    this.editor.dispatch({ changes: { from: 0, to: this.editor.state.doc.length, insert: text } });
  }

  /** One column, in which what was taken out stands above what took its place, or two side by side. */
  setNarrow(narrow) {
    this.oneColumn = narrow;
    if (this.isNarrow() !== this.narrow) this.draw(this.text());
  }

  compareWith(theirs) {
    this.theirs = theirs;
    this.draw(this.text());
  }

  markFailing(side, failing) {
    const isNew = side === "mine" && failing && !this.marks.mine;
    this.marks[side] = failing;
    this.redrawMarks();
    if (isNew) this.goTo(failing.lineno);
  }

  /** Put the cursor into a line and the line into view; nothing is scrolled but the code. */
  goTo(lineno) {
    const { editor } = this;
    if (lineno < 1 || lineno > editor.state.doc.lines) return;
    const line = editor.state.doc.line(lineno);
    editor.dispatch({ selection: { anchor: line.from + line.text.search(/\S|$/) } });
    const scroller = this.narrow ? editor.scrollDOM : this.view.dom;
    editor.requestMeasure({
      read: () => editor.lineBlockAt(line.from),
      write: ({ top, bottom }) => {
        if (bottom > scroller.clientHeight) scroller.scrollTop = top - scroller.clientHeight / 2;
      },
    });
  }

  focus() {
    this.editor.focus();
  }

  close() {
    this.watch.disconnect();
    this.view.destroy();
  }
}
