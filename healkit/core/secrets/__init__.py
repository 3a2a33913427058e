"""Secrets by their names, and the seam to what hides them.

`secret_names` knows which names, keys and columns hold a secret. `cleaner` says what cleans, and cleans a record with
it: what hides is a plug-in, `healkit.parts.sanitizer`.
"""
