"""Commands that a terminal and a notebook have in common.

A command is a function of a `Healkit` and of what was typed, and returns an `Answer`. Its parameters are its options,
each with its row (`options.Option`), and its docstring is its help. `cli.command` makes a command of the terminal of
it; a magic calls it with its words.
"""
