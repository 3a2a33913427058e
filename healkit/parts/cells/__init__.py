"""Notebook dataflow: which cells define what a cell lacks.

- `advice`: `advise(CellCase(…))` is pure. It takes the known facts about the notebook, runs nothing, and returns data.
- `messages`: the sentences of the advice.
- `notebook_file`: runs of cells, and the notebook's file, if there is one.
- `notebook_state`: what runs and file say together.
- `dataflow`: the names that a cell binds and reads.
- `cell_program`: a cell as a program, or as the code of a tool.

The extension records every cell, but most cells never fail. So only `notebook_file` is loaded before the first failure.
"""
