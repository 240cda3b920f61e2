"""One question with what was retrieved and what was expected."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sized
from numbers import Integral
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from ctxeval.errors import InvalidSampleError, short
from ctxeval.fields import (
    Claims,
    GradedIds,
    Metadata,
    RankedIds,
    RankedTexts,
    SampleId,
    Text,
    Texts,
    as_id,
    explain,
    listed,
)


class Span(BaseModel):
    """A range of characters in a source document.

    Attributes:
        document: The document's id.
        start: The first character, counted from 0.
        end: One past the last character.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    document: str
    start: int
    end: int

    def __init__(self, document: object, start: int, end: int) -> None:
        """Make a span.

        Raises:
            InvalidSampleError: A bound is no integer, is negative or the end precedes the start.
        """
        for name, value in (("start", start), ("end", end)):
            # The type first: asking for Integral takes half the time, and each chunk has a span.
            whole = type(value) is int or (
                isinstance(value, Integral) and not isinstance(value, bool)
            )
            if not whole or value < 0:
                raise InvalidSampleError(
                    f"Span.{name}: {short(value)} is no character position: give an integer >= 0"
                )
        if end < start:
            raise InvalidSampleError(f"Span: end {end} precedes start {start}: exchange them")
        try:
            name = as_id(document)
        except ValueError as error:
            raise InvalidSampleError(f"Span.document: {error}") from None
        super().__init__(document=name, start=int(start), end=int(end))


def _spans(value: object) -> object:
    if value is None:
        return None
    spans = []
    for index, item in enumerate(listed(value, "Spans")):
        if isinstance(item, Mapping):
            try:
                spans.append(Span(**item))
            except TypeError:
                raise ValueError(
                    f"[{index}]", f"{short(item)} is no span: give document, start and end"
                ) from None
            except InvalidSampleError as error:
                raise ValueError(f"[{index}]", str(error)) from None
        elif isinstance(item, Span):
            spans.append(item)
        else:
            raise ValueError(
                f"[{index}]", f"{short(item)} is no Span: give Span(document, start, end)"
            )
    return tuple(spans)


Spans = Annotated[tuple[Span, ...] | None, BeforeValidator(_spans)]


class Sample(BaseModel):
    """One question with what was retrieved and what was expected.

    Every field is optional: a metric names the fields that it needs. Lists of texts,
    ids and spans of the same side run in parallel, best rank first, and become tuples.

    Attributes:
        id: The sample's own id; `key` stands in for a missing one.
        user_input: The question.
        retrieved_contexts: The texts of the retrieved chunks.
        retrieved_context_ids: Their ids: `str`, `int` or anything with a stable
            `str()`; kept and compared as `str`.
        retrieved_spans: Where in their documents they stand.
        response: The application's answer.
        reference: The answer that was expected.
        reference_contexts: The texts that should have been retrieved.
        reference_context_ids: The ids that should have been retrieved; a mapping
            gives each its grade, an integer: 0 or less means not expected.
        reference_spans: The places that should have been retrieved; beside ids without
            texts, there may be more or fewer of them than of ids.
        reference_claims: What the reference says, claim by claim, at most 30; for
            those who don't want the model to split it.
        metadata: Anything else, for grouping.

    Raises:
        InvalidSampleError: A field is unknown, has the wrong type, holds an empty
            id, or differs in length from its parallel.

    Examples:
        >>> sample = Sample(retrieved_context_ids=[1, "b"], reference_context_ids={"b": 2})
        >>> sample.retrieved_context_ids
        ('1', 'b')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    id: SampleId = None
    user_input: Text = None
    retrieved_contexts: RankedTexts = None
    retrieved_context_ids: RankedIds = None
    retrieved_spans: Spans = None
    response: Text = None
    reference: Text = None
    reference_contexts: Texts = None
    reference_context_ids: GradedIds = None
    reference_spans: Spans = None
    reference_claims: Claims = None
    metadata: Metadata = {}

    def __init__(self, **fields: Any) -> None:
        """Check the fields and keep them; see the class for their meaning."""
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InvalidSampleError(explain(error, type(self).model_fields)) from None

    def model_post_init(self, context: Any, /) -> None:
        """Check that lists which run in parallel are of one length."""
        _parallel(
            "retrieved", self.retrieved_contexts, self.retrieved_context_ids, self.retrieved_spans
        )
        # A place may lie in several chunks, and a chunk hold several places.
        spans = None if self.reference_contexts is None else self.reference_spans
        _parallel("reference", self.reference_contexts, self.reference_context_ids, spans)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse: a sample does not change."""
        raise InvalidSampleError(
            f"Sample.{name}: a sample does not change: sample.model_copy(update={{{name!r}: …}})"
        )

    def __delattr__(self, name: str) -> None:
        """Refuse: a sample does not change."""
        raise InvalidSampleError(
            f"Sample.{name}: a sample does not change: sample.model_copy(update={{{name!r}: None}})"
        )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Make a sample that differs in the given fields, checked like any other."""
        del deep  # everything inside is immutable or copied
        return type(self)(**{**dict(self), **(update or {})})

    @property
    def key(self) -> str:
        """The sample's id, or else a hash of its question and what is expected."""
        if self.id is not None:
            return self.id
        expected = [
            self.user_input,
            self.reference,
            self.reference_contexts,
            self.reference_context_ids,
            self.reference_spans
            and [tuple(span.__dict__.values()) for span in self.reference_spans],
            self.reference_claims,
        ]
        text = json.dumps(expected, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __hash__(self) -> int:
        """Hash by `key`: equal samples have equal keys."""
        return hash(self.key)

    @classmethod
    def of(cls, sample: Self | Mapping[str, Any] | None = None, /, **fields: Any) -> Self:
        """Take a sample as it is, or make one from a mapping or from keywords."""
        if sample is None:
            return cls(**fields)
        if fields:
            names = ", ".join(fields)
            raise InvalidSampleError(f"a sample and fields ({names}) were given: give either")
        if isinstance(sample, Sample):
            return sample
        if isinstance(sample, Mapping):
            return cls(**{str(name): value for name, value in sample.items()})
        raise InvalidSampleError(
            f"{short(sample)} is a {type(sample).__name__}: give a Sample or a dict of its fields"
        )


def _parallel(
    side: str,
    contexts: tuple[str, ...] | None,
    ids: Sized | None,
    spans: tuple[Span, ...] | None,
) -> None:
    if (contexts is None) + (ids is None) + (spans is None) >= 2:
        return
    lengths = {len(values) for values in (contexts, ids, spans) if values is not None}
    if len(lengths) > 1:
        named = {"contexts": contexts, "context_ids": ids, "spans": spans}
        listed = ", ".join(f"{side}_{n} has {len(v)}" for n, v in named.items() if v is not None)
        raise InvalidSampleError(f"{listed}: they run in parallel, so give each the same length")
