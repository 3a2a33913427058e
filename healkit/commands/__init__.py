"""Commands: rows of a terminal and a notebook.

A command is a function of what it works on and of what was typed, and returns an `Answer`. Its parameters are its
options, each with its row (`options.Option`), and its docstring is its help. A part returns its rows by the hook
`commands`; those of the core are in `faces.commands`. `faces.cli.command` makes a command of the terminal of a row; a
magic calls it with its words.
"""
