"""An executed notebook in JupyterLab, trusted and not: what a reader sees of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import browser
import pytest
from notebook_cells import CHAIN

pytest.importorskip("jinja2")
pytest.importorskip("langchain_core")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

# JupyterLab's server and the browser are somebody else's: their warnings are not ours.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(300)]

HOSTILE = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'>"
    "</td></table></details>{{ 7 * 7 }}"
)
SETTINGS = "lab/user-settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"


def executed() -> object:
    """Make a notebook of a query whose second chunk is relevant, and hostile."""
    chain = CHAIN.replace(
        '"You may return goods within 30 days."', repr(f"Within 30 days. {HOSTILE}")
    )
    cells = [
        chain,
        "%load_ext ctxeval",
        "%ctxeval on --references references",
        "chain.invoke('Can I send it back?');",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    return notebook


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """A JupyterLab that serves the notebook twice: signed by its reader, and not."""
    if find_spec("jupyterlab") is None:
        browser.needed("jupyterlab is not installed")
    home = tmp_path_factory.mktemp("jupyter")
    for name in ("config", "data", "served"):
        (home / name).mkdir()
    notebook = executed()
    nbformat.write(notebook, home / "served" / "untrusted.ipynb")
    notebook.cells.append(nbformat.v4.new_markdown_cell("(mine)"))  # signatures are of contents
    from nbformat.sign import NotebookNotary

    NotebookNotary(data_dir=str(home / "data")).sign(notebook)
    nbformat.write(notebook, home / "served" / "trusted.ipynb")
    with serving(home) as address:
        yield address, home


@contextmanager
def serving(home: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (home / "config" / "jupyter_lab_config.py").write_text(
        f"c.ServerApp.root_dir = {str(home / 'served')!r}\n"
        f"c.ServerApp.port = {port}\n"
        "c.ServerApp.port_retries = 0\n"
        "c.ServerApp.ip = '127.0.0.1'\n"
        "c.ServerApp.open_browser = False\n"
        "c.ServerApp.allow_root = True\n"
        "c.IdentityProvider.token = ''\n"
        "c.LabApp.extension_manager = 'readonly'\n"
        "c.LabApp.news_url = None\n"
        "c.LabApp.check_for_updates_class = 'jupyterlab.NeverCheckForUpdate'\n"
    )
    places = {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        "HOME": str(home),
    }
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab"],
            env={**os.environ, **places},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{address}/api", server, home / "log")
        yield address
    finally:
        server.terminate()
        server.wait(30)


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        try:
            urllib.request.urlopen(address, timeout=1).close()
            return
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.25)
    raise TimeoutError(log.read_text())


@contextmanager
def opened(lab, name: str, theme: str = "Light") -> Iterator[object]:
    address, home = lab
    settings = home / "config" / SETTINGS
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'{{"theme": "JupyterLab {theme}"}}')
    with browser.page(viewport={"width": 1200, "height": 1500}) as page:
        page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
        page.wait_for_selector(".jp-OutputArea-output .chunks", timeout=120_000)
        yield page


@pytest.mark.parametrize("name", ["trusted", "untrusted"])
def test_every_verdict_is_visible_text_and_hostile_text_is_only_text(lab, name):
    with opened(lab, name) as page:
        output = page.locator(".jp-OutputArea-output", has=page.locator(".chunks"))
        assert output.count() == 1
        assert output.locator("style").count() == (name == "trusted")
        rows = output.locator(".chunks tbody tr")
        for row, id, verdict in ((0, "faq-7", "not relevant"), (1, "faq-2", "relevant")):
            assert rows.nth(row).get_by_text(id).is_visible()
            assert rows.nth(row).get_by_text(verdict, exact=True).is_visible()
        for word in ("Can I send it back?", "0.500", "ndcg@10", "missing", "faq-9", "rank 2"):
            assert output.get_by_text(word).locator("visible=true").count()

        assert rows.count() == 2
        assert output.locator("img, script").count() == 0
        assert "<script>window.owned = 1</script>" in rows.nth(1).inner_text()
        assert "{{ 7 * 7 }}" in rows.nth(1).inner_text()
        assert page.evaluate("window.owned") is None
        if name == "trusted":
            check_contrast(page, "light")


def test_verdicts_are_readable_in_the_dark(lab):
    with opened(lab, "trusted", "Dark") as page:
        page.wait_for_selector("[data-jp-theme-light=false]", state="attached")
        check_contrast(page, "dark")


def check_contrast(page, theme: str) -> None:
    page.wait_for_timeout(1000)  # for the theme's own style
    browser.keep(page.screenshot(), f"notebook-{theme}.png")
    for kind in ("yes", "no", "query > summary", "said small", "number"):
        assert contrast(page.locator(f".ctxeval .{kind}").first) >= 4.5, kind


def contrast(element) -> float:
    """Work out how a text stands out from what is behind it, as WCAG defines it."""
    front, behind = element.evaluate(
        """(element) => {
            const parse = (text) => text.match(/[\\d.]+/g).map(Number)
            const layers = []
            for (let node = element; node; node = node.parentElement) {
                const [r, g, b, a = 1] = parse(getComputedStyle(node).backgroundColor)
                layers.push([r, g, b, a])
                if (a === 1) break
            }
            let seen = [255, 255, 255]
            for (const [r, g, b, a] of layers.reverse())
                seen = [r, g, b].map((value, i) => value * a + seen[i] * (1 - a))
            const [r, g, b] = parse(getComputedStyle(element).color)
            const ink = Number(getComputedStyle(element).opacity)
            const front = [r, g, b].map((value, i) => value * ink + seen[i] * (1 - ink))
            return [front, seen]
        }"""
    )
    light, dark = sorted((luminance(front), luminance(behind)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: list[float]) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
