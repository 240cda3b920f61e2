"""Have a person label chunks: what is asked, which keys answer, and the way through a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, NamedTuple

from ctxeval.calibration.calibration import Purpose
from ctxeval.calibration.labelling import Labelling
from ctxeval.calibration.labels import Pair
from ctxeval.record.reading import read_samples
from ctxeval.report.wording import clean, line

ASKED: dict[Purpose, str] = {
    "question": "Does the chunk contain information about what the question asks?",
    "reference": "Does the chunk state something that helps to arrive at the reference?",
    "response": "Does the chunk state something that helps to arrive at the response?",
    "support": "Does all that the claim says follow from the chunks?",
}
"""What a person is asked: the same as the judge."""

KEYS = "y yes · n no · 0–3 grade · s skip · u undo · q quit"

WORDS = {"yes": "y", "no": "n", "skip": "s", "undo": "u", "quit": "q"}
"""What may be written out, where a line is asked for rather than a key."""


class Screen(NamedTuple):
    """What a person sees of a pair: harmless texts, each with its heading.

    Attributes:
        head: How far the labelling is.
        texts: Heading and text; the question last, so that a long chunk does not hide it.
        asked: What is asked.
    """

    head: str
    texts: list[tuple[str, str]]
    asked: str


def progress(labelling: Labelling) -> str:
    """Say how far the labelling is."""
    return f"{labelling.labelled} labelled, {labelling.left} left"


def screens(labelling: Labelling) -> Iterator[Screen]:
    """Say what a person sees of one pair after the other, and after the last, to take it back."""
    while labelling.current is not None or labelling.undoable:
        yield _screen(labelling, labelling.current)


def _screen(labelling: Labelling, pair: Pair | None) -> Screen:
    head = progress(labelling)
    if pair is None:
        return Screen(head, [], "That was the last one: u takes it back, anything else ends")
    if pair.sample:
        head += f" · sample {line(pair.sample, 60)}"
    several = len(pair.chunks) > 1
    texts = [
        (f"Chunk {number}" if several else "Chunk", clean(chunk))
        for number, chunk in enumerate(pair.chunks, start=1)
    ]
    if pair.question:
        texts.append(("Question", clean(pair.question)))
    if pair.target:
        heading = "Claim" if pair.purpose == "support" else pair.purpose.capitalize()
        texts.append((heading, clean(pair.target)))
    return Screen(head, texts, ASKED[pair.purpose])


def press(labelling: Labelling, key: str) -> str | None:
    """Do what a key, or the word for it, stands for; nothing where it is neither.

    Returns:
        What to tell; "" where there is nothing to tell; None to stop.
    """
    key = key.strip().casefold()
    key = WORDS.get(key, key)
    if key == "q" or (labelling.current is None and key != "u"):
        return None
    if key in ("y", "n"):
        labelling.label(key == "y")
    elif key in ("0", "1", "2", "3"):
        labelling.label(int(key))
    elif key == "s":
        labelling.skip()
    elif key == "u":
        return "" if labelling.undo() else "there is nothing to undo"
    else:
        return f"that key means nothing here: {KEYS}"
    return ""


def label_samples(
    samples: Any,
    path: str | PathLike[str],
    purpose: Purpose = "question",
    *,
    ask: Callable[[str], str] = input,
) -> int:
    """Label chunks in a notebook or at a prompt: one letter and Enter each.

    Each label is kept at once; the same call later goes on from there. In a terminal
    `ctxeval label` takes single keys.

    Args:
        samples: What was retrieved: a list, a path, a frame, as of `read_samples`.
        path: The label file, a .jsonl.
        purpose: What for: "question", "reference", "response", or "support" for claims.
        ask: What puts a question and gives the answer.

    Returns:
        How many of the pairs have a label now.

    Raises:
        InvalidArgumentError: As of `Labelling`.
        InvalidSampleError: A sample, or a line of the label file, is broken.
    """
    labelling = Labelling(read_samples(samples), path, purpose)
    told: str | None = ""
    for shown in screens(labelling):
        _clear()
        print(shown.head)
        for heading, text in shown.texts:
            print(f"\n{heading}: {text}")
        print(f"\n{told or shown.asked}")
        try:
            told = press(labelling, ask(f"{KEYS} > "))
        except (EOFError, KeyboardInterrupt):
            told = None
        if told is None:
            break
    print(progress(labelling))
    return labelling.labelled


def _clear() -> None:
    """Show one pair at a time, where the output is a notebook's."""
    if "IPython" in sys.modules:
        from IPython import get_ipython
        from IPython.display import clear_output

        if get_ipython() is not None:
            clear_output(wait=True)  # type: ignore[no-untyped-call]  # IPython's own
