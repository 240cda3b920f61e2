"""Scores of Ray's data sets: the same as without Ray, whatever the order and the blocks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from openai_server import OpenAIServer

import ctxeval
from ctxeval.llm.loop import run
from ctxeval.testing import ScriptedLLM

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("ray.data", reason="Ray is not installed")
pq = pytest.importorskip("pyarrow.parquet")

from ctxeval_ray import score_dataset  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # Ray warns of itself

IDS = ["id_based_context_precision", "id_based_context_recall", "ndcg@10", "reciprocal_rank"]


def by_ids(n: int) -> Any:
    draw = random.Random(3)
    return pa.table(
        {
            "id": list(range(n)),
            "retrieved_context_ids": [
                [f"d{draw.randrange(40)}" for _ in range(draw.randrange(12))] for _ in range(n)
            ],
            "reference_context_ids": [
                None if row % 17 == 0 else [f"d{draw.randrange(40)}" for _ in range(row % 4)]
                for row in range(n)
            ],
            "language": [f"language {row % 3}" for row in range(n)],
        }
    )


def files(table: Any, folder: Path, count: int) -> str:
    size = -(-len(table) // count)
    for number in range(count):
        pq.write_table(table.slice(number * size, size), folder / f"{number}.parquet")
    return str(folder)


def rows_of(dataset: Any) -> list[dict[str, Any]]:
    return sorted(dataset.take_all(), key=lambda row: row["id"])


def test_ids_are_scored_as_they_are_without_ray(ray: Any, tmp_path: Path) -> None:
    table = by_ids(3000)
    scored = score_dataset(ray.data.read_parquet(files(table, tmp_path, 5)), IDS)
    assert rows_of(scored) == ctxeval.score_table(table, IDS).to_pylist()


def test_auto_takes_what_there_are_columns_for(ray: Any) -> None:
    table = by_ids(40)
    scored = rows_of(score_dataset(ray.data.from_arrow(table)))
    assert scored == ctxeval.score_table(table).to_pylist()
    assert {name for name in scored[0] if name.endswith("_status")} == {f"{n}_status" for n in IDS}


def test_arrays_that_passed_through_numpy(ray: Any) -> None:
    rows = [
        {"id": n, "retrieved_context_ids": [n, n + 1], "reference_context_ids": [n] * (1 + n % 2)}
        for n in range(20)
    ]
    tensors = ray.data.from_items(rows).map_batches(lambda batch: batch, batch_format="numpy")
    scored = rows_of(score_dataset(tensors, ["id_based_context_precision"]))
    assert [row["id_based_context_precision"] for row in scored] == [0.5] * 20


def questions(n: int) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "user_input": f"What is {number}?",
            "reference": f"{number} is a number.",
            "retrieved_contexts": [f"{number} is even.", f"Chunk about {number}."],
            "retrieved_context_ids": ["a", "b"],
            "reference_context_ids": ["b"],
        }
        for number in range(n)
    ]


BY_MODEL = ["context_precision", "context_recall"]


def useful(question: str, chunk: str) -> bool:
    return chunk.startswith("Chunk")


@pytest.fixture
def server() -> Any:
    with OpenAIServer(ScriptedLLM(useful, lambda claim, chunks: [0])) as server:
        yield server


@pytest.mark.parametrize("actors", [1, 2])
def test_a_model_judges_in_actors_behind_a_shuffle(
    ray: Any, server: Any, tmp_path: Path, actors: int
) -> None:
    """With as many actors as processors, which would stall if each of them took one."""
    llm = ctxeval.llm_factory("m", base_url=server.url)
    rows = questions(60)
    shuffled = ray.data.from_items(rows).repartition(4).random_shuffle(seed=1)
    metrics = [*BY_MODEL, "reciprocal_rank"]
    store = tmp_path / "store.db"
    scored = score_dataset(shuffled, metrics, llm=llm, actors=actors, store=store)
    local = ctxeval.evaluate(rows, metrics, llm=llm, store=tmp_path / "other.db")
    run(llm.aclose())
    found = rows_of(scored)
    assert [row["id"] for row in found] == list(range(60))
    for metric in metrics:
        values = local.values(metric)
        assert {str(row["id"]): row[metric] for row in found} == values
        assert {row[f"{metric}_status"] for row in found} == {"scored"}
    assert server.requests == 120, "60 by Ray, and as many without it"
    assert rows_of(score_dataset(shuffled, metrics, llm=llm, store=store)) == found
    assert server.requests == 120, "nothing is asked twice"


def test_concurrency_is_shared_by_the_actors(ray: Any, tmp_path: Path) -> None:
    with OpenAIServer(ScriptedLLM(useful), latency=0.05) as server:
        llm = ctxeval.llm_factory("m", base_url=server.url)
        rows = ray.data.from_items(questions(60)).repartition(4)
        scored = score_dataset(rows, "context_precision", llm=llm, concurrency=6, actors=2)
        assert len(rows_of(scored)) == 60
        assert 3 <= server.max_in_flight <= 6


def test_a_model_without_a_reply_fails_its_metrics_with_the_reason(ray: Any) -> None:
    llm = ctxeval.llm_factory("m", base_url="http://127.0.0.1:9/v1", max_retries=0)
    rows = ray.data.from_items(questions(2))
    for row in rows_of(score_dataset(rows, ["context_recall", "ndcg@10"], llm=llm)):
        assert row["context_recall"] is None
        assert row["context_recall_status"] == "failed"
        assert "gave no answer" in row["context_recall_reason"]
        assert row["ndcg@10_status"] == "scored"


def test_the_rate_is_shared_through_the_store(ray: Any, server: Any, tmp_path: Path) -> None:
    llm = ctxeval.llm_factory("m", base_url=server.url)
    rows = ray.data.from_items(questions(13)).repartition(2)
    scored = score_dataset(
        rows,
        "context_precision",
        llm=llm,
        actors=2,
        store=tmp_path / "store.db",
        max_requests_per_minute=600,
    )
    assert len(rows_of(scored)) == 13
    assert server.max_in_flight <= 3, "one each 100 ms, not all at once"
    store = ctxeval.Store(tmp_path / "store.db")
    assert store.get_many(["nothing"]) == {}


def test_the_days_tokens_are_shared_through_the_store(
    ray: Any, server: Any, tmp_path: Path
) -> None:
    llm = ctxeval.llm_factory("m", base_url=server.url)
    path = tmp_path / "store.db"
    rows = ray.data.from_items(questions(30))
    scored = score_dataset(
        rows, "context_precision", llm=llm, concurrency=1, store=path, max_tokens_per_day=500
    )
    found = rows_of(scored)
    statuses = [row["context_precision_status"] for row in found]
    assert set(statuses) == {"scored", "failed"}
    assert server.requests == statuses.count("scored")
    reasons = {row["context_precision_reason"] for row in found} - {None}
    assert len(reasons) == 1
    assert "the budget of 500 tokens a day is spent" in reasons.pop()
    # Whoever comes later knows what was spent; with a higher budget it goes on from there.
    again = score_dataset(rows, "context_precision", llm=llm, store=path, max_tokens_per_day=10**6)
    assert {row["context_precision_status"] for row in rows_of(again)} == {"scored"}
    assert server.requests == 30


def graded(cells: list[Any]) -> Any:
    return pa.array(cells, pa.map_(pa.string(), pa.int64()))


def with_grades() -> Any:
    table = pa.Table.from_pylist(questions(2)).drop(["reference_context_ids"])
    cells = graded([[("a", 2), ("b", 0)], [("b", 1), ("a", 0)]])
    return table.append_column("reference_context_ids", cells)


@pytest.mark.parametrize("filtered", [False, True])
def test_grades_as_maps(ray: Any, server: Any, filtered: bool) -> None:
    """Which Ray makes Python's objects of where it takes single rows."""
    rows = ray.data.from_arrow(with_grades())
    rows = rows.filter(lambda row: row["id"] >= 0) if filtered else rows
    llm = ctxeval.llm_factory("m", base_url=server.url)
    for metrics in (["reciprocal_rank"], ["reciprocal_rank", "context_precision"]):
        scored = rows_of(score_dataset(rows, metrics, llm=llm))
        assert [row["reciprocal_rank"] for row in scored] == [1, 0.5]
        for metric in metrics:
            assert {row[f"{metric}_status"] for row in scored} == {"scored"}


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="older than UUIDs")
def test_ids_that_are_uuids(ray: Any, server: Any) -> None:
    ids = pa.array([bytes([n] * 16) for n in range(2)], pa.binary(16))
    ids = pa.ExtensionArray.from_storage(pa.uuid(), ids)
    table = pa.Table.from_pylist(questions(2)).set_column(0, "id", ids)
    llm = ctxeval.llm_factory("m", base_url=server.url)
    for metric in ("reciprocal_rank", "context_precision"):
        scored = score_dataset(ray.data.from_arrow(table), metric, llm=llm).take_all()
        assert [row[metric] for row in scored] == [0.5, 0.5]


def test_ids_of_no_one_type_are_told(ray: Any) -> None:
    rows = [{"retrieved_context_ids": [1, "a"], "reference_context_ids": ["a"]}]
    with pytest.raises(Exception, match=r"'retrieved_context_ids' holds .* ids as strings"):
        score_dataset(ray.data.from_items(rows), "reciprocal_rank").take_all()


def test_a_row_is_named_by_its_id_and_not_by_its_place_in_a_block(ray: Any) -> None:
    rows = [
        {
            "id": f"q{n}",
            "retrieved_context_ids": [str(n) * (n != 7)],
            "reference_context_ids": ["1"],
        }
        for n in range(10)
    ]
    with pytest.raises(
        Exception, match=r"Error: dataset, the row 'q7': retrieved_context_ids\[0\]"
    ):
        score_dataset(ray.data.from_items(rows).repartition(5), "reciprocal_rank").take_all()
    for row in rows:
        del row["id"]
    with pytest.raises(Exception, match=r"Error: dataset, row \d of a block \(give rows an id"):
        score_dataset(ray.data.from_items(rows).repartition(5), "reciprocal_rank").take_all()


def test_a_missing_column_is_told_of_the_dataset(ray: Any) -> None:
    rows = ray.data.from_items([{"retrieved_context_ids": ["a"]}])
    with pytest.raises(Exception, match="Error: dataset: reciprocal_rank needs the column"):
        score_dataset(rows, "reciprocal_rank").take_all()


BAD = [*questions(2), {**questions(1)[0], "id": "bad", "retrieved_contexts": ["only one"]}]


def test_a_row_that_is_no_sample_raises(ray: Any, server: Any) -> None:
    llm = ctxeval.llm_factory("m", base_url=server.url)
    rows = ray.data.from_items([{**row, "id": str(row["id"])} for row in BAD])
    with pytest.raises(Exception, match=r"row 'bad'.*retrieved_contexts"):
        score_dataset(rows, "context_precision", llm=llm).take_all()


def test_a_row_that_is_no_sample_fails_alone(ray: Any, server: Any) -> None:
    llm = ctxeval.llm_factory("m", base_url=server.url)
    rows = ray.data.from_items([{**row, "id": str(row["id"])} for row in BAD])
    scored = rows_of(score_dataset(rows, "context_precision", llm=llm, errors="status"))
    assert [row["context_precision_status"] for row in scored] == ["scored", "scored", "failed"]
    assert "retrieved_contexts" in scored[2]["context_precision_reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"metrics": "context_recall"}, "give llm=", id="no model"),
        pytest.param({"metrics": "recal"}, "'recal' is unknown", id="unknown metric"),
        pytest.param({"actors": 4, "concurrency": 2}, "cannot share", id="too many actors"),
        pytest.param({"concurrency": 0}, "concurrency: 0 is no integer >= 1", id="no calls"),
        pytest.param({"errors": "ignore"}, "give 'raise' or 'status'", id="unknown errors"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    ray: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ctxeval.InvalidArgumentError, match=message):
        score_dataset(ray.data.from_items(questions(1)), **{"metrics": "auto", **arguments})


def test_a_limit_needs_a_store(ray: Any, server: Any) -> None:
    llm = ctxeval.llm_factory("m", base_url=server.url)
    rows = ray.data.from_items(questions(1))
    with pytest.raises(ctxeval.InvalidArgumentError, match=r"give store='ctxeval\.db'"):
        score_dataset(rows, llm=llm, max_requests_per_minute=5)


def test_a_client_that_cannot_be_sent_is_told(ray: Any, server: Any) -> None:
    openai = pytest.importorskip("openai", reason="openai is not installed")
    client = openai.AsyncOpenAI(base_url=server.url, api_key="x")
    rows = ray.data.from_items(questions(2))
    with pytest.raises(ctxeval.InvalidArgumentError, match="as a function that makes it"):
        score_dataset(rows, llm=ctxeval.llm_factory("m", client=client))
    url = server.url
    llm = ctxeval.llm_factory("m", client=lambda: openai.AsyncOpenAI(base_url=url, api_key="x"))
    scored = rows_of(score_dataset(rows, "context_precision", llm=llm))
    assert {row["context_precision_status"] for row in scored} == {"scored"}


def test_a_list_is_no_dataset(ray: Any) -> None:
    with pytest.raises(ctxeval.InvalidArgumentError, match="dataset: list is none of Ray"):
        score_dataset(questions(1))  # type: ignore[arg-type]
