"""Command line as a module: `python -m healkit`."""

from healkit.faces.cli import main

if __name__ == "__main__":
    main()
