"""Sanitiser: hides secrets and personal data in what is kept.

`Sanitizer` in `sanitizer` is the service. Most modules need only the seam to it, `healkit.core.secrets.cleaner`:
compiling the rules is slow. A value meets the modules in this order: `matcher` walks nested data, finds keywords and
tries the rules there (`tokens` by their own form, `syntaxes` by their name or place, `personal_data`), `assignments`
with `secret_values` judges the value behind a secret's name. `rule` says what a rule is, and how much work a text may
cost.
"""
