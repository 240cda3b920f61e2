"""A report of 10,000 queries: small, soon made, soon opened."""

import time
from random import Random

import pytest

for needed in ("jinja2", "matplotlib", "scipy"):
    pytest.importorskip(needed)

from browser import page  # noqa: E402

from ctxeval import Chunk, Evaluation, Retrieval, Row, Sample, score  # noqa: E402

QUERIES = 10_000
METRICS = ["id_based_context_recall", "reciprocal_rank", "ndcg@10", "hit_rate@5"]


def rows():
    random = Random(7)
    for n in range(QUERIES):
        ids = [f"doc-{random.randrange(500)}" for _ in range(10)]
        chunks = tuple(
            Chunk(rank, id, "document_id", f"{id} speaks of {n}. " * 20)
            for rank, id in enumerate(ids)
        )
        sample = Sample(
            id=n,
            user_input=f"What is said of {n}?",
            retrieved_contexts=[chunk.text for chunk in chunks[:5]],
            retrieved_context_ids=ids[:5],
            reference_context_ids=[ids[random.randrange(10)], "doc-0"],
        )
        stages = (
            Retrieval(sample.user_input, chunks, "dense", latency=0.1),
            Retrieval(sample.user_input, chunks[:5], "cut", "rerank", order=1, inputs=(0,)),
        )
        of_first = sample.model_copy(
            update={"retrieved_contexts": None, "retrieved_context_ids": ids}
        )
        results = score(sample, METRICS)
        stages[0].scores, stages[1].scores = score(of_first, METRICS), results
        yield Row(str(n), sample, results, stages)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scale")
    Evaluation(rows()).save(folder / "run.jsonl")
    run = Evaluation.load(folder / "run.jsonl", keep=False)
    begun = time.process_time()
    path = run.report(folder / "report.html", run)
    return path, time.process_time() - begun


def test_it_is_made_in_less_than_10_seconds_and_5_megabytes(made):
    path, seconds = made
    assert seconds < 10
    assert path.stat().st_size < 5_000_000


def test_it_opens_in_less_than_2_seconds(made):
    with page() as opened:
        opened.goto(made[0].as_uri())
        seconds = opened.evaluate("performance.timing.domComplete - performance.timing.fetchStart")
    assert seconds < 2000
