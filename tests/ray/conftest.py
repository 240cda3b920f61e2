"""One Ray on this machine for all of its tests, stopped at the end."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest

# Nothing is told to anybody, and Ray speaks on the loopback alone.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """Start Ray on two processors."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("ray.data", reason="Ray's data library is not installed")
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
        object_store_memory=200 * 2**20,
        _system_config={"worker_niceness": 0},  # else whatever else runs is served first
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()
