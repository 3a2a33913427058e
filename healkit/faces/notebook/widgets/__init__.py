"""Live panels, each a Python file and a JavaScript file.

The JavaScript is in `js/src/`; `npm run build` makes the bundle in `static/`, which is committed with the licences of
what is in it. A panel is always the second output: the static card above it can be read when the kernel is gone.

Importing a panel loads anywidget; nothing else in healkit does. `panels` names them all.
"""
