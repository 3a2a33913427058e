"""Failure catalogue: each exception matched, explained, fixed.

- `catalogue`: all rows in one order, and which match; `failure_kind`, `no_fix` and `outside` serve a diagnosis.
- `explanation`: a failure with the rows that match it, put into plain words: the walk to a card begins there.
- A data file for each subject, such as `keys.toml`: what matches, the sentences, the examples. The module of the same
  name has the code of its fixes; `fixes.proposals` gives the rules advisor its patches.
- `site`: the place of a failure, as the fixes see it.
- `syntax_repair`: repair of code that Python cannot read.
"""
