"""Make the pictures of the README from real runs: `python -m benchmarks.pictures`.

Two ways to search Python's own language reference are asked the demo's questions: BM25, and
BM25 with a reranker behind it that puts passages first whose words are like the question's.
Needs what the demo needs, the extra `report`, jupyterlab's nbconvert, playwright and chromium.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbclient
import nbconvert
import nbformat
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from PIL import Image
from playwright.sync_api import sync_playwright
from rapidfuzz import fuzz

from ctxeval import Evaluation, Recorder, Sample
from ctxeval.demo.corpus import load_passages
from ctxeval.demo.questions import usable
from ctxeval.demo.retriever import BM25Retriever
from ctxeval_langchain import CtxEvalCallbackHandler

FOLDER = Path(__file__).parent.parent / "docs" / "images"
METRICS = ("id_based_context_recall", "hit_rate@5", "reciprocal_rank", "ndcg@10")


class Reranked(BaseRetriever):
    """Retrieves many, and keeps those whose words are most like the question's."""

    inner: BaseRetriever
    k: int = 10

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = self.inner.invoke(query, config={"callbacks": run_manager.get_child()})
        found.sort(key=lambda one: fuzz.token_set_ratio(query, one.page_content), reverse=True)
        return found[: self.k]


def run(retriever: BaseRetriever) -> Evaluation:
    asked, _ = usable(load_passages())
    references = [
        Sample(
            id=str(n),
            user_input=question.text,
            reference=question.answer,
            reference_context_ids=ids,
        )
        for n, (question, ids) in enumerate(asked)
    ]
    recorder = Recorder(METRICS, references)
    handler = CtxEvalCallbackHandler(recorder)
    for question, _ in asked:
        retriever.invoke(question.text, config={"callbacks": [handler]})
    return recorder.evaluation()


@contextmanager
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield launched
        launched.close()


def keep(picture: bytes, name: str) -> None:
    """Write a picture with as few colours as it needs."""
    FOLDER.mkdir(exist_ok=True)
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)
    print(f"{name}: {image.size}, {(FOLDER / name).stat().st_size // 1000} kB")


def picture_report(launched: Any, folder: Path) -> None:
    passages = load_passages()
    run(BM25Retriever(passages=passages)).save(folder / "bm25.jsonl")
    reranked = Reranked(inner=BM25Retriever(passages=passages, k=30))
    run(reranked).save(folder / "reranked.jsonl")
    now = Evaluation.load(folder / "reranked.jsonl", keep=False)
    path = now.report(folder / "report.html", folder / "bm25.jsonl")
    for scheme in ("light", "dark"):
        page = launched.new_page(
            viewport={"width": 1180, "height": 900}, color_scheme=scheme, device_scale_factor=1.5
        )
        page.goto(path.as_uri())
        funnel = page.locator("section[aria-labelledby=funnel]").bounding_box()
        end = funnel["y"] + funnel["height"] + 30
        clip = {"x": 0, "y": 0, "width": 1180, "height": end}
        keep(page.screenshot(full_page=True, clip=clip), f"report-{scheme}.png")


def picture_notebook(launched: Any, folder: Path) -> None:
    source = Path(__file__).parent.parent / "notebooks" / "quick_start.ipynb"
    notebook = nbformat.read(source, as_version=4)
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    html, _ = nbconvert.HTMLExporter(template_name="lab").from_notebook_node(notebook)
    (folder / "notebook.html").write_text(html, encoding="utf-8")
    page = launched.new_page(viewport={"width": 1000, "height": 900}, device_scale_factor=1.5)
    page.route("http*://**", lambda route: route.abort())
    page.goto((folder / "notebook.html").as_uri(), wait_until="domcontentloaded")
    cell = page.locator(".jp-CodeCell", has=page.locator(".ctxeval .chunks")).first
    keep(cell.screenshot(), "notebook.png")


def main() -> None:
    with TemporaryDirectory() as folder, browser() as launched:
        picture_report(launched, Path(folder))
        picture_notebook(launched, Path(folder))


if __name__ == "__main__":
    main()
