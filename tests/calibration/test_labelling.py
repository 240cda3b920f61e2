"""Labelling: what is asked, what is kept, undo, and going on another day."""

from __future__ import annotations

import io
import json

import pytest

from ctxeval import InvalidArgumentError, InvalidSampleError, Sample, label_samples
from ctxeval.calibration.labelling import Labelling
from ctxeval.calibration.labels import read_labels

SAMPLES = [
    Sample(id="one", user_input="q1", retrieved_contexts=["a", "b", " ", "a"], reference="r"),
    Sample(id="two", user_input="q2", retrieved_contexts=["a"], reference_claims=["c1", "c2"]),
    Sample(id="none", user_input="q3"),
]


def kept(path):
    return [(one.pair.question, one.pair.chunks, one.label) for one in read_labels(path)]


def test_each_chunk_once(tmp_path):
    path = tmp_path / "l.jsonl"
    labelling = Labelling(SAMPLES, path)
    assert (labelling.labelled, labelling.left) == (0, 3)
    for label in (True, False, 2):
        labelling.label(label)
    assert labelling.current is None
    assert kept(path) == [("q1", ("a",), True), ("q1", ("b",), False), ("q2", ("a",), 2)]
    assert [one.pair.sample for one in read_labels(path)] == ["one", "one", "two"]
    with pytest.raises(InvalidArgumentError, match="nothing is left"):
        labelling.label(True)


@pytest.mark.parametrize(
    ("purpose", "targets"), [("reference", ["r", "r"]), ("support", ["c1", "c2"])]
)
def test_other_purposes(tmp_path, purpose, targets):
    path = tmp_path / "l.jsonl"
    labelling = Labelling(SAMPLES, path, purpose)
    while labelling.current is not None:
        labelling.label(True)
    assert [one.pair.target for one in read_labels(path)] == targets
    assert {one.pair.purpose for one in read_labels(path)} == {purpose}


def test_undo_takes_it_out_of_the_file(tmp_path):
    path = tmp_path / "l.jsonl"
    labelling = Labelling(SAMPLES, path)
    labelling.label(True)
    labelling.label(True)
    labelling.skip()
    assert labelling.undo()
    assert labelling.undo()
    assert kept(path) == [("q1", ("a",), True)]
    labelling.label(False)
    assert kept(path) == [("q1", ("a",), True), ("q1", ("b",), False)]
    assert [labelling.undo() for _ in range(3)] == [True, True, False]
    assert path.read_bytes() == b""


def test_it_goes_on_where_it_ended(tmp_path):
    path = tmp_path / "l.jsonl"
    Labelling(SAMPLES, path).label(True)
    path.write_text(path.read_text().rstrip())  # an editor may drop the last line's end
    again = Labelling(SAMPLES, path)
    assert (again.labelled, again.left, again.current.chunks) == (1, 2, ("b",))
    assert not again.undo(), "only this time's steps are taken back"
    again.skip()
    again.label(False)
    assert kept(path) == [("q1", ("a",), True), ("q2", ("a",), False)]
    third = Labelling(SAMPLES, path)
    assert (third.left, third.current.chunks) == (1, ("b",))


def test_what_somebody_else_wrote_is_not_cut_off(tmp_path):
    path = tmp_path / "l.jsonl"
    labelling = Labelling(SAMPLES, path)
    labelling.label(True)
    with path.open("a") as file:
        file.write('{"user_input": "q", "chunk": "c", "label": 1}\n')
    with pytest.raises(InvalidArgumentError, match="something else has written"):
        labelling.undo()
    assert len(kept(path)) == 2


def test_half_a_surrogate_pair(tmp_path):
    path = tmp_path / "l.jsonl"
    samples = [Sample(user_input="\ud83d", retrieved_contexts=["\ud83d!", "ü"])]
    Labelling(samples, path).label(True)
    assert Labelling(samples, path).left == 1


@pytest.mark.parametrize(
    ("name", "purpose", "message"),
    [
        ("l.csv", "question", "is no suffix of a file that grows"),
        ("no/l.jsonl", "question", "its directory does not exist"),
        ("l.jsonl", "questions", "purpose: 'questions'"),
        ("l.jsonl", "response", "none has user_input and retrieved_contexts and response"),
    ],
)
def test_what_cannot_be(tmp_path, name, purpose, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Labelling(SAMPLES, tmp_path / name, purpose)


def test_a_broken_label_file_is_told(tmp_path):
    path = tmp_path / "l.jsonl"
    path.write_text('{"user_input": "q", "chunk": "c", "label": "x"}\n')
    with pytest.raises(InvalidSampleError, match=r"l\.jsonl, line 1: label: 'x'"):
        Labelling(SAMPLES, path)


def test_blank_lines_are_no_labels(tmp_path):
    path = tmp_path / "l.jsonl"
    path.write_text("\n  \n")
    labelling = Labelling(SAMPLES, path)
    labelling.label(True)
    assert len(kept(path)) == 1


class TestWritingFails:
    @pytest.fixture
    def labelling(self, tmp_path):
        (tmp_path / "in").mkdir()
        labelling = Labelling(SAMPLES, tmp_path / "in" / "l.jsonl")
        labelling.label(True)
        return labelling

    def test_a_file_that_is_gone(self, labelling):
        labelling.path.unlink()
        with pytest.raises(InvalidArgumentError, match=r"l\.jsonl cannot be written: No such"):
            labelling.undo()
        labelling.path.parent.rmdir()
        now = labelling.current
        with pytest.raises(InvalidArgumentError, match=r"cannot be written: No such .*label on by"):
            labelling.label(True)
        assert labelling.current is now

    def test_a_disk_that_is_full_leaves_no_half_of_a_label(self, labelling, monkeypatch):
        class Full(io.FileIO):
            def write(self, data):
                return super().write(data[:5])

        before = labelling.path.read_bytes()
        monkeypatch.setattr(
            type(labelling.path), "open", lambda path, mode, buffering=0: Full(path, "a+b")
        )
        with pytest.raises(InvalidArgumentError, match="cannot be written: No space left"):
            labelling.label(False)
        monkeypatch.undo()
        assert labelling.path.read_bytes() == before
        labelling.label(False)
        assert len(kept(labelling.path)) == 2


class TestAtAPrompt:
    @pytest.mark.parametrize("said", ["no idea", "nothing", "yesterday", "10", "0.5", "3x", "-1"])
    def test_what_only_begins_like_a_key_is_no_label(self, tmp_path, said):
        answers = iter([said, "q"])
        assert label_samples(SAMPLES, tmp_path / "l.jsonl", ask=lambda prompt: next(answers)) == 0

    def test_words_for_keys(self, tmp_path):
        answers = iter([" Yes ", "undo", "no", "skip", "quit"])
        assert label_samples(SAMPLES, tmp_path / "l.jsonl", ask=lambda prompt: next(answers)) == 1
        assert kept(tmp_path / "l.jsonl") == [("q1", ("a",), False)]

    def test_a_letter_each(self, tmp_path, capsys):
        keys = iter(["Y", "u", "n", "?", "", "3", "n", "u", "s", ""])
        done = label_samples(SAMPLES, tmp_path / "l.jsonl", ask=lambda prompt: next(keys))
        assert done == 2
        assert kept(tmp_path / "l.jsonl") == [("q1", ("a",), False), ("q1", ("b",), 3)]
        printed = capsys.readouterr().out
        assert "Chunk: b" in printed
        assert "Question: q2" in printed
        assert printed.count("that key means nothing here") == 2
        assert printed.endswith("2 labelled, 0 left\n")

    @pytest.mark.parametrize("stop", ["q", EOFError, KeyboardInterrupt])
    def test_stopping_keeps_what_is_there(self, tmp_path, stop):
        answers = iter(["y"])

        def ask(prompt):
            if answer := next(answers, None):
                return answer
            if isinstance(stop, str):
                return stop
            raise stop

        assert label_samples(SAMPLES, tmp_path / "l.jsonl", ask=ask) == 1

    def test_hostile_texts_are_shown_without_their_power(self, tmp_path, capsys):
        hostile = Sample(user_input="\x1b[2Jq", retrieved_contexts=["\x1b]0;x\x07\u202etxt"])
        label_samples([hostile], tmp_path / "l.jsonl", ask=lambda prompt: "y")
        printed = capsys.readouterr().out
        assert not set("\x1b\x07\u202e") & set(printed)
        (line,) = (tmp_path / "l.jsonl").read_text().splitlines()
        assert json.loads(line)["chunk"] == hostile.retrieved_contexts[0]
