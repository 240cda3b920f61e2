"""Passages of Python's language reference, read from the interpreter that is running.

CPython ships the reference as `pydoc_data.topics` (what `help("assert")` prints), so the demo has
real text to retrieve from without a download and without shipping any of it. The text differs a
little between Python versions, and so do the passages.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Topics whose paragraphs almost all stand in other topics too: with them in, a question would have
# the same answer in two places. Of a collection and its parts, the parts stay.
_REPEATING = frozenset(
    {
        "augassign",  # in assignment
        "compound",  # if, while, for, try, with, function, class, async
        "dynamic-features",  # in execmodel
        "else",  # the same as if
        "exceptions",  # in execmodel
        "id-classes",  # in identifiers
        "in",  # in comparisons
        "naming",  # in execmodel
        "numbers",  # integers, floating, imaginary (since 3.14)
        "specialnames",  # customization, attribute-access, callable-types, numeric-types, ...
        "typesseq-mutable",  # in typesseq
    }
)

# Sizes in characters: a passage below _LEAST takes in the next paragraph, one above _MOST is split,
# and a paragraph below _SHORT goes with the one before it.
_LEAST, _MOST, _SHORT = 300, 900, 150

_HEADING = re.compile(r"(\S.*)\n([*=~^\"-])\2+$")
_MID_SENTENCE = re.compile(r"(?:[:,.]|\b(?:to|if|like))$")  # a signature never ends so
_FOLLOWING = re.compile(r"\s|(?:Changed|Added|New|Deprecated\b.*) in version ")
_SENTENCE_END = re.compile(r"(?<=[.?!])(?=\s+[A-Z])")
_GAP = re.compile(r"^ {1,2}(?=\S)")  # between two sentences; code is indented deeper
_LINE_END = re.compile(r"(?<=\n)")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of one topic of the language reference, long enough to answer a question.

    Attributes:
        id: The topic and the passage's number in it, such as `assert#01`.
        topic: The topic's name in `pydoc_data.topics`.
        text: The text, with its line breaks.
    """

    id: str
    topic: str
    text: str


def fold(text: str) -> str:
    """Folds case and white space, for comparing texts.

    Args:
        text: Any text.

    Returns:
        The text in lower case, each run of white space made a single space.
    """
    return " ".join(text.casefold().split())


def load_passages() -> list[Passage]:
    """Splits the running Python's language reference into passages.

    Topics that repeat others are left out, and so is a passage that stands in two topics word for
    word. Passages have about 300 to 900 characters; a section shorter than that is a passage of
    its own.

    Returns:
        The passages by topic name, those of a topic in reading order.

    Raises:
        ModuleNotFoundError: This Python was installed without `pydoc_data`.
    """
    from pydoc_data.topics import topics

    passages: list[Passage] = []
    seen: set[str] = set()
    for topic in sorted(topics.keys() - _REPEATING):
        for number, text in enumerate(_chunks(topics[topic]), start=1):
            key = fold(text)
            if key not in seen:
                seen.add(key)
                passages.append(Passage(f"{topic}#{number:02d}", topic, text))
    return passages


def _chunks(text: str) -> Iterator[str]:
    """Joins the paragraphs of a topic to chunks; a heading or an entry begins one if it can."""
    chunk: list[str] = []
    size = 0
    for block, begins in _blocks(text):
        for piece in _split(block):
            short = len(piece) < _SHORT
            if size + len(piece) > _MOST + (_SHORT if short else 0) or begins:
                full = size >= _SHORT
            else:
                full = size >= _LEAST and not short and not _FOLLOWING.match(piece)
            if full:
                yield "\n\n".join(chunk)
                chunk, size = [], 0
            chunk.append(piece)
            size += len(piece)
    yield "\n\n".join(chunk)


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the paragraphs of a topic, each with whether a new chunk should begin there.

    What introduces an indented paragraph, such as a method's signature or the words before an
    example, comes in one block with it.
    """
    blocks = re.split(r"\n\s*\n", text.strip("\n"))
    lead = ""
    for block, following in zip(blocks, [*blocks[1:], ""], strict=True):
        if heading := _HEADING.match(block):
            yield heading[1], True
        elif not lead and len(block) < _SHORT and _indent(following) > _indent(block):
            lead = block
        elif lead:
            yield f"{lead}\n\n{block}", not _MID_SENTENCE.search(lead)
            lead = ""
        else:
            yield block, False


def _indent(block: str) -> int:
    return len(block) - len(block.lstrip())


def _split(block: str) -> list[str]:
    """Splits a long paragraph into parts of like size, at sentence ends or else at line ends."""
    if len(block) <= _MOST:
        return [block]
    target = len(block) / math.ceil(len(block) / _MOST)
    parts = [""]
    for sentence in _SENTENCE_END.split(block):
        for unit in _LINE_END.split(sentence) if len(sentence) > _MOST / 2 else [sentence]:
            if parts[-1] and len(parts[-1]) + len(unit) / 2 > target:
                parts.append("")
            parts[-1] += unit
    return [_GAP.sub("", part.strip("\n")) for part in parts]
