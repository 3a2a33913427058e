"""`python -m healkit`: the command line without its script."""

from healkit.faces.cli import main

if __name__ == "__main__":
    main()
