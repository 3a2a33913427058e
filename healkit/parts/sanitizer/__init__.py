"""Sanitiser: hides secrets and personal data in what is kept.

`Sanitizer` in `sanitizer` is the service. Compiling the rules is slow, so most modules need only its interface,
`healkit.core.secrets.cleaner`. A value passes the modules in this order: `matcher` walks nested data, finds keywords
and tries the rules there: `tokens` by their own form, `syntaxes` by their name or place, `personal_data`. `assignments`
with `secret_values` judges the value after a secret's name. `rule` defines a rule, and how much work a text may cost.
"""
