"""Live panels, each a Python file and a JavaScript file.

The JavaScript is in `js/src/`; `npm run build` makes the bundle in `static/`, which is committed with the licences of
its parts. A panel is always the second output: the static card above it remains readable after the kernel has ended.

Importing a panel imports anywidget; nothing else in healkit does. `panels` lists them all.
"""
