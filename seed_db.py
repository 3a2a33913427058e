"""Seed a healkit database: its tables, the debug tools, the samples and the gallery of broken tools.

python seed_db.py [--reset] [--db URL_OR_PATH] [--debug-tools-only]
"""

from healkit.parts.teach.seeding import main

if __name__ == "__main__":
    raise SystemExit(main())
