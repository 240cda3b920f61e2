"""What is expected, looked up by question or by an explicit id."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from os import PathLike
from typing import Any, TypedDict, Unpack

from ctxeval.errors import InvalidArgumentError, InvalidSampleError, short
from ctxeval.fields import as_id
from ctxeval.record.checking import Staleness, staleness
from ctxeval.record.expected import Found
from ctxeval.record.files import file_rows
from ctxeval.record.places import resolve_spans, told_of_lost
from ctxeval.record.query import Chunk
from ctxeval.record.reading import rows_of
from ctxeval.sample import Sample, Span


class Options(TypedDict, total=False):
    """What every way to make `References` takes besides the source.

    Attributes:
        strict: Refuse different references for one question at once?
        metadata_columns: The names of further columns, which go to the metadata.
    """

    strict: bool
    metadata_columns: Collection[str]


class References:
    """What is expected of an application, question by question.

    Args:
        samples: `Sample`s, dicts with the same field names, or anything else that
            `read_samples` goes through, but a path: that is for `References.of`.
        strict: Refuse different references for one question at once? Otherwise they
            load, and such a question is found by id only.
        metadata_columns: The names of further columns, which go to the metadata.

    Attributes:
        unresolved: By the sample's key, the expected places for which `from_spans` found
            no chunk.

    Raises:
        InvalidSampleError: One of them is no sample, or lacks both id and question.
        InvalidArgumentError: Two with one id differ, or, with `strict`, two with one question.

    Examples:
        >>> references = References(
        ...     [{"user_input": "Who wrote Faust?", "reference_context_ids": ["g1"]}]
        ... )
        >>> references.lookup("  who wrote FAUST? ").sample.reference_context_ids
        ('g1',)
    """

    def __init__(
        self, samples: Any = (), *, strict: bool = False, metadata_columns: Collection[str] = ()
    ) -> None:
        """See the class."""
        if isinstance(samples, (str, PathLike)):
            raise InvalidArgumentError(
                f"references: {short(samples)} is no list: of a file, References.of(path)"
            )
        self.unresolved: Mapping[str, tuple[Span, ...]] = {}
        self._by_id: dict[str, Sample] = {}
        self._by_question: dict[str, list[Sample]] = {}
        for row in rows_of(samples, "references"):
            sample = row.sample(metadata_columns)
            try:
                self._add(sample)
            except (InvalidSampleError, InvalidArgumentError) as error:
                raise type(error)(f"{row.place}: {error}") from None
        if strict:
            for question, several in self._by_question.items():
                if len(several) > 1:
                    raise InvalidArgumentError(
                        f"references: {len(several)} different ones for {short(question)}: "
                        "leave one, or load without strict=True and look them up by id"
                    )

    @classmethod
    def of(cls, references: Any, **options: Unpack[Options]) -> References:
        """Take references as they are, or make them from a path or any other source.

        Args:
            references: A `References`, None for none, or what `read_samples` goes through.
            **options: As of the class: `strict`, `metadata_columns`.

        Raises:
            InvalidSampleError: As of the class; the message names file, line and field.
            InvalidArgumentError: As of the class.
            MissingExtraError: A Parquet file needs pyarrow.
        """
        if isinstance(references, References):
            return references
        if isinstance(references, (str, PathLike)):
            references = file_rows(references)
        given = () if references is None else references
        return cls(given, **options)

    @classmethod
    def from_spans(
        cls,
        samples: Any,
        chunks: Iterable[Chunk] | Mapping[Any, Span],
        *,
        min_overlap: int = 1,
        **options: Unpack[Options],
    ) -> References:
        """Resolve expected places in documents to the ids of the chunks that hold them.

        So expectations survive another chunking: resolve them against each index.

        Args:
            samples: What `read_samples` goes through, with `reference_spans`.
            chunks: The chunks of the index, with their spans; or a mapping from id to span.
            min_overlap: How many characters of an expected place a chunk must hold.
            **options: As of the class; with `strict`, a place that no chunk holds is an error.

        Returns:
            References with the chunks' ids beside the places, so that scores by id and by
            characters are both had. Places that no chunk holds are warned of and stand in
            `unresolved`; a sample of which no place was found has no expected ids, so that
            scores by id are skipped rather than wrong.

        Raises:
            InvalidArgumentError: No chunk holds any of the places.
        """
        if isinstance(samples, (str, PathLike)):
            samples = file_rows(samples)
        columns = options.get("metadata_columns", ())
        given = (row.sample(columns) for row in rows_of(samples, "references"))
        resolved, lost = resolve_spans(given, chunks, min_overlap)
        if lost:
            message = told_of_lost(lost)
            everything = not any(sample.reference_context_ids for sample in resolved)
            if everything or options.get("strict"):
                raise InvalidArgumentError(message)
            warnings.warn(message, stacklevel=2)
        made = cls(resolved, **options)
        made.unresolved = lost
        return made

    def check(self, index: Any) -> Staleness:
        """Say which expected ids an index does not have, and where their texts are now.

        Re-indexing often gives new ids, which turns every score by id to 0.

        Args:
            index: One of

                - its ids; a mapping from id to text; its chunks, documents or nodes;
                - a vector store (`get_by_ids`), or an index or a document store
                  (`docstore`, `docs`), which are asked for the ids;
                - a retriever (`invoke`, `retrieve`, or a function of a question), which is
                  asked for each expected text and each question: what it does not bring is
                  missing where the expected text is known, and else `unseen`;
                - a store of captured records, which knows what was ever retrieved.

        Returns:
            What is stale; falsy where nothing is.

        Examples:
            >>> references = References(
            ...     [{"id": "q1", "reference_context_ids": ["a"], "reference_contexts": ["Text."]}]
            ... )
            >>> print(references.check({"b": "Text."}))
            1 of 1 expected ids are not in the index
              q1: a (its text is now in b)
        """
        return staleness(self, index)

    @classmethod
    def from_jsonl(cls, path: str | PathLike[str], **options: Unpack[Options]) -> References:
        """Read a file with one JSON object of sample fields per line; see `read_samples`."""
        return cls(file_rows(path, ".jsonl"), **options)

    @classmethod
    def from_json(cls, path: str | PathLike[str], **options: Unpack[Options]) -> References:
        """Read a file with one JSON list of such objects; see `read_samples`."""
        return cls(file_rows(path, ".json"), **options)

    @classmethod
    def from_csv(cls, path: str | PathLike[str], **options: Unpack[Options]) -> References:
        """Read a table whose first line names the fields.

        A cell of a list holds JSON, `["a", "b"]`, in a CSV file `"[""a"", ""b""]"`; an
        empty cell means that the field is missing. See `read_samples`.
        """
        return cls(file_rows(path, ".csv"), **options)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str], **options: Unpack[Options]) -> References:
        """Read a Parquet file, which needs pyarrow; see `read_samples`."""
        return cls(file_rows(path, ".parquet"), **options)

    @classmethod
    def from_pandas(cls, frame: Any, **options: Unpack[Options]) -> References:
        """Take the rows of a DataFrame; of polars or pyarrow too.

        An index with a name is a column like any other. See `read_samples`.
        """
        return cls(frame, **options)

    @classmethod
    def from_ragas(cls, dataset: Any, **options: Unpack[Options]) -> References:
        """Take an `EvaluationDataset` or a `Testset` of Ragas; see `read_samples`."""
        return cls(dataset, **options)

    @classmethod
    def from_langsmith(cls, examples: Iterable[Any], **options: Unpack[Options]) -> References:
        """Take the examples of a LangSmith data set, `client.list_examples(…)`.

        The example's `id` is the id. Of the inputs, `question`, `query` and `input` are the
        `user_input`; of the outputs, `answer` and `output` are the `reference`, and
        `reference_ids` the `reference_context_ids`. Other names are those of a `Sample`'s
        fields, or stand in `metadata_columns`. See `read_samples`.
        """
        return cls(examples, **options)

    def _add(self, sample: Sample) -> None:
        if sample.id is None and not (sample.user_input or "").strip():
            raise InvalidSampleError("it has neither id nor user_input, so it can't be looked up")
        if sample.id is not None and self._by_id.setdefault(sample.id, sample) != sample:
            raise InvalidArgumentError(f"id {sample.id!r} stands there twice, with differences")
        if sample.user_input is not None:
            several = self._by_question.setdefault(_normal(sample.user_input), [])
            expected = _expectation(sample)
            if not any(_expectation(other) == expected for other in several):
                several.append(sample)

    def __iter__(self) -> Iterator[Sample]:
        """Go through the samples, each once."""
        seen = {id(sample): sample for sample in self._by_id.values()}
        for several in self._by_question.values():
            seen.update((id(sample), sample) for sample in several)
        return iter(seen.values())

    def lookup(self, *questions: str | None, id: object = None) -> Found:
        """Find what is expected.

        Args:
            *questions: The question, and other forms of it, in order of preference.
                Case and white space don't matter.
            id: The explicit id, which goes before any question.
        """
        if not (self._by_id or self._by_question):
            return Found(None, "no references were given")
        if id is not None:
            with suppress(ValueError, KeyError):
                return Found(self._by_id[as_id(id)])
            return Found(None, f"no reference has the id {short(id)}")
        for question in questions:
            several = self._by_question.get(_normal(question or ""), [])
            if len(several) == 1:
                return Found(several[0])
            if several:
                return Found(None, f"{len(several)} references for this question, pass ctxeval_id")
        return Found(None, "no reference has this question")


def _normal(question: str) -> str:
    return " ".join(question.casefold().split())


def _expectation(sample: Sample) -> dict[str, Any]:
    return {name: value for name, value in sample if name.startswith("reference")}
