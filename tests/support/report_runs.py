"""Runs to make reports of: captured queries with three stages, judged by id and by a model."""

from random import Random

from ctxeval import Chunk, ContextRecall, Evaluation, QueryRecord, Recorder, Retrieval
from ctxeval.testing import ScriptedLLM

METRICS = ("id_based_context_recall", "reciprocal_rank", "ndcg@10")
TOPICS = (
    *("tides", "moons", "harbours", "lighthouses", "charts", "anchors", "sails", "winds"),
    *("currents", "reefs", "ropes", "compasses", "cargo", "ballast", "docks", "pilots"),
    *("buoys", "keels", "decks", "masts"),
)
PASSAGES = {
    f"doc-{n}": f"Passage {n} speaks of {topic} and of little else."
    for n, topic in enumerate(TOPICS)
}


def captured(seed: int = 1, queries: int = 12) -> Evaluation:
    """Capture queries: a dense retriever, a reranker that loses some, and a prompt."""
    random = Random(seed)
    ids = list(PASSAGES)
    references, records = [], []
    for n in range(queries):
        expected = ids[n % len(ids)], ids[(n + 7) % len(ids)]
        question = f"What does the handbook say of number {n}?"
        references.append(
            {
                "id": str(n),
                "user_input": question,
                "reference_context_ids": expected,
                "reference": "It is said. It is not said.",
            }
        )
        pool = random.sample(ids, 6)
        if random.random() < 0.8:
            pool[random.randrange(6)] = expected[0]
        pool = list(dict.fromkeys(pool))
        kept = random.sample(pool, 3)
        records.append(_record(n, question, pool, kept, error=n == queries - 1))
    llm = ScriptedLLM(supported=lambda claim, texts: [0] if random.random() < 0.5 else [])
    recorder = Recorder([*METRICS, ContextRecall(llm, repeats=3)], references)
    for n, record in enumerate(records):
        recorder.submit(n, n, lambda record=record: record)
    recorder.flush()
    return recorder.evaluation()


def _record(n: int, question: str, pool: list[str], kept: list[str], *, error: bool) -> QueryRecord:
    stages = [Retrieval(question, _chunks(pool), "dense", latency=0.04)]
    if error:
        stages = [Retrieval(question, (), "dense", error="TimeoutError: no reply in 30 s")]
    else:
        stages += [
            Retrieval(question, _chunks(kept), "cross", "rerank", order=1, inputs=(0,)),
            Retrieval(question, _chunks(kept[:2]), "", "prompt", order=2, inputs=(1,)),
        ]
    status = "error" if error else "ok"
    return QueryRecord(str(n), question, None if error else "It is said.", status, stages)


def _chunks(ids: list[str]) -> tuple[Chunk, ...]:
    return tuple(
        Chunk(rank, id, "document_id", PASSAGES[id], score=1 / (rank + 1))
        for rank, id in enumerate(ids)
    )
