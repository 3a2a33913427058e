"""Commands: rows of a terminal and a notebook.

A command is a function. It takes a `Healkit` or its services, and the typed values, and returns an `Answer`. Each
parameter is an option with its own row (`options.Option`); the docstring is the help text. Parts add commands by the
hook `commands`; the commands of the core are in `faces.commands`. `faces.cli.command` turns a row into a terminal
command, and a magic calls the row with its typed words.
"""
