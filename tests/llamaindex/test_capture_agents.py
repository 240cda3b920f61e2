"""An agent's or workflow's run is a record, with whatever its tools and steps retrieve."""

import asyncio

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llamaindex_captures import (
    CORE,
    Keep,
    Model,
    capturing,
    engine,
    ids,
    stages,
    synthesizer,
    tool,
)
from llamaindex_parts import Caller, Fixed, hits

# The framework looks at deprecated attributes of its own models.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

QUESTION = "Who?"


def retriever_tool(*nodes, keep=None):
    after = [] if keep is None else [Keep(ids=keep)]
    return RetrieverTool.from_defaults(
        Fixed(*nodes), node_postprocessors=after, name="look", description="look"
    )


def agent(*turns, tools, cls=FunctionAgent):
    made = FunctionAgent(name="agent", description="it", tools=list(tools), llm=Caller(turns=turns))
    return made if cls is FunctionAgent else AgentWorkflow(agents=[made], root_agent="agent")


def run(made, *args, **options):
    async def ask():
        return await made.run(*args, **options)

    return asyncio.run(ask())


@pytest.mark.parametrize("cls", [FunctionAgent, AgentWorkflow])
class TestAgent:
    def test_asks_an_engine(self, cls):
        made = agent(
            ("ask", {"input": "what?"}), tools=[tool("ask", "a", "b", keep=("b",))], cls=cls
        )
        with capturing() as handler:
            run(made, QUESTION)
        (record,) = handler.records
        assert (record.question, record.answer) == (QUESTION, "the answer")
        assert record.status == "ok"
        assert record.retrievals[0].query == "what?"
        assert stages(record) == [
            ("retrieve", "Fixed", ["a", "b"]),
            ("rerank", "Keep", ["b"], "of 0"),
            ("prompt", "synthesizer", ["b"], "of 1"),
        ]

    def test_asks_a_retriever(self, cls):
        made = agent(
            ("look", {"input": "what?"}), tools=[retriever_tool("a", "b", keep=("b",))], cls=cls
        )
        with capturing() as handler:
            run(made, QUESTION)
        (record,) = handler.records
        assert (record.question, record.answer, record.status) == (QUESTION, "the answer", "ok")
        assert stages(record) == [
            ("retrieve", "Fixed", ["a", "b"]),
            ("rerank", "Keep", ["b"], "of 0"),
        ]
        assert [chunk.id for chunk in record.chunks()] == ["b"]

    def test_asks_both_and_both_count(self, cls):
        made = agent(
            ("ask", {"input": "what?"}),
            ("look", {"input": "and?"}),
            tools=[tool("ask", "a", "b", keep=("b",)), retriever_tool("c")],
            cls=cls,
        )
        with capturing() as handler:
            run(made, QUESTION)
        (record,) = handler.records
        assert [one.kind for one in record.retrievals] == [
            "retrieve",
            "rerank",
            "prompt",
            "retrieve",
        ]
        assert [chunk.id for chunk in record.chunks()] == ["b", "c"]
        assert record.pooled

    def test_is_given_messages(self, cls):
        made = agent(("look", {"input": "what?"}), tools=[retriever_tool("a")], cls=cls)
        said = [ChatMessage("before"), ChatMessage("hm", role="assistant"), ChatMessage(QUESTION)]
        with capturing() as handler:
            run(made, user_msg=ChatMessage("in a message"))
            run(
                agent(("look", {"input": "what?"}), tools=[retriever_tool("a")], cls=cls),
                chat_history=said,
                memory=ChatMemoryBuffer.from_defaults(llm=Model()),
            )
        assert [record.question for record in handler.records] == ["in a message", QUESTION]

    def test_that_retrieves_nothing_leaves_no_record(self, cls):
        made = agent(tools=[retriever_tool("a")], cls=cls)
        with capturing() as handler:
            run(made, QUESTION)
        assert handler.records == []

    def test_is_told_apart_from_what_follows(self, cls):
        """The context of its caller may be left as if the agent were still running."""
        made = agent(("look", {"input": "what?"}), tools=[retriever_tool("a")], cls=cls)
        other = agent(("look", {"input": "so?"}), tools=[retriever_tool("e")], cls=cls)

        async def ask():
            under_way = made.run(QUESTION)
            await engine("b").aquery("at the same time")
            await asyncio.gather(*(engine("c").aquery(f"branch {n}") for n in range(2)))
            await under_way
            await other.run("again?")
            await engine("d").aquery("afterwards")

        with capturing() as handler:
            asyncio.run(ask())
        found = {one.question: [c.id for c in one.chunks()] for one in handler.records}
        assert found == {
            QUESTION: ["a"],
            "at the same time": ["b"],
            "branch 0": ["c"],
            "branch 1": ["c"],
            "again?": ["e"],
            "afterwards": ["d"],
        }


def test_a_tool_that_is_a_plain_function():
    """Before core 0.14.22 it runs in a thread that knows nothing of the agent's run."""

    def search(input: str) -> str:
        """Search."""
        return str(engine("a").query(input))

    made = agent(("search", {"input": "what?"}), tools=[FunctionTool.from_defaults(search)])
    with capturing() as handler:
        run(made, QUESTION)
    (record,) = handler.records
    assert [chunk.id for chunk in record.chunks()] == ["a"]
    assert record.question == (QUESTION if CORE >= (0, 14, 22) else "what?")


def test_tags_reach_the_run():
    references = [{"id": "case-7", "reference_context_ids": ["b"]}]
    with capturing(references=references) as handler, instrument_tags({"ctxeval_id": "case-7"}):
        run(Rag(), query=QUESTION)
    (record,) = handler.records
    assert record.metadata == {"ctxeval_id": "case-7"}
    assert record.scores["id_based_context_recall"].value == 1


def test_a_step_that_is_a_plain_function():
    """With workflows 1 it runs in a thread that knows nothing of the run."""

    class Plain(Workflow):
        @step
        def all(self, ev: StartEvent) -> StopEvent:
            Fixed("a").retrieve("what?")
            return StopEvent(result="said")

    with capturing() as handler:
        run(Plain(), query=QUESTION)
    (record,) = handler.records
    assert [chunk.id for chunk in record.chunks()] == ["a"]
    assert record.question == (QUESTION if CORE >= (0, 14) else "what?")


class Found(Event):
    nodes: list


class Kept(Event):
    nodes: list


class Rag(Workflow):
    """Retrieves, reranks and answers in a step each."""

    @step
    async def retrieve(self, ev: StartEvent) -> Found:
        self.asked = ev.get("query") or "?"
        return Found(nodes=await Fixed("a", "b").aretrieve(self.asked))

    @step
    async def rerank(self, ev: Found) -> Kept:
        return Kept(nodes=await Keep(ids=("b", "a")).apostprocess_nodes(ev.nodes))

    @step
    async def answer(self, ev: Kept) -> StopEvent:
        response = await synthesizer().asynthesize(self.asked, ev.nodes)
        return StopEvent(result=str(response))


def test_a_workflow():
    with capturing() as handler:
        run(Rag(), query=QUESTION)
    (record,) = handler.records
    assert (record.question, record.answer) == (QUESTION, f"answer to {QUESTION}")
    assert stages(record) == [
        ("retrieve", "Fixed", ["a", "b"]),
        ("rerank", "Keep", ["b", "a"], "of 0"),
        ("prompt", "synthesizer", ["b", "a"], "of 1"),
    ]


class Loose(Workflow):
    """Retrieves twice, and answers from one of the two; or fails, or takes too long."""

    @step
    async def all(self, ev: StartEvent) -> StopEvent:
        await Fixed("a").aretrieve("one")
        await Fixed("b").aretrieve("two")
        if ev.get("fails", False):
            raise LookupError("no more")
        if ev.get("waits", False):
            await asyncio.sleep(60)
        if ev.get("dict", False):
            return StopEvent(result={"text": "said", "score": 1})
        await synthesizer().asynthesize("one", hits("a"))
        return StopEvent(result="said")


def test_what_a_workflow_retrieved_besides():
    with capturing() as handler:
        run(Loose(), topic=QUESTION)
    (record,) = handler.records
    assert record.question == QUESTION
    assert stages(record)[-1] == ("prompt", "synthesizer", ["a"], "of 0")
    assert [chunk.id for chunk in record.chunks()] == ["b", "a"]


def test_where_question_and_answer_stand():
    keys = {"question_key": "topic", "answer_key": lambda result: "by a function"}
    with capturing() as handler, capturing(**keys) as told:
        run(Loose(), topic="T", query="Q", dict=True)
    assert [(one.question, one.answer) for one in handler.records] == [("Q", "said")]
    assert [(one.question, one.answer) for one in told.records] == [("T", "by a function")]
    with capturing(answer_key="text") as by_name, capturing(answer_key=sorted) as by_function:
        run(Loose(), topic="T", dict=True)
    assert by_name.records[0].answer == "said"
    assert by_function.records[0].answer == "['score', 'text']"


def test_where_there_is_no_such_key_the_rules_hold():
    with capturing(question_key="topic") as handler:
        engine("a").query(QUESTION)
    assert handler.records[0].question == QUESTION


@pytest.mark.parametrize(
    ("option", "where", "there"),
    [("question_key", "inputs", "'topic'"), ("answer_key", "outputs", "'text', 'score'")],
)
def test_a_key_that_is_nowhere_is_told(option, where, there):
    with capturing(**{option: "nowhere"}) as handler:
        run(Loose(), topic=QUESTION, dict=True)
    (record,) = handler.records
    assert record.question == QUESTION
    (line,) = [one for one in handler.recorder.advice if "nowhere" in one]
    assert line.startswith(f"{option}='nowhere' found nothing in any of 1 {where}: they hold")
    assert there in line


@pytest.mark.parametrize("option", ["id_key", "question_key", "answer_key"])
def test_a_function_of_the_users_that_raises_costs_no_record(option, caplog):
    with capturing(**{option: lambda given: 1 / 0}) as handler:
        for _ in range(3):
            engine("a").query(QUESTION)
    assert [one.question for one in handler.records] == [QUESTION] * 3
    assert [chunk.id for chunk in handler.records[0].chunks()] == ["a"]
    assert caplog.text.count(f"{option} failed with ZeroDivisionError") == 1


def test_a_workflow_that_fails():
    with capturing() as handler, pytest.raises(Exception, match="no more"):
        run(Loose(), query=QUESTION, fails=True)
    (record,) = handler.records
    assert (record.status, record.answer) == ("error", None)
    assert [ids(one) for one in record.retrievals] == [["a"], ["b"]]


def test_a_workflow_that_is_cancelled():
    async def ask():
        running = Loose(timeout=60).run(query=QUESTION, waits=True)
        while not recorded_two():
            await asyncio.sleep(0.01)
        await running.cancel_run()
        await asyncio.wait([asyncio.ensure_future(running)])
        assert running.exception() is not None

    def recorded_two():
        return [len(query.stages) for query in handler.taker.under_way()] == [2]

    with capturing() as handler:
        asyncio.run(ask())
    (record,) = handler.records
    assert record.status == "cancelled"


def test_many_agents_at_once_do_not_mix():
    async def ask(n):
        made = agent(("look", {"input": f"look {n}"}), tools=[retriever_tool(f"n{n}")])
        await made.run(f"question {n}")

    async def ask_all():
        await asyncio.gather(*(ask(n) for n in range(20)))

    with capturing() as handler:
        asyncio.run(ask_all())
    found = {one.question: [c.id for c in one.chunks()] for one in handler.records}
    assert found == {f"question {n}": [f"n{n}"] for n in range(20)}


def test_each_run_of_a_workflow_inside_of_another_one_is_a_query_if_told_so():
    class Session(Workflow):
        @step
        async def all(self, ev: StartEvent) -> StopEvent:
            for question in ("first?", "second?"):
                await Rag().run(query=question)
            return StopEvent(result="done")

    with capturing() as whole, capturing(query_name="Rag") as each:
        run(Session(), query="session")
    assert [record.question for record in whole.records] == ["first?", "second?"]
    assert [record.question for record in each.records] == ["first?", "second?"]
    with capturing() as whole:
        run(Session(), query="session")
    (record,) = whole.records
    assert (record.question, len(record.retrievals)) == ("session", 6)
