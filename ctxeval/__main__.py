"""`python -m ctxeval` is the command `ctxeval`."""

from ctxeval.cli import main

main()
