"""Run all benchmarks: `python -m benchmarks [NAME …]`, each in a process of its own.

In one process the heap, the caches and the modules that one leaves would be measured with the next.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import sys
from concurrent.futures import ProcessPoolExecutor

from benchmarks.measuring import LINES, lines_of, table

HERE = (
    "importing",
    "ids",
    "texts",
    "judging",
    "capturing",
    "capturing_llamaindex",
    "storing",
)
"""What runs where none is named."""
BESIDE = ("ids_peers", "texts_peers", "judging_peers", "on_ray")
"""What needs more: see RESULTS.md."""


def main() -> None:
    given = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    given.add_argument("names", nargs="*", metavar="NAME", help=", ".join(HERE + BESIDE))
    names = given.parse_args().names or HERE
    if unknown := set(names).difference(HERE, BESIDE):
        given.error(f"no benchmark: {', '.join(unknown)}; there are {', '.join(HERE + BESIDE)}")
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawned, max_tasks_per_child=1) as processes:
        try:
            for lines in processes.map(lines_of, names):
                LINES.extend(lines)
        except ModuleNotFoundError as error:
            sys.exit(f"{error}: benchmarks/RESULTS.md says in which environment each runs")
    print(f"\nPython {platform.python_version()}, {platform.machine()}\n\n{table()}")


if __name__ == "__main__":
    main()
