"""What a report says of all queries, counted by hand."""

import pytest

from ctxeval.report.agreement import agreement
from ctxeval.report.collecting import STAGES, Collector
from ctxeval.report.content import histogram
from ctxeval.report.view import (
    ChunkView,
    Found,
    QueryView,
    StageView,
    UnitView,
    VerdictView,
)


def chunk(rank, id, *values, votes=(), judge="id"):
    verdicts = tuple(VerdictView(judge, value, votes=votes) for value in values)
    return ChunkView(rank, id, "document_id", f"text {id}", 1 / rank, verdicts=verdicts)


def stage(kind, chunks, sources=(), found=(), **more):
    fields = {"name": kind[:1], "query": "q", "latency": 1.0, "error": "", "scores": (), **more}
    return StageView(kind=kind, chunks=tuple(chunks), found=found, sources=sources, **fields)


def query(*stages, **more):
    return QueryView("1", "q", None, "ok", stages=stages, **more)


def collected(*views):
    collector = Collector()
    for view in views:
        collector.add(view)
    return collector


RETRIEVED = [chunk(1, "a", True), chunk(2, "b", False), chunk(3, "c", True)]
RERANKED = [chunk(1, "b", False), chunk(2, "c", True)]


def test_the_funnel_counts_what_a_stage_was_given_and_lost():
    view = query(
        stage("retrieve", RETRIEVED, found=(Found("id", 2, 3),)),
        stage("rerank", RERANKED, (0,), (Found("id", 1, 3),)),
    )
    failing = query(stage("retrieve", (), error="timeout", latency=3.0))
    funnel = collected(view, view, failing).funnel()
    first, second = funnel.stages
    assert funnel.judge == "id"
    assert (first.queries, first.failed, first.chunks, first.relevant) == (3, 1, 6, 4)
    assert (first.covered, first.expected, first.hits, first.seconds) == (4, 6, 2, 1.0)
    assert first.lost is None
    assert (second.queries, second.relevant, second.lost, second.covered) == (2, 2, 2, 2)


def test_two_retrievers_side_by_side_lose_nothing_to_each_other():
    view = query(
        stage("retrieve", [chunk(1, "a", True)]),
        stage("retrieve", [chunk(1, "b", True)]),
        stage("prompt", [chunk(1, "a", True)], (0, 1)),
    )
    stages = collected(view).funnel().stages
    assert [one.lost for one in stages] == [None, None, 1]


def test_an_exact_judge_goes_before_a_model_and_what_it_did_not_judge_is_counted():
    model = chunk(1, "a", True, judge="model, for the answer")
    view = query(stage("retrieve", [model, chunk(2, "b", False)]))
    (only,) = collected(view, view).funnel().stages
    assert (only.relevant, only.unjudged) == (0, 2)


def test_what_could_not_be_judged_is_neither_found_nor_missing():
    read = stage("retrieve", [chunk(1, "a", True)], found=(Found("id", 1, 1),))
    unread = stage("retrieve", [chunk(1, "a", None)], found=(Found("id", 0, 2, 2),))
    (only,) = collected(query(read), query(unread)).funnel().stages
    assert (only.covered, only.known, only.unknown) == (1, 1, 2)
    assert (only.hits, only.judged, only.unjudged) == (1, 1, 1)
    (only,) = collected(query(unread)).funnel().stages
    assert (only.known, only.judged) == (0, 0)


def test_where_nothing_was_retrieved_nothing_was_found():
    empty = stage("retrieve", [], found=(Found("id", 0, 1),))
    collector = collected(query(empty), query(empty))
    (only,) = collector.funnel().stages
    assert (only.covered, only.expected, only.hits, only.judged, only.empty) == (0, 2, 0, 2, 2)
    assert only.remarks == ("gave nothing in 2 queries",)
    assert collector.ranking() is None


def test_a_repeated_relevant_chunk_is_one():
    view = query(stage("retrieve", [chunk(1, "a", True), chunk(2, "a", True)]))
    assert collected(view).funnel().stages[0].relevant == 1


def test_ranks_count_relevant_among_judged():
    views = [query(stage("retrieve", chunks)) for chunks in (RETRIEVED, RERANKED, [chunk(1, "z")])]
    ranking = collected(*views).ranking()
    assert [(one.rank, one.chunks, one.relevant) for one in ranking.ranks] == [
        (1, 3, ((1, 2),)),
        (2, 2, ((1, 2),)),
        (3, 1, ((1, 1),)),
    ]
    assert ranking.ranks[1].score == 0.5


def test_what_is_too_much_to_show_is_counted():
    many = [chunk(rank, f"c{rank}", True) for rank in range(1, 26)]
    views = [query(stage("retrieve", many, name=f"made up {n}")) for n in range(STAGES + 3)]
    collector = collected(*views, views[0])
    funnel = collector.funnel()
    assert (len(funnel.stages), funnel.left, funnel.stages[0].queries) == (STAGES, 3, 2)
    ranking = collector.ranking()
    assert (len(ranking.ranks), ranking.left) == (20, 5 * (STAGES + 4))


def test_nothing_judged_gives_no_funnel():
    collector = collected(query(stage("retrieve", [chunk(1, "a")])))
    assert collector.funnel() is None
    assert collector.ranking() is None


@pytest.mark.parametrize(
    ("votes", "unanimous", "agreeing", "kappa"),
    [
        # yes 3/6, chance 1/2: (1 - 1/2) / (1 - 1/2)
        pytest.param([(True,) * 3, (False,) * 3], 2, 1.0, 1.0, id="all agree"),
        # each 1 of 3 pairs agrees, yes 3/6: (1/3 - 1/2) / (1/2)
        pytest.param([(True, True, False), (True, False, False)], 0, 1 / 3, -1 / 3, id="split"),
        pytest.param([(True,) * 3], 1, 1.0, None, id="chance alone agrees"),
        pytest.param([(True, None, None)], 1, None, None, id="one readable vote"),
        pytest.param([(None, None, None)], 0, None, None, id="no readable vote"),
    ],
)
def test_agreement_by_hand(votes, unanimous, agreeing, kappa):
    found = agreement("model", "chunks", votes)
    assert found.unanimous == unanimous
    assert found.agreement == (agreeing and pytest.approx(agreeing))
    assert found.kappa == (kappa and pytest.approx(kappa))


def test_votes_on_a_chunk_count_once_however_many_stages_show_it():
    voted = chunk(1, "a", True, votes=(True, True, None), judge="model")
    unit = UnitView("claim", "model", "c", True, votes=(True, False, True))
    view = query(stage("retrieve", [voted]), stage("prompt", [voted], (0,)), units=(unit,))
    of_chunks, of_claims = collected(view).agreements()
    assert (of_chunks.what, of_chunks.verdicts, of_chunks.votes, of_chunks.unread) == (
        "chunks",
        1,
        3,
        1,
    )
    assert (of_claims.what, of_claims.verdicts, of_claims.unanimous) == ("claims", 1, 0)


def test_histogram_keeps_the_ends_apart():
    assert histogram([0, 0.0001, 0.1, 0.95, 1]) == (1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1)
