"""Every notebook runs from its first cell to its last, offline, and is kept without outputs."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("bm25s")
pytest.importorskip("langchain_core")
pytest.importorskip("pandas")
pytest.importorskip("scipy")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")
def test_it_runs(path):
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3")
    client.execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    assert outputs
    assert not [out for out in outputs if out.output_type == "error"]
    complaints = [out.text for out in outputs if out.get("name") == "stderr"]
    assert not [text for text in complaints if "ipywidgets" not in text]  # tqdm misses them


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_there_is_one():
    assert NOTEBOOKS
