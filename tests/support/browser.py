"""A real browser for tests: Debian's chromium, driven by playwright.

Where there is none, the tests are skipped; where `CTXEVAL_BROWSER=required` is set, they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def needed(reason: str) -> None:
    """Skip for a reason, or fail where a browser is required."""
    if os.environ.get("CTXEVAL_BROWSER") == "required":
        pytest.fail(f"{reason}, but CTXEVAL_BROWSER=required")
    pytest.skip(reason)


@contextmanager
def page(**options: Any) -> Iterator[Any]:
    """Open a page of a browser that reaches nothing but this machine.

    Args:
        **options: What playwright's `new_context` takes: viewport, color_scheme, …
    """
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        needed("playwright is not installed")
    if CHROMIUM is None:
        needed("there is no chromium")
    with sync_playwright() as playwright:
        nowhere = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", nowhere]
        )
        yield launched.new_context(**options).new_page()
        launched.close()


def keep(picture: bytes, name: str) -> None:
    """Keep a picture in the folder `CTXEVAL_ARTEFACTS`, where one is named."""
    if folder := os.environ.get("CTXEVAL_ARTEFACTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / name).write_bytes(picture)
