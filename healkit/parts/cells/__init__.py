"""Notebook dataflow: which cells define what a cell lacks.

- `advice`: `advise(CellCase(…))` is pure: it takes what is known of the notebook, runs nothing, and returns data;
  `messages` has its sentences.
- `notebook_file`: runs of cells, and the notebook's file, if there is one. `notebook_state`: what the two say together.
- `dataflow`: the names that a cell binds and reads. `cell_program`: a cell as a program, or as the code of a tool.

The extension records every cell and most cells never fail, so only `notebook_file` is loaded before the first failure.
"""
