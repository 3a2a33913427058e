"""Seed a database: tables, debug tools, samples, gallery.

The gallery has broken tools. Run it as `python seed_db.py [--reset] [--db URL_OR_PATH] [--debug-tools-only]`.
"""

from healkit.parts.teach.seeding import main

if __name__ == "__main__":
    raise SystemExit(main())
