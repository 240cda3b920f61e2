"""The demo: a real retriever over real text, captured and scored."""

from __future__ import annotations

from dataclasses import dataclass

from ctxeval.capture.recorder import Recorder
from ctxeval.demo.corpus import load_passages
from ctxeval.demo.questions import Question, usable
from ctxeval.errors import CtxEvalError, MissingExtraError
from ctxeval.evaluation.evaluation import Evaluation
from ctxeval.evaluation.statistics import Interval, mean_interval
from ctxeval.record.query import QueryRecord
from ctxeval.record.references import References
from ctxeval.sample import Sample

METRICS = ("hit_rate@10", "id_based_context_recall", "reciprocal_rank", "ndcg@10")


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demo found.

    Attributes:
        evaluation: The queries summed up, to be saved as a run.
        records: The captured queries.
        questions: The questions, in the order of the records.
        left_out: The questions whose passage this Python's reference does not have.
        passages: How many passages were searched.
    """

    evaluation: Evaluation
    records: list[QueryRecord]
    questions: list[Question]
    left_out: list[Question]
    passages: int

    def interval(self, metric: str, style: str | None = None) -> Interval:
        """Give a metric's mean over the questions, or over those of one style."""
        values = [
            float(record.scores[metric])
            for record, question in zip(self.records, self.questions, strict=True)
            if style in (None, question.style)
        ]
        return mean_interval(values)

    def worst(self, n: int = 5) -> list[QueryRecord]:
        """Give the queries that went worst: by nDCG, then by their place."""
        return sorted(self.records, key=lambda record: float(record.scores["ndcg@10"]))[:n]


def run_demo() -> Demo:
    """Retrieve for every question, capture by the callback, and score.

    Raises:
        MissingExtraError: bm25s or langchain-core is not installed.
        CtxEvalError: This Python comes without its language reference.
    """
    try:
        from ctxeval.demo.retriever import BM25Retriever
        from ctxeval_langchain import CtxEvalCallbackHandler
    except ModuleNotFoundError as error:
        if error.name not in ("bm25s", "langchain_core"):
            raise
        raise MissingExtraError("the demo", str(error.name), "demo") from error
    try:
        passages = load_passages()
    except ModuleNotFoundError as error:
        raise CtxEvalError(
            "this Python comes without pydoc_data, the text that the demo searches: "
            "run it with a complete CPython"
        ) from error
    asked, left_out = usable(passages)
    references = References(
        Sample(
            user_input=question.text,
            reference=question.answer,
            reference_context_ids=ids,
            metadata={"style": question.style},
        )
        for question, ids in asked
    )
    recorder = Recorder(METRICS, references)
    handler = CtxEvalCallbackHandler(recorder)
    retriever = BM25Retriever(passages=passages)
    for question, _ in asked:
        retriever.invoke(question.text, config={"callbacks": [handler]})
    questions = [question for question, _ in asked]
    return Demo(recorder.evaluation(), recorder.records, questions, left_out, len(passages))
