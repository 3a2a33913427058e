"""Names of secrets, and the interface of cleaners.

`secret_names` recognises names, keys and columns that hold a secret. `cleaner` defines the interface of cleaners and
cleans records. The cleaner itself is a plug-in, `healkit.parts.sanitizer`.
"""
