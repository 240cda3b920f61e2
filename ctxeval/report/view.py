"""What is shown of one query, as plain data: the notebook, the report and the terminal share it."""

from __future__ import annotations

from dataclasses import dataclass

from ctxeval.record.query import QueryStatus
from ctxeval.result import Status


@dataclass(frozen=True, slots=True)
class VerdictView:
    """What one judge says of one chunk.

    Attributes:
        judge: Who says it, and for what: "id", "text", "place", "model, for the answer", …
        value: Is it relevant? None where the judge's answer could not be read.
        matched: The texts of the units that it was matched with.
        similarity: Of the deciding pair, where similarity decided.
        reason: Why, in the judge's words.
        votes: How the repeats voted, where there were any.
        probability: How likely the judge finds a yes, where it tells.
        threshold: The least similarity that counts, where similarity decides.
    """

    judge: str
    value: bool | None
    matched: tuple[str, ...] = ()
    similarity: float | None = None
    reason: str = ""
    votes: tuple[bool | None, ...] = ()
    probability: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class ChunkView:
    """One retrieved chunk.

    Attributes:
        rank: Its place, 1 for the best.
        id: Its id; "" where none is known.
        id_source: Where the id came from; "" where that is not known.
        text: Its text, whole; "" where only its id is known.
        score: What the retriever gave it, where known.
        span: Where it stands, as `document[start:end]`; "" where that is not known.
        verdicts: What each judge says of it; a judge that was not asked is not there.
    """

    rank: int
    id: str
    id_source: str
    text: str
    score: float | None = None
    span: str = ""
    verdicts: tuple[VerdictView, ...] = ()

    def verdict(self, judge: str) -> VerdictView | None:
        """Give what this judge says; None where it was not asked."""
        return next((one for one in self.verdicts if one.judge == judge), None)


@dataclass(frozen=True, slots=True)
class MetricView:
    """What one metric says.

    Attributes:
        name: The metric's name.
        value: The number; None unless it is scored.
        status: "scored", "undefined", "failed" or "skipped".
        reason: Why there is no number, or what to know of it.
        bounds: The least and the greatest value that are possible, where they are known.
        expected: The value to expect, where the judge tells probabilities.
    """

    name: str
    value: float | None
    status: Status
    reason: str = ""
    bounds: tuple[float, float] | None = None
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """How much of what was expected a stage holds, by one judge.

    Attributes:
        judge: Whose units they are.
        covered: How many units its chunks cover.
        expected: How many there are.
        unknown: Of how many the judge's answer could not be read.
    """

    judge: str
    covered: int
    expected: int
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class StageView:
    """One retriever run, or what reached the prompt.

    Attributes:
        kind: "retrieve", "rerank" or "prompt".
        name: The retriever's name; "" where it has none.
        query: What it was asked.
        latency: How many seconds it took; None where that is not known.
        error: What went wrong; "" where nothing did.
        scores: Its own results.
        chunks: What it gave, best first.
        found: How much of what was expected it holds, by each judge that can tell.
        sources: The places, among the query's stages, of those whose chunks it was given.
    """

    kind: str
    name: str
    query: str
    latency: float | None
    error: str
    scores: tuple[MetricView, ...]
    chunks: tuple[ChunkView, ...]
    found: tuple[Found, ...] = ()
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Support:
    """A chunk that a unit was found in: its rank, from 1, and its id."""

    rank: int
    id: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Where a unit that is missing in the end was last seen: a stage, a rank, from 1, and an id."""

    kind: str
    name: str
    rank: int
    id: str


@dataclass(frozen=True, slots=True)
class UnitView:
    """One piece of what was expected.

    Attributes:
        kind: "id", "text", "place" or "claim".
        judge: Who says whether it is there; "" where nobody was asked.
        text: The claim, the reference context, the place or the id.
        value: Is it covered by what was retrieved? None where that is not known.
        reason: Why, in the judge's words.
        similarity: Of the deciding pair, where similarity decided.
        chunks: Those that cover it.
        votes: How the repeats voted, where there were any.
        probability: How likely the judge finds it covered, where it tells.
        threshold: The least similarity that counts, where similarity decides.
        lost: Where it was last seen, if it is missing in the end and an earlier stage had it.
    """

    kind: str
    judge: str
    text: str
    value: bool | None
    reason: str = ""
    similarity: float | None = None
    chunks: tuple[Support, ...] = ()
    votes: tuple[bool | None, ...] = ()
    probability: float | None = None
    threshold: float | None = None
    lost: Lost | None = None


@dataclass(frozen=True, slots=True)
class QueryView:
    """One query: what was asked, retrieved, expected and found.

    Attributes:
        id: The query's id.
        question: What was asked.
        answer: What the application answered; None where it gave none.
        status: How the query ended.
        metrics: What each metric says of it.
        pending: The metrics that are still being judged.
        stages: Its retrievals, inner ones first.
        units: What was expected, piece by piece.
        reference: The answer that was expected; None where there is none.
        unreferenced: Why no expectation was found; "" where one was.
    """

    id: str
    question: str
    answer: str | None
    status: QueryStatus
    metrics: tuple[MetricView, ...] = ()
    pending: tuple[str, ...] = ()
    stages: tuple[StageView, ...] = ()
    units: tuple[UnitView, ...] = ()
    reference: str | None = None
    unreferenced: str = ""
