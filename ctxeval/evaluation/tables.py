"""Results as tables: for pandas, for Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ctxeval.evaluation.rows import json_line
from ctxeval.evaluation.tally import Tally
from ctxeval.extras import load
from ctxeval.sample import Sample


def flat_rows(
    ids: Sequence[str], samples: Iterable[Sample], tallies: Mapping[str, Tally]
) -> Iterator[dict[str, Any]]:
    """Give a flat dict per sample; see `Evaluation.to_dicts`."""
    taken = {"id", "user_input", *tallies, *(f"{name}_status" for name in tallies)}
    results = {name: tally.results() for name, tally in tallies.items()}
    coming = {name: next(of_one, None) for name, of_one in results.items()}
    for place, (name, sample) in enumerate(zip(ids, samples, strict=True)):
        values: dict[str, float | None] = {}
        statuses: dict[str, str] = {}
        for metric, one in coming.items():
            if one is not None and one[0] == place:
                _, values[metric], statuses[f"{metric}_status"] = one
                coming[metric] = next(results[metric], None)
        yield {
            "id": name,
            "user_input": sample.user_input,
            **{
                f"metadata.{key}" if key in taken else key: value
                for key, value in sample.metadata.items()
            },
            **values,
            **statuses,
        }


def whole(value: Any) -> Any:
    r"""Write what no UTF-8 can hold, half of a surrogate pair, as `\ud83d`; the rest stays."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "backslashreplace").decode()
        return value
    if isinstance(value, Mapping):
        return {whole(key): whole(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [whole(item) for item in value]
    return value


def arrow_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Make a pyarrow Table of flat dicts, with the columns of all of them.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    pa = load("pyarrow", "to_arrow()", "arrow")
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({whole(name): _arrow(pa, [row.get(name) for row in rows]) for name in names})


def _arrow(pa: Any, values: Sequence[Any]) -> Any:
    values = [whole(value) for value in values]
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):  # of several kinds, or of none that Arrow knows
        texts = [
            value if value is None or isinstance(value, str) else json_line(value).rstrip()
            for value in values
        ]
        return pa.array(texts, pa.string())
