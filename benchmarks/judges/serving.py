"""Serve a model on this machine: `python serving.py MODEL.gguf PORT CONTEXT SLOTS`.

Needs xllamacpp. Speaks OpenAI's protocol on the loopback, and ends when its input does.
"""

from __future__ import annotations

import os
import sys

import xllamacpp


def main() -> None:
    model, port, context, slots = sys.argv[1], *map(int, sys.argv[2:5])
    given = xllamacpp.CommonParams()
    given.model.path = model
    given.port = port
    given.hostnames = ["127.0.0.1"]
    given.n_ctx = context
    given.n_parallel = slots
    given.cpuparams.n_threads = os.cpu_count() or 1
    given.cache_ram_mib = 0
    server = xllamacpp.Server(given)
    print("ready", flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main()
    os._exit(0)  # whatever threads are left
