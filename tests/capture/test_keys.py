"""What a user names wrongly is told once, with what was there, and summed up."""

import pytest

from ctxeval import Chunk, InvalidArgumentError, QueryRecord, Recorder, Retrieval


def found(source, /, **metadata):
    chunk = Chunk(0, "1", source, "text", metadata=metadata)
    return QueryRecord(str(metadata), "q", retrievals=[Retrieval("q", (chunk,))])


def take(recorder, *records):
    for order, record in enumerate(records):
        recorder.submit(order, order, lambda record=record: record)
    assert recorder.flush(10)


@pytest.mark.parametrize("option", ["id_key", "question_key", "answer_key"])
@pytest.mark.parametrize("key", [5, ["a"], "", True])
def test_a_key_is_a_name_or_a_function(option, key):
    with pytest.raises(InvalidArgumentError, match=f"^{option}: .* is no key"):
        Recorder(**{option: key})


def test_capture_prompts_is_true_or_false():
    with pytest.raises(InvalidArgumentError, match=r"^capture_prompts: 'yes' is no bool"):
        Recorder(capture_prompts="yes")


def test_an_id_key_that_is_nowhere_is_told_once_and_summed_up(caplog):
    recorder = Recorder(id_key="chunk")
    take(recorder, found("document_id", page=1), found("document_id", source="s"))
    assert recorder.advice == [
        "id_key='chunk' found nothing in any of 2 chunks' metadata: they hold 'page', 'source'"
    ]
    assert caplog.text.count("id_key='chunk' found nothing in any of 1 chunks' metadata") == 1
    assert caplog.text.count("id_key='chunk'") == 1


def test_an_id_key_that_some_chunks_have_is_right(caplog):
    recorder = Recorder(id_key="chunk")
    take(recorder, found("metadata:chunk", chunk="1"), found("document_id", page=1))
    assert recorder.advice == []
    assert "id_key" not in caplog.text


def test_a_function_that_never_finds_an_id_is_told(caplog):
    recorder = Recorder(id_key=lambda document: None)
    take(recorder, found("document_id"))
    assert recorder.advice == [
        "id_key found nothing in any of 1 chunks' metadata: they hold no keys"
    ]


@pytest.mark.parametrize(("option", "where"), [("question_key", "in"), ("answer_key", "out")])
def test_adapters_tell_whether_a_key_was_there(caplog, option, where):
    recorder = Recorder(**{option: "mine"})
    recorder.seek(option, False, ["a", "b"])
    take(recorder, found("document_id"))
    line = f"{option}='mine' found nothing in any of 1 {where}puts: they hold 'a', 'b'"
    assert recorder.advice == [line]
    assert caplog.text.count(line) == 1
    recorder.seek(option, True, ["mine"])
    assert recorder.advice == []


def test_a_metadata_key_that_says_nothing_is_told_once(caplog):
    wrong = {"ctxeval_refrence_ids": ["a"]}
    take(Recorder(), *(QueryRecord(str(n), "q", metadata=wrong) for n in range(3)))
    assert caplog.text.count("the metadata key 'ctxeval_refrence_ids' says nothing") == 1
    assert "did you mean 'ctxeval_reference_ids'" in caplog.text


def test_what_turns_out_to_be_several_queries_is_several_records():
    recorder = Recorder(references=[{"user_input": "b", "reference_context_ids": ["1"]}])
    several = [QueryRecord(name, name, retrievals=[Retrieval(name)]) for name in "ab"]
    recorder.submit(1, 1, lambda: several)
    take(recorder, QueryRecord("c", "c"))
    assert [one.question for one in recorder.records] == ["c", "a", "b"]
    assert recorder.records[2].scores["id_based_context_recall"].value == 0


def test_a_recorder_shows_what_it_has_and_what_it_left_out():
    recorder = Recorder(max_records=1)
    take(recorder, QueryRecord("a", "a"), QueryRecord("b", "b"))
    recorder.count_without_retrieval()
    assert recorder.without_retrieval == 1
    assert repr(recorder) == (
        "<Recorder records=1 without_retrieval=1 dropped={'more than max_records': 1}>"
    )
