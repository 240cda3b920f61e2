"""The texts that are kept once, and what a process remembers of them.

A process remembers the numbers of the texts it has seen, so that a chunk that comes again
costs a look into a dict. What removes texts raises `generation`; a writer compares it in the
same transaction in which it writes, and forgets what it remembers where it has changed. So
no row ever refers to a text that is gone.

Beside a chunk's text stands its tag: id, metadata and what else comes again with it. The
first chunk with a text decides on the tag; one with another tag brings it along.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select, update

from ctxeval.store.plain import Strings, to_bytes, to_text
from ctxeval.store.statements import insert_new, parts
from ctxeval.store.tables import STATE, TEXTS, hash_of, read_refs

MAX_BYTES = 32_000_000
"""How much memory is given to what is remembered, about."""

_OVERHEAD = 150
"""What Python needs for a text besides its characters."""


class Tags(dict[str, str]):
    """The tag that is taken to stand beside each chunk's text, while a batch is packed.

    Args:
        known: The tags that are known to stand there.
    """

    def __init__(self, known: Mapping[str, str]) -> None:
        """See the class."""
        self._known = known

    def standing(self, texts: Sequence[str]) -> str | None:
        """Give the tags that are known to stand beside texts, as a list in JSON; None: not all."""
        try:
            tags = [self._known[text] for text in texts]
        except KeyError:
            return None
        self.update(zip(texts, tags, strict=True))
        return f"[{','.join(tags)}]"

    def settle(self, texts: Sequence[str], tags: Sequence[str]) -> bool:
        """Let tags stand beside texts of which none has one yet; say whether that was so."""
        given = dict(zip(texts, tags, strict=True))
        known, standing = self._known.keys(), self.keys()
        if len(given) < len(texts) or given.keys() & standing or given.keys() & known:
            return False
        self.update(given)
        return True

    def correct(self, tags: Mapping[str, str]) -> None:
        """Take note of what really stands there, before the batch is packed anew."""
        self.update((text, tag) for text, tag in tags.items() if text in self)
        self._known = {}

    def differs(self, text: str, tag: str) -> bool:
        """Does a chunk have to bring its tag along? Where none is known, its own will stand."""
        standing = self.get(text)
        if standing is None:
            standing = self[text] = self._known.get(text, tag)
        return standing != tag


class New(NamedTuple):
    """Texts that had no number before: these, and what tags stand beside them.

    `there` are those among them that others have brought meanwhile, with their tags.
    """

    numbers: dict[str, int]
    tags: dict[str, str]
    there: dict[str, str]


class Texts:
    """What a process remembers. Guarded by `Database.writing`."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._numbers: dict[str, int] = {}
        self._tags: dict[str, str] = {}
        self._bytes = 0
        self._generation = -1

    def tags(self) -> Tags:
        """Begin to pack a batch."""
        return Tags(self._tags)

    def give(self, connection: Connection, rows: Iterable[Collection[str]], tags: Tags) -> New:
        """Give numbers to the texts that have none, in the transaction that refers to them.

        Args:
            connection: The transaction.
            rows: The texts of each row.
            tags: The tags that are to stand beside new texts.

        Returns:
            The texts not known before: `keep` them once the transaction is done.
        """
        generation = connection.scalar(
            # PostgreSQL: shared among writers, and in the way of whoever removes texts.
            select(STATE.c.value).where(STATE.c.name == "generation").with_for_update(read=True)
        )
        if generation != self._generation:
            self._remember({}, {})
            self._generation = generation or 0
        known = self._numbers
        new = list(dict.fromkeys([text for row in rows for text in row if text not in known]))
        if not new:
            return New({}, {}, {})
        counter = STATE.c.name == "texts"
        # The counter's row is locked from here on: PostgreSQL's writers number in turns.
        connection.execute(update(STATE).where(counter).values(value=STATE.c.value + len(new)))
        last = connection.scalar(select(STATE.c.value).where(counter)) or 0
        first = last - len(new) + 1
        numbers = dict(zip(new, range(first, last + 1), strict=True))
        standing = {text: tags.get(text, "") for text in new}
        datas = [to_bytes(text) for text in new]
        made = list(
            zip(
                numbers.values(),
                map(hash_of, datas),
                datas,
                map(to_bytes, standing.values()),
                strict=True,
            )
        )
        there: dict[str, str] = {}
        if insert_new(connection, TEXTS, ("id", "hash", "text", "tag"), made) != len(made):
            text_of = {hash: text for text, (_, hash, *_) in zip(new, made, strict=True)}
            for part in parts(list(text_of)):
                found = select(TEXTS.c.hash, TEXTS.c.id, TEXTS.c.tag).where(TEXTS.c.hash.in_(part))
                for hash, number, tag in connection.execute(found):
                    text = text_of[hash]
                    if number != numbers[text]:
                        numbers[text] = number
                        there[text] = to_text(tag)
        standing.update(there)
        return New(numbers, standing, there)

    def refs(self, row: Strings, new: New) -> list[int]:
        """Give the numbers of a row's texts."""
        known = self._numbers
        if not new.numbers:
            return [known[text] for text in row]
        return [known[text] if text in known else new.numbers[text] for text in row]

    def keep(self, new: New, rows: Iterable[Collection[str]]) -> None:
        """Remember texts that are in the database for good."""
        self._numbers.update(new.numbers)
        self._tags.update(new.tags)
        self._bytes += _size(new.numbers, new.tags)
        if self._bytes > MAX_BYTES:  # go on with those of late
            late = {text: self._numbers[text] for row in rows for text in row}
            self._remember(late, {text: self._tags[text] for text in late})

    def _remember(self, numbers: dict[str, int], tags: dict[str, str]) -> None:
        self._numbers, self._tags = numbers, tags
        self._bytes = _size(numbers, tags)


def _size(numbers: dict[str, int], tags: dict[str, str]) -> int:
    return sum(map(len, numbers)) + sum(map(len, tags.values())) + _OVERHEAD * len(numbers)


def load(connection: Connection, rows: Iterable[bytes]) -> dict[int, tuple[str, str]]:
    """Read the texts that rows refer to, given their `refs`, with their tags."""
    wanted = list({number for refs in rows for number in read_refs(refs)})
    texts: dict[int, tuple[str, str]] = {}
    for part in parts(wanted):
        columns = select(TEXTS.c.id, TEXTS.c.text, TEXTS.c.tag).where(TEXTS.c.id.in_(part))
        for number, text, tag in connection.execute(columns):
            texts[number] = to_text(text), to_text(tag)
    return texts
