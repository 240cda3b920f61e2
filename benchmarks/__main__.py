"""Run all benchmarks: `python -m benchmarks [NAME …]`."""

from __future__ import annotations

import platform
import sys
from importlib import import_module

from benchmarks.measuring import table

NAMES = (
    "importing",
    "ids",
    "texts",
    "judging",
    "capturing",
    "capturing_llamaindex",
    "storing",
)


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        import_module(f"benchmarks.{name}").main()
    print(f"\nPython {platform.python_version()}, {platform.machine()}\n\n{table()}")


main()
