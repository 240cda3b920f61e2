"""Run all benchmarks: `python -m benchmarks [NAME …]`, each in a process of its own.

In one process the heap, the caches and the modules that one leaves would be measured with the next.
"""

from __future__ import annotations

import multiprocessing
import platform
import sys
from concurrent.futures import ProcessPoolExecutor

from benchmarks.measuring import LINES, lines_of, table

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
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawned, max_tasks_per_child=1) as processes:
        for lines in processes.map(lines_of, sys.argv[1:] or NAMES):
            LINES.extend(lines)
    print(f"\nPython {platform.python_version()}, {platform.machine()}\n\n{table()}")


if __name__ == "__main__":
    main()
