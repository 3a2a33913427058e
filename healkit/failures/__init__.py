"""Failure catalogue: each exception matched, explained, fixed.

- `catalogue`: all rows in one order, and the questions they answer: `explain` puts a failure into plain words, `kind_of`
  and `no_fix` serve a diagnosis, `proposals` gives the rules advisor its patches. `pattern`: the shape of a row.
- A module for each subject: its rows, and the functions that propose their fixes.
- `site`: the place of a failure, as the fixes see it.
- `syntax_repair`: repair of code that Python cannot read.
"""
