"""The CPU time of `import ctxeval`, beside that of a bare interpreter and of pydantic alone."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

from benchmarks.measuring import report

_CHILD = """
import resource, subprocess, sys
before = resource.getrusage(resource.RUSAGE_CHILDREN)
subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
after = resource.getrusage(resource.RUSAGE_CHILDREN)
print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
"""


def _cpu(code: str) -> float:
    """Give the median CPU milliseconds of running some code in an interpreter of its own."""
    times = [
        float(subprocess.check_output([sys.executable, "-c", _CHILD, code])) for _ in range(15)
    ]
    return 1000 * median(times)


def main() -> None:
    bare = _cpu("pass")
    report("import pydantic.BaseModel", _cpu("from pydantic import BaseModel") - bare, "ms CPU")
    report("import ctxeval", _cpu("import ctxeval") - bare, "ms CPU", limit=120)
