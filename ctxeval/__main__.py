"""`python -m ctxeval` is the command `ctxeval`."""

from ctxeval.cli import main

if __name__ == "__main__":
    main()
