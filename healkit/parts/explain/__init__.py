"""Failure catalogue: each exception matched, explained, fixed.

- `catalogue`: all rows in order, and the rows that match. `failure_kind`, `no_fix` and `outside` serve a diagnosis.
- `explanation`: the texts for a failure, filled in from the rows that match it. A card begins there.
- One data file for each subject, such as `keys.toml`: what matches, the sentences, the examples. The module of the same
  name has the code of its fixes.
- `fixes`: `fixes.proposals` gives the rules advisor its patches.
- `site`: the place of a failure, as the fixes see it.
- `syntax_repair`: repair of code that Python cannot read.
"""
