"""Several questions in one run are several queries; one question is one, however it is split."""

import asyncio
import contextlib
import operator
import threading
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from small_chains import PROMPT, WAYS, Echo, Scripted, by_ainvoke, by_invoke, echoed, rag, told

QUESTIONS = ["what is 1?", "what is 2?", "what is 3?"]
EACH = [(one, f"answer to {one}", "ok", [echoed(one)]) for one in QUESTIONS]


def one_after_another(given):
    return [rag().invoke(question) for question in given]


def by_hand(given):
    """Retrieve and ask the model in two calls, as functions do."""
    model = PROMPT | Scripted() | StrOutputParser()
    answers = []
    for question in given["questions"]:
        found = Echo().invoke(question)
        answers.append(model.invoke({"context": found, "question": question}))
    return answers


SEVERAL = {
    "a function that asks one after another": (RunnableLambda(one_after_another), QUESTIONS),
    "a function that asks a batch": (RunnableLambda(lambda given: rag().batch(given)), QUESTIONS),
    "a function that retrieves, then asks": (RunnableLambda(by_hand), {"questions": QUESTIONS}),
    "a map further on": (
        RunnableLambda(lambda given: given["items"]) | rag().map(),
        {"items": QUESTIONS, "a": "text", "more": "text"},
    ),
    "tables of questions": (
        RunnableLambda(lambda given: rag().batch([row["question"] for row in given])),
        [{"question": question, "id": 7, "lang": "en"} for question in QUESTIONS],
    ),
    "a list of documents": (
        RunnableLambda(lambda given: one_after_another([one.page_content for one in given])),
        [Document(page_content=question) for question in QUESTIONS],
    ),
    "nothing given": (RunnableLambda(lambda _: one_after_another(QUESTIONS)), {}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("chain", "given"), SEVERAL.values(), ids=SEVERAL)
def test_a_run_with_several_questions_is_a_query_for_each(handler, way, chain, given):
    way(chain, [given], {"callbacks": [handler]})
    records = handler.records
    assert [told(record) for record in records] == EACH
    assert len({record.id for record in records}) == 3
    assert all(record.started <= record.ended for record in records)
    assert handler.without_retrieval == 0


class State(TypedDict, total=False):
    questions: list
    question: str
    title: str
    answers: Annotated[list, operator.add]
    answer: str


def nodes():
    graphs = pytest.importorskip("langgraph.graph")

    def ask(state):
        return {"answers": [rag().invoke(one) for one in state["questions"]]}

    graph = graphs.StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(graphs.START, "ask")
    return graph.compile()


def fan_out(asked):
    """Make a graph that sends each of these to a node of its own: `asked(state)`."""
    graphs = pytest.importorskip("langgraph.graph")
    types = pytest.importorskip("langgraph.types")

    def one(state):
        answer = rag().invoke(state["question"])
        return {"answers": [answer]}

    def send(state):
        return [types.Send("one", {"question": question}) for question in asked(state)]

    graph = graphs.StateGraph(State)
    graph.add_node("one", one)
    graph.add_conditional_edges(graphs.START, send, ["one"])
    return graph.compile()


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_a_node_that_asks_several_questions(handler, way):
    way(nodes(), [{"questions": QUESTIONS}], {"callbacks": [handler]})
    assert [told(record) for record in handler.records] == EACH


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_a_graph_that_fans_out_over_questions(handler, way):
    given = {"questions": QUESTIONS}
    way(fan_out(lambda state: state["questions"]), [given], {"callbacks": [handler]})
    assert [(one.question, told(one)[3]) for one in handler.records] == [
        (question, [echoed(question)]) for question in QUESTIONS
    ]


def parts(question):
    return [f"{question} part {n}" for n in (1, 2)]


ONE = {
    "a graph that fans out over its parts": (
        lambda: fan_out(lambda state: parts(state["question"])),
        {"question": "q"},
    ),
    "a map over its parts": (
        lambda: {"context": parts | Echo().map(), "question": RunnablePassthrough()} | PROMPT,
        "q",
    ),
    "chains for its parts": (lambda: RunnableLambda(parts) | rag().map(), "q"),
    "a question that no rule finds, and its parts": (
        lambda: RunnableLambda(lambda given: parts("q")) | rag().map(),
        {"title": "q", "lang": "en"},
    ),
}


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
@pytest.mark.parametrize(("make", "given"), ONE.values(), ids=ONE)
def test_one_question_in_parts_is_one_query(handler, way, make, given):
    chain = make()
    if isinstance(chain, dict):
        chain = RunnableParallel(chain)
    way(chain, [given], {"callbacks": [handler]})
    (record,) = handler.records
    asked = {"title": "q part 1"}.get(next(iter(given)), "q") if isinstance(given, dict) else "q"
    assert record.question in (asked, "q part 1", "q part 2")
    assert sorted(told(record)[3]) == [echoed(part) for part in parts("q")]


NAMED = [
    {"ctxeval_id": "7"},
    {"ctxeval_reference": "the answer"},
    {"ctxeval_reference_ids": ["d1"]},
]


@pytest.mark.parametrize("metadata", NAMED)
def test_a_list_that_has_a_name_or_an_expectation_is_one_query(handler, metadata):
    config = {"callbacks": [handler], "metadata": metadata}
    RunnableLambda(one_after_another).invoke(QUESTIONS, config)
    (record,) = handler.records
    assert record.metadata == metadata
    assert told(record)[3] == [echoed(one) for one in QUESTIONS]


def test_a_list_in_which_the_user_finds_a_question_is_one_query(make_handler):
    handler = make_handler(question_key=lambda given: " & ".join(given))
    RunnableLambda(one_after_another).invoke(QUESTIONS, {"callbacks": [handler]})
    (record,) = handler.records
    assert record.question == " & ".join(QUESTIONS)


@pytest.mark.parametrize("name", ["ctxeval_id", "ctxeval_reference_ids"])
def test_a_call_that_says_what_is_expected_of_it_is_a_query(make_handler, name):
    """Also where the run around it has a question of its own."""
    handler = make_handler(references=[{"id": "e", "reference_context_ids": ["d2-a"]}])
    own = "e" if name == "ctxeval_id" else ["d2-a"]

    def asks(question):
        return [rag().invoke("a", {"metadata": {name: own}}), rag().invoke("b")]

    RunnableLambda(asks).invoke("all of the FAQ", {"callbacks": [handler]})
    first, second = sorted(handler.records, key=lambda one: len(one.question))
    assert told(first) == ("a", "answer to a", "ok", [echoed("a")])
    assert first.scores["reciprocal_rank"].value == 0.5
    assert (second.question, told(second)[3]) == ("all of the FAQ", [echoed("b")])
    assert handler.without_retrieval == 0


def test_what_holds_queries_is_not_counted_as_one_without_retrieval(handler):
    def asks(questions):
        return [rag().invoke(one, {"metadata": {"ctxeval_id": one}}) for one in questions]

    RunnableLambda(asks).invoke("all", {"callbacks": [handler]})
    rag().map().invoke(QUESTIONS, {"callbacks": [handler]})
    assert len(handler.records) == 6
    assert handler.without_retrieval == 0


@pytest.mark.parametrize("batch", [False, True])
def test_questions_that_fail_and_are_asked_again(handler, batch):
    """The failed attempt does not count; a question that fails for good does."""
    failed = set()

    def fails(answer):
        if answer.endswith("1?") and answer not in failed:
            failed.add(answer)
            raise ValueError("the first attempt fails")
        if answer.endswith("2?"):
            raise ValueError("each attempt fails")
        return answer

    ask = (rag() | fails).with_retry(stop_after_attempt=2, wait_exponential_jitter=False)

    def asks(given):
        for question in given:
            with contextlib.suppress(ValueError):
                ask.invoke(question)

    if batch:
        chain = RunnableLambda(lambda given: ask.batch(given, return_exceptions=True))
    else:
        chain = RunnableLambda(asks)
    chain.invoke(QUESTIONS, {"callbacks": [handler]})
    first, second, third = handler.records
    assert [told(first), told(third)] == [EACH[0], EACH[2]]
    assert (second.question, second.status) == (QUESTIONS[1], "error")


def test_a_run_that_fails_at_its_second_question(handler):
    def fails(answer):
        if answer.endswith("2?"):
            raise ValueError("no answer")
        return answer

    with pytest.raises(ValueError, match="no answer"):
        RunnableLambda(lambda given: [(rag() | fails).invoke(one) for one in given]).invoke(
            QUESTIONS, {"callbacks": [handler]}
        )
    assert [told(one)[:3] for one in handler.records] == [
        EACH[0][:3],
        (QUESTIONS[1], None, "error"),
    ]


class Waiting(Scripted):
    """Answers the second question only when it may; says when it was asked."""

    asked: Any = None
    may: Any = None

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if "what is 2?" in messages[-1].content:
            self.asked.set()
            self.may.wait(10)
        return super()._generate(messages, stop, run_manager, **kwargs)

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        if "what is 2?" in messages[-1].content:
            self.asked.set()
            await asyncio.Event().wait()
        return super()._generate(messages, stop, run_manager, **kwargs)


def test_a_run_that_is_given_up_at_its_second_question(make_handler):
    handler = make_handler()
    model = Waiting(asked=threading.Event(), may=threading.Event())
    chain = RunnableLambda(lambda given: [rag(model=model).invoke(one) for one in given])
    thread = threading.Thread(target=chain.invoke, args=(QUESTIONS, {"callbacks": [handler]}))
    thread.start()
    assert model.asked.wait(10)
    handler.close()
    model.may.set()
    thread.join()
    assert [told(one)[:3] for one in handler.records] == [
        EACH[0][:3],
        (QUESTIONS[1], None, "abandoned"),
    ]


def test_a_run_that_is_cancelled_at_its_second_question(handler):
    async def ask():
        model = Waiting(asked=asyncio.Event())

        async def one_after_another(given):
            return [await rag(model=model).ainvoke(one) for one in given]

        chain = RunnableLambda(one_after_another)
        task = asyncio.create_task(chain.ainvoke(QUESTIONS, {"callbacks": [handler]}))
        await model.asked.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(ask())
    assert [told(one)[:3] for one in handler.records] == [
        EACH[0][:3],
        (QUESTIONS[1], None, "cancelled"),
    ]


def test_each_has_its_own_prompt(make_handler):
    handler = make_handler(capture_prompts=True)
    RunnableLambda(one_after_another).invoke(QUESTIONS, {"callbacks": [handler]})
    for record in handler.records:
        *_, prompt = record.stages()
        assert prompt.kind == "prompt"
        assert [chunk.id for chunk in prompt.chunks] == echoed(record.question)[2]


def test_the_same_question_twice_is_two_queries(handler):
    RunnableLambda(one_after_another).invoke(["q", "q"], {"callbacks": [handler]})
    assert [told(one) for one in handler.records] == [("q", "answer to q", "ok", [echoed("q")])] * 2


def test_what_was_retrieved_for_no_question_is_left_to_the_run(handler):
    def asks(given):
        Echo().invoke("warm up")
        return one_after_another(given)

    RunnableLambda(asks).invoke(QUESTIONS, {"callbacks": [handler]})
    records = [told(one) for one in handler.records]
    assert [one for one in records if one[0] in QUESTIONS] == EACH
    assert [one[3] for one in records if one[0] not in QUESTIONS] == [[echoed("warm up")]]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("among", [False, True], ids=["alone", "as the input of a chain"])
def test_a_table_is_no_question(handler, way, among):
    frame = pytest.importorskip("pandas").DataFrame({"asked": QUESTIONS, "n": [1, 2, 3]})

    def asks(given):
        return one_after_another((given["input"] if among else given)["asked"].tolist())

    given = {"input": frame} if among else frame
    way(RunnableLambda(asks), [given], {"callbacks": [handler]})
    assert [told(record) for record in handler.records] == EACH


def test_each_question_is_sampled_by_itself(make_handler):
    handler = make_handler(sample_rate=0.5)
    questions = [f"what is {n}?" for n in range(40)]
    for _ in range(2):
        RunnableLambda(one_after_another).invoke(questions, {"callbacks": [handler]})
    assert 20 < len(handler.records) < 60
    assert len(handler.records) + handler.recorder.dropped["not sampled"] == 80
    kept = [one.question for one in handler.records]
    assert kept[: len(kept) // 2] != kept[len(kept) // 2 :]


@pytest.mark.slow
def test_ten_thousand_questions_in_one_run(make_handler):
    handler = make_handler(max_records=None)
    questions = [f"q{n}" for n in range(10_000)]
    RunnableLambda(lambda given: [Echo().invoke(one) for one in given]).invoke(
        questions, {"callbacks": [handler]}
    )
    assert handler.flush(120)
    assert [one.question for one in handler.records] == questions
    assert handler.recorder.dropped == {}
