"""`capture_prompts`: of what was retrieved, what stands in the prompt is the last stage."""

import json

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from small_chains import PROMPT, WAYS, Echo, Fixed, Scripted, by_ainvoke, by_invoke, rag, told

REFERENCES = [{"user_input": "q", "reference_context_ids": ["a"]}]


def documents(**texts):
    return [Document(id=id, page_content=text) for id, text in texts.items()]


def shows(write, found, model=None):
    """Make a chain that writes what it found into its prompt in its own way."""
    step = Fixed(documents=found) | RunnableLambda(write)
    return {"context": step, "question": RunnablePassthrough()} | PROMPT | (model or Scripted())


def prompt_of(handler):
    (record,) = handler.records
    stages = [one for one in record.retrievals if one.kind == "prompt"]
    assert len(stages) == 1
    assert record.chunks() == stages[0].chunks
    assert [chunk.rank for chunk in stages[0].chunks] == list(range(len(stages[0].chunks)))
    return [chunk.id for chunk in stages[0].chunks]


def joined(found):
    return "\n\n".join(one.page_content for one in found)


TEXTS = {"a": "the first  text\nin two lines", "b": 'the "second" text', "c": "the third — text"}


@pytest.mark.parametrize("way", WAYS)
def test_only_what_the_chain_showed(make_handler, way):
    handler = make_handler(references=REFERENCES, capture_prompts=True)
    way(shows(lambda found: joined(found[1:]), documents(**TEXTS)), ["q"], {"callbacks": [handler]})
    assert prompt_of(handler) == ["b", "c"]
    (record,) = handler.records
    assert [one.name for one in record.stages()] == ["Fixed", "prompt"]
    retrieved, shown = record.retrievals
    assert retrieved.scores["id_based_context_recall"].value == 1
    assert shown.scores["id_based_context_recall"].value == 0
    assert record.scores["id_based_context_recall"].value == 0
    assert not record.pooled


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        pytest.param(joined, "abc", id="joined"),
        pytest.param(lambda found: joined(reversed(found)), "cba", id="in another order"),
        pytest.param(str, "abc", id="as Python writes lists"),
        pytest.param(lambda found: json.dumps([d.page_content for d in found]), "abc", id="JSON"),
        pytest.param(
            lambda found: json.dumps([d.page_content for d in found], ensure_ascii=False),
            "abc",
            id="JSON in Unicode",
        ),
        pytest.param(lambda found: " ".join(joined(found).split()), "abc", id="without newlines"),
        pytest.param(lambda found: "none of it", "", id="nothing"),
    ],
)
def test_however_it_is_written(make_handler, write, expected):
    handler = make_handler(capture_prompts=True)
    shows(write, documents(**TEXTS)).invoke("q", {"callbacks": [handler]})
    assert prompt_of(handler) == list(expected)


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        pytest.param(lambda found: found[1].page_content, "b", id="the longer alone"),
        pytest.param(joined, "ab", id="both"),
        pytest.param(lambda found: found[0].page_content, "a", id="the shorter alone"),
    ],
)
def test_a_text_that_is_a_part_of_another(make_handler, write, expected):
    handler = make_handler(capture_prompts=True)
    found = documents(a="the cat", b="and the cat sat", empty="")
    shows(write, found).invoke("q", {"callbacks": [handler]})
    assert prompt_of(handler) == list(expected)


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
@pytest.mark.parametrize("model", [Scripted(), FakeListLLM(responses=["A"])], ids=["chat", "text"])
def test_models_of_both_kinds(make_handler, model, way, inline):
    handler = make_handler(capture_prompts=True, inline=inline)
    way(shows(joined, documents(**TEXTS), model), ["q"], {"callbacks": [handler]})
    assert prompt_of(handler) == ["a", "b", "c"]


def test_the_last_prompt_counts(make_handler):
    """A model that shortens each text, then one that answers."""
    handler = make_handler(capture_prompts=True)

    def choose(found):
        judge = Scripted(reply=lambda question, turn: question)
        return [one for one in found if judge.invoke(one.page_content).content.startswith("the f")]

    shows(lambda found: joined(choose(found)), documents(**TEXTS)).invoke(
        "q", {"callbacks": [handler]}
    )
    assert prompt_of(handler) == ["a"]


def test_a_later_prompt_without_the_texts_hides_nothing(make_handler):
    """A model that answers, then one that looks at the answer alone."""
    handler = make_handler(capture_prompts=True)
    answered = shows(joined, documents(**TEXTS))
    chain = answered | RunnableLambda(lambda answer: [answer]) | Scripted()
    chain.invoke("q", {"callbacks": [handler]})
    assert prompt_of(handler) == ["a", "b", "c"]


def test_two_retrievers_meet_in_one_prompt(make_handler):
    handler = make_handler(capture_prompts=True)
    found = {"a": Echo(prefix="a"), "b": Echo(prefix="b")}
    chain = found | ChatPromptTemplate.from_template("{b} {a}") | Scripted()
    chain.invoke("q", {"callbacks": [handler]})
    assert prompt_of(handler) == ["b1-q", "b2-q", "a1-q", "a2-q"]
    assert not handler.records[0].pooled


def test_a_chain_without_model_has_no_such_stage(make_handler):
    handler = make_handler(capture_prompts=True)
    Echo().invoke("q", config={"callbacks": [handler]})
    assert [one.kind for one in handler.records[0].retrievals] == ["retrieve"]


def test_without_the_option_no_prompt_is_kept(handler):
    rag().invoke("q", {"callbacks": [handler]})
    assert [name for name, _, _ in told(handler.records[0])[3]] == ["Echo"]
