"""Go through pairs that a person labels, one after the other; each label is kept at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import ENOSPC
from os import PathLike, strerror
from pathlib import Path

from ctxeval.calibration.calibration import Purpose
from ctxeval.calibration.labels import PURPOSES, Labelled, Pair, read_labels
from ctxeval.errors import InvalidArgumentError, near, short
from ctxeval.sample import Sample


class Labelling:
    """The pairs of samples, and what a person says of them.

    What the file holds already is not asked again, so that labelling goes on where it ended.

    Args:
        samples: What was retrieved.
        path: The label file, a .jsonl; made if it is not there.
        purpose: What the chunks are labelled for: "question", "reference" or "response"; or
            "support" for the samples' `reference_claims`, each beside all chunks.

    Raises:
        InvalidArgumentError: The path or the purpose can't be, or no sample has what is needed.
        InvalidSampleError: A sample or a line of the label file is broken.
    """

    def __init__(
        self, samples: Iterable[Sample], path: str | PathLike[str], purpose: Purpose = "question"
    ) -> None:
        """See the class."""
        if purpose not in PURPOSES:
            raise InvalidArgumentError(f"purpose: {short(purpose)}: {near(purpose, PURPOSES)}")
        self.path = _checked_path(path)
        self.purpose = purpose
        known = set()
        if _holds_something(self.path):
            known = {one.pair.judged for one in read_labels(self.path)}
        pairs = {pair.judged: pair for sample in samples for pair in pairs_of(sample, purpose)}
        if not pairs:
            fields = {"question": "", "support": " and reference_claims"}.get(
                purpose, f" and {purpose}"
            )
            raise InvalidArgumentError(
                f"samples: none has user_input and retrieved_contexts{fields}: there is nothing "
                f"to label for {purpose!r}"
            )
        self._pairs = [pair for name, pair in pairs.items() if name not in known]
        self._before = len(pairs) - len(self._pairs)
        self._place = 0
        self._ends: list[tuple[int, int] | None] = []

    @property
    def current(self) -> Pair | None:
        """The pair in question; None after the last one."""
        return self._pairs[self._place] if self._place < len(self._pairs) else None

    @property
    def undoable(self) -> bool:
        """Is there a step to take back?"""
        return bool(self._ends)

    @property
    def labelled(self) -> int:
        """How many of the pairs have a label, those of earlier times included."""
        return self._before + sum(one is not None for one in self._ends)

    @property
    def left(self) -> int:
        """How many are still to come."""
        return len(self._pairs) - self._place

    def label(self, label: bool | int) -> None:
        """Keep what somebody says of the pair in question, and go on to the next.

        Raises:
            InvalidArgumentError: The file can't be written; the pair stays the one in question.
        """
        pair = self.current
        if pair is None:
            raise InvalidArgumentError("label: nothing is left to label")
        line = _line(Labelled(pair, label))
        with _writing(self.path), self.path.open("a+b", buffering=0) as file:
            start = file.seek(0, 2)
            if start:
                file.seek(start - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            try:
                if file.write(line) < len(line):
                    raise OSError(ENOSPC, strerror(ENOSPC))
            except OSError:
                file.truncate(start)  # half a label would make the file unreadable
                raise
        self._ends.append((start, start + len(line)))
        self._place += 1

    def skip(self) -> None:
        """Go on to the next pair; this one comes again another time."""
        if self.current is not None:
            self._ends.append(None)
            self._place += 1

    def undo(self) -> bool:
        """Take the last step back, and its label out of the file.

        Returns:
            Whether there was one.

        Raises:
            InvalidArgumentError: Something else has written to the file since, or it can't be
                written.
        """
        if not self.undoable:
            return False
        last = self._ends[-1]
        if last is not None:
            start, end = last
            with _writing(self.path), self.path.open("r+b") as file:
                if file.seek(0, 2) != end:
                    raise InvalidArgumentError(
                        f"{self.path}: something else has written to it: take the label out by hand"
                    )
                file.truncate(start)
        self._ends.pop()
        self._place -= 1
        return True


def pairs_of(sample: Sample, purpose: Purpose) -> Iterator[Pair]:
    """Give what can be labelled of a sample: its chunks, or its claims; blank ones aside."""
    chunks = [text for text in sample.retrieved_contexts or () if text.strip()]
    question = sample.user_input if (sample.user_input or "").strip() else None
    if purpose == "support":
        for claim in sample.reference_claims or () if chunks else ():
            yield Pair(purpose, question or "", claim, tuple(chunks), sample.key)
        return
    target = "" if purpose == "question" else getattr(sample, purpose) or ""
    if question and (purpose == "question" or target.strip()):
        for text in chunks:
            yield Pair(purpose, question, target, (text,), sample.key)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidArgumentError(
            f"{path} cannot be written: {error.strerror}: see to that, and label on by the same "
            "call: what the file holds is not asked again"
        ) from None


def _holds_something(path: Path) -> bool:
    """Is there a file with more than blank lines?"""
    try:
        with path.open("rb") as file:
            return any(line.strip() for line in file)
    except OSError:  # whoever reads it says why it can't be read
        return path.exists()


def _line(labelled: Labelled) -> bytes:
    data = labelled.to_dict()
    try:
        return f"{json.dumps(data, ensure_ascii=False)}\n".encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as broken texts have it
        return f"{json.dumps(data)}\n".encode()


def _checked_path(path: object) -> Path:
    if not isinstance(path, (str, PathLike)):
        raise InvalidArgumentError(f"labels: {short(path)} is no path")
    checked = Path(path)
    why = ""
    if checked.suffix != ".jsonl":
        why = f"{checked.suffix!r} is no suffix of a file that grows label by label: give .jsonl"
    elif checked.is_dir():
        why = "it is a directory"
    elif not checked.absolute().parent.is_dir():
        why = "its directory does not exist"
    if why:
        raise InvalidArgumentError(f"labels: {short(str(checked))} cannot be written: {why}")
    return checked
