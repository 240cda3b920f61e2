"""One question leaves one record, whatever shape the chain has and however it is called."""

import itertools
from operator import itemgetter
from typing import NamedTuple

import pytest

pytest.importorskip("langchain_core")

from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from pydantic import BaseModel
from small_chains import (
    PROMPT,
    WAYS,
    Broken,
    Echo,
    Scripted,
    by_ainvoke,
    by_batch,
    by_invoke,
    by_stream,
    echoed,
    rag,
    told,
)

QUESTIONS = ["what is 1?", "what is 2?"]


class Cited(BaseModel):
    answer: str
    cites: list[str]


class Shape(NamedTuple):
    """A runnable, what it is given for a question, and the record that is expected."""

    make: object
    given: object = staticmethod(lambda question: question)
    answer: object = staticmethod(lambda question: f"answer to {question}")
    stages: object = staticmethod(lambda question: [echoed(question)])


def to_dict():
    found = RunnablePassthrough.assign(context=itemgetter("question") | Echo())
    return found.assign(answer=PROMPT | Scripted() | StrOutputParser())


def to_object():
    def answers(found):
        return Cited(answer=f"answer to {found['question']}", cites=[])

    return {"context": Echo(), "question": RunnablePassthrough()} | RunnableLambda(answers)


def of_two():
    found = RunnableParallel(a=Echo(prefix="a"), b=Echo(prefix="b"), question=RunnablePassthrough())
    shown = RunnableLambda(lambda given: {"context": given["a"] + given["b"], **given})
    return found | shown | PROMPT | Scripted() | StrOutputParser()


def fails(given):
    raise ValueError("the first attempt fails")


def with_fallbacks():
    first = RunnablePassthrough.assign(context=itemgetter("question") | Echo(prefix="a"))
    return (first | RunnableLambda(fails)).with_fallbacks([to_dict()])


def falls_back_inside():
    return rag(Broken().with_fallbacks([Echo()]))


def with_retry():
    """Fail at the first attempt for each question, after retrieving."""
    attempts = {question: itertools.count() for question in QUESTIONS}

    def answers(found):
        if next(attempts[found["question"]]) == 0:
            raise ValueError("the first attempt fails")
        return f"answer to {found['question']}"

    found = {"context": Echo(), "question": RunnablePassthrough()}
    return (found | RunnableLambda(answers)).with_retry(wait_exponential_jitter=False)


def as_dict(question):
    return {"question": question, "lang": "en"}


def nothing(question):
    return None


def in_any_order(question):
    return sorted([echoed(question, "a"), echoed(question, "b")])


def after_an_error(question):
    return [("Broken", question, "ConnectionError: the index is away"), echoed(question)]


SHAPES = {
    "bare retriever": Shape(Echo, answer=nothing),
    "text to text": Shape(rag),
    "dict to dict": Shape(to_dict, as_dict),
    "text to message": Shape(lambda: rag().first | PROMPT | Scripted()),
    "text to object": Shape(to_object),
    "two retrievers at once": Shape(of_two, stages=in_any_order),
    "fallbacks": Shape(with_fallbacks, as_dict),
    "fallbacks of a step": Shape(falls_back_inside, stages=after_an_error),
    "retriever with fallbacks": Shape(
        lambda: Broken().with_fallbacks([Echo()]), answer=nothing, stages=after_an_error
    ),
    "chain of one's own making": Shape(
        lambda: RunnableLambda(lambda question: {"docs": Echo().invoke(question), "result": "R"}),
        answer=lambda question: "R",
    ),
    "chain inside of a chain": Shape(
        lambda: RunnableLambda(lambda given: rag().invoke(given["question"])), as_dict
    ),
}


def check(handler, shape):
    records = handler.records
    assert sorted(record.question for record in records) == QUESTIONS
    for record in records:
        question, answer, status, stages = told(record)
        assert (answer, status) == (shape.answer(question), "ok")
        expected = shape.stages(question)
        assert (sorted(stages) if len(stages) > 1 else stages) == expected
        assert len({one.order for one in record.retrievals}) == len(stages)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_one_record_a_question(handler, shape, way):
    way(shape.make(), [shape.given(one) for one in QUESTIONS], {"callbacks": [handler]})
    check(handler, shape)


@pytest.mark.parametrize("way", [by_invoke, by_batch, by_ainvoke])  # streams are not tried again
def test_retries(handler, way):
    way(with_retry(), QUESTIONS, {"callbacks": [handler]})
    check(handler, Shape(with_retry))


def test_retries_that_all_fail_count_the_last_one(handler):
    chain = {"context": Echo(), "question": RunnablePassthrough()} | RunnableLambda(fails)
    retried = chain.with_retry(stop_after_attempt=3, wait_exponential_jitter=False)
    with pytest.raises(ValueError, match="first attempt"):
        retried.invoke("q", {"callbacks": [handler]})
    assert [told(record) for record in handler.records] == [("q", None, "error", [echoed("q")])]


def test_attempts_that_leave_an_answer_without_retrieval_are_not_taken_for_an_empty_one(
    make_handler,
):
    handler = make_handler(references=[{"user_input": "q", "reference_context_ids": ["d1-q"]}])
    attempt = {"context": Echo()} | RunnableLambda(fails)
    apology = RunnableLambda(lambda question: "sorry")
    attempt.with_fallbacks([apology]).invoke("q", {"callbacks": [handler]})
    (record,) = handler.records
    assert (record.question, record.answer, record.status) == ("q", "sorry", "ok")
    score = record.scores["id_based_context_recall"]
    assert (score.value, score.status) == (None, "failed")
    assert "ValueError: the first attempt fails" in score.reason


def test_an_error_that_was_wrapped_does_not_hide_what_was_retrieved(handler):
    def wraps(question):
        try:
            return rag(model=RunnableLambda(fails)).invoke(question)
        except ValueError as error:
            raise KeyError("no answer") from error

    with pytest.raises(KeyError):
        RunnableLambda(wraps).invoke("q", {"callbacks": [handler]})
    assert [told(record) for record in handler.records] == [("q", None, "error", [echoed("q")])]


def test_several_retrievers_are_pooled_and_have_no_ranks(make_handler):
    reference = {"user_input": QUESTIONS[0], "reference_context_ids": [f"b1-{QUESTIONS[0]}"]}
    handler = make_handler(references=[reference])
    of_two().invoke(QUESTIONS[0], {"callbacks": [handler]})
    (record,) = handler.records
    assert record.pooled
    assert sorted(chunk.id for chunk in record.chunks()) == [
        f"{name}-{QUESTIONS[0]}" for name in ("a1", "a2", "b1", "b2")
    ]
    assert record.scores["id_based_context_recall"].value == 1
    assert record.scores["reciprocal_rank"].status == "skipped"
    assert "pooled" in record.scores["reciprocal_rank"].reason


@pytest.mark.parametrize("way", [by_invoke, by_batch, by_stream, by_ainvoke])
@pytest.mark.parametrize(
    ("mapped", "answer"),
    [
        pytest.param(rag, "answer to {}", id="chain"),
        pytest.param(Echo, None, id="retriever"),
        pytest.param(lambda: rag().with_fallbacks([rag()]), "answer to {}", id="fallbacks"),
    ],
)
def test_a_map_is_many_questions(handler, way, mapped, answer):
    config = {"callbacks": [handler], "metadata": {"ctxeval_id": "one for all", "lang": "en"}}
    way(mapped().map(), [QUESTIONS], config)
    assert sorted(map(told, handler.records)) == [
        (question, answer and answer.format(question), "ok", [echoed(question)])
        for question in QUESTIONS
    ]
    assert {record.metadata.get("ctxeval_id") for record in handler.records} == {None}


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_a_map_whose_first_attempts_fail(handler, way):
    given = [[as_dict(question) for question in QUESTIONS]]
    way(with_fallbacks().map(), given, {"callbacks": [handler]})
    check(handler, Shape(with_fallbacks))
