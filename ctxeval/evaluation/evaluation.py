"""The result of many samples × many metrics."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxeval.errors import InvalidArgumentError, near, short
from ctxeval.evaluation.holding import VALUES_ALONE, Holder, InFile, InMemory, Nowhere, Part, Rows
from ctxeval.evaluation.rows import Row, json_line, read_run, run_path, write_run
from ctxeval.evaluation.tables import arrow_table, flat_rows, whole
from ctxeval.evaluation.tallies import Tallies
from ctxeval.evaluation.tally import Summary, Tally
from ctxeval.extras import load
from ctxeval.verdicts import Usage

if TYPE_CHECKING:
    from ctxeval.calibration.calibration import Calibration
    from ctxeval.calibration.correction import Corrected
    from ctxeval.evaluation.trusting import Calibrations


class Evaluation:
    """The results of many samples × many metrics.

    Made by `evaluate`, or read by `Evaluation.load`. Values and ids are kept in memory; the
    rows too, unless they went to a file, or come from a table whose values were worked out
    column by column: of such, each row is scored when it is asked for.

    Args:
        rows: The rows.
        path: The file that holds them, where they are not to be kept in memory.
    """

    def __init__(self, rows: Iterable[Row] = (), path: Path | None = None) -> None:
        """See the class."""
        kept: list[Row] = []
        self._path = path
        self._tallies = Tallies.counting(rows if path is not None else _keeping(rows, kept))
        self._holder: Holder = InMemory(kept)
        if path is not None:
            values_alone = path.suffix == ".parquet" or path.is_dir()
            self._holder = Nowhere(VALUES_ALONE) if values_alone else InFile(path)

    @classmethod
    def of_tallies(cls, tallies: Tallies, holder: Holder, path: Path | None = None) -> Evaluation:
        """Make one of what is known of its rows.

        Args:
            tallies: What is known.
            holder: Holds the rows.
            path: The file that they went to.
        """
        made = cls((), path)
        made._tallies = tallies
        made._holder = holder
        return made

    def __len__(self) -> int:
        """Count the samples."""
        return self._tallies.size

    @property
    def ids(self) -> list[str]:
        """The samples' ids, in order."""
        if self._tallies.ids is None:
            self._tallies.ids = [sample.key for sample in self._holder.samples()]
        return self._tallies.ids

    @property
    def usage(self) -> Usage:
        """What the judging cost."""
        return self._tallies.usage

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics' names."""
        return tuple(self._tallies.of)

    @property
    def readable(self) -> bool:
        """Can the rows be gone through? Not where only their values are left."""
        return not self.unreadable

    @property
    def unreadable(self) -> str:
        """Why the rows can't be gone through; "" where they can."""
        return self._holder.why if isinstance(self._holder, Nowhere) else ""

    @property
    def late(self) -> bool:
        """Is a row scored only when it is asked for, and anew each time?"""
        return self._holder.late

    @property
    def rows(self) -> Rows:
        """The rows, in the order of the samples: `rows[0]`, `rows[-3:]`, `len(rows)`.

        They are read, or scored, as they are asked for, and raise an InvalidArgumentError
        where only their values are left (see `readable`).
        """
        return Rows(self._holder, len(self))

    def at(self, places: Iterable[int]) -> Iterator[Row]:
        """Go through the rows at these places, counted from 0, in the order of the samples."""
        return self._holder.at(set(places))

    @property
    def name(self) -> str:
        """The name of the file that holds the rows; "" where they are in memory."""
        return "" if self._path is None else self._path.stem

    def of_ids(self, ids: Iterable[str]) -> Iterator[Row]:
        """Go through the rows with these ids."""
        wanted = set(ids)
        return self.at(place for place, name in enumerate(self.ids) if name in wanted)

    def _tally(self, metric: str) -> Tally:
        if metric not in self._tallies.of:
            raise InvalidArgumentError(
                f"metric: {metric!r} was not scored: {near(metric, self._tallies.of)}"
            )
        return self._tallies.of[metric]

    def signature(self, metric: str) -> str:
        """Say what decided a metric's values besides the samples; several where they differ.

        Raises:
            InvalidArgumentError: There is no such metric.
        """
        return " | ".join(self._tally(metric).signatures)

    def places(self, metric: str) -> list[tuple[int, float]]:
        """Give the scored values of a metric, each with the place of its row."""
        return self._tally(metric).scored()

    def values(self, metric: str) -> dict[str, float]:
        """Give the scored values of a metric, by the sample's id.

        Raises:
            InvalidArgumentError: There is no such metric, or an id stands there twice.
        """
        values: dict[str, float] = {}
        for place, value in self._tally(metric).scored():
            name = self.ids[place]
            if name in values:
                raise InvalidArgumentError(
                    f"two samples have the id {name!r}: give each an id of its own to compare them"
                )
            values[name] = value
        return values

    def summary(
        self,
        *,
        clusters: str | Callable[[Row], object] | None = None,
        confidence: float = 0.95,
    ) -> list[Summary]:
        """Say of each metric its mean with interval, and how many samples it rests on.

        Args:
            clusters: Where samples depend on each other (questions on one document): a
                key of their metadata, or a function of the row, that names the group. The
                interval is then that of whole groups.
            confidence: How often such intervals should hold the true mean.
        """
        names = None if clusters is None else self._names(clusters)
        if names is not None:  # what no group is named for depends on nothing
            names = [object() if name is None else str(name) for name in names]
        return [
            tally.summary(metric, len(self), names, confidence)
            for metric, tally in self._tallies.of.items()
        ]

    def corrected(
        self,
        calibration: Calibration | None = None,
        labels: Mapping[str, float] | None = None,
        *,
        metric: str | None = None,
        confidence: float = 0.95,
    ) -> Corrected:
        """Correct a mean for the errors of the judge behind it, by what people said.

        Args:
            calibration: How the judge did on labelled pairs. Corrects a plain share of its
                verdicts: `context_relevance`, where chunks were labelled for the "question";
                `context_recall`, where claims were labelled for "support".
            labels: Or people's value of some of the samples, by id. Corrects any metric.
            metric: Which metric; None: the one that the calibration is about, or the only one.
            confidence: How often such intervals should hold the true mean, in (0, 1).

        Returns:
            The corrected mean, with an interval that carries what the labels leave open.

        Raises:
            InvalidArgumentError: The calibration is another judge's, the metric is no plain
                share of its verdicts, or the labels fit no sample.
        """
        from ctxeval.evaluation.correcting import corrected_by_calibration, corrected_by_labels

        if (calibration is None) == (labels is None):
            raise InvalidArgumentError(
                "corrected: give a calibration (of calibrate()), or labels={sample id: value}"
            )
        if calibration is not None:
            return corrected_by_calibration(self, calibration, metric, confidence)
        return corrected_by_labels(self, labels or {}, metric, confidence)

    def _names(self, key: str | Callable[[Row], object]) -> list[object]:
        """Give what each row is grouped by."""
        if not isinstance(key, str):
            return [key(row) for row in self.rows]
        names = []
        known: set[str] = set()
        for sample in self._holder.samples():
            names.append(sample.metadata.get(key))
            known.update(map(str, sample.metadata))
        if len(self) and key not in known:
            hint = near(key, known) if known else "they have no metadata"
            raise InvalidArgumentError(f"no sample's metadata has the key {key!r}: {hint}")
        return names

    def worst(self, metric: str, n: int = 5) -> list[Row]:
        """Give the rows with the lowest values of a metric, lowest first.

        Their `results[metric].verdicts` tell which chunk or claim failed.

        Raises:
            InvalidArgumentError: There is no such metric, or n is no integer >= 1.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidArgumentError(f"n: {short(n)} is no integer >= 1")
        scored = sorted(self._tally(metric).scored(), key=lambda entry: (entry[1], entry[0]))
        places = [place for place, _ in scored[:n]]
        rows = dict(zip(sorted(places), self.at(places), strict=True))
        return [rows[place] for place in places]

    def groups(self, key: str | Callable[[Row], object]) -> dict[object, Evaluation]:
        """Split by a key of the samples' metadata, or by a function of the row.

        Samples that lack the key are in the group None.

        Raises:
            InvalidArgumentError: No sample has the key.
        """
        groups: dict[object, list[int]] = {}
        for place, name in enumerate(self._names(key)):
            hashable = name if isinstance(name, Hashable) else str(name)
            groups.setdefault(hashable, []).append(place)
        if self.late:
            return {
                name: Evaluation.of_tallies(self._tallies.part(places), Part(self._holder, places))
                for name, places in groups.items()
            }
        rows = list(self.rows)
        return {
            name: Evaluation([rows[place] for place in places]) for name, places in groups.items()
        }

    def failures(self) -> dict[tuple[str, str, str], int]:
        """Count, by metric, status and reason, the results that have no value."""
        return {
            (name, status, reason): queries
            for name, tally in self._tallies.of.items()
            for (status, reason), queries in tally.failures().items()
        }

    def report(
        self,
        path: str | PathLike[str],
        baseline: Evaluation | str | PathLike[str] | None = None,
        *,
        calibration: Calibrations | None = None,
    ) -> Path:
        """Write a report that people can look at: one HTML file that needs nothing else.

        Scores with intervals and distributions, what changed against the baseline, where
        relevant chunks get lost, the worst queries opened to the chunk and the claim that
        failed, why values are missing, what the judging cost.

        Args:
            path: The file: .html, or .htm.
            baseline: What to compare with: another evaluation, or the file of a run.
            calibration: How the judge did on people's labels: a `Calibration`, its file, or
                several. Means are then shown as judged and as corrected.

        Returns:
            The path.

        Raises:
            InvalidArgumentError: The file can't be written, the two can't be compared, or the
                calibration is another judge's.
            MissingExtraError: jinja2, matplotlib or scipy is not installed.
        """
        from ctxeval.evaluation.reporting import write_report

        return write_report(self, path, baseline, calibration)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write everything to a .jsonl file, one JSON object a line, for `Evaluation.load`.

        Raises:
            InvalidArgumentError: The path has another suffix, or can't be written.
        """
        path = run_path(path, "path", (".jsonl",))
        if self._path is not None and path.resolve() == self._path.resolve():
            return path
        for _ in write_run(path, self.rows):
            pass
        return path

    @classmethod
    def load(cls, path: str | PathLike[str], *, keep: bool = True) -> Evaluation:
        """Read what `save` wrote, or `evaluate(…, output=path)`.

        Args:
            path: The file. Of a .parquet single rows are scored again when they are asked for,
                where the file of the samples is still there and no model judged.
            keep: Keep the rows of a .jsonl in memory? Otherwise they are read again where needed.

        Raises:
            InvalidArgumentError: It is no run.
            InvalidSampleError: A line is broken.
        """
        if not isinstance(path, (str, PathLike)):
            raise InvalidArgumentError(f"run: {short(path)} is no path")
        path = Path(path)
        if path.suffix == ".parquet":
            from ctxeval.evaluation.parquet_run import read_table

            return cls.of_tallies(*read_table(path), path)
        return cls(read_run(path), None if keep else path)

    @classmethod
    def of(cls, run: Evaluation | str | PathLike[str]) -> Evaluation:
        """Take an evaluation as it is, or read the file that it was saved to.

        Raises:
            InvalidArgumentError: It is neither.
            InvalidSampleError: A line of the file is broken.
        """
        if isinstance(run, Evaluation):
            return run
        if isinstance(run, (str, PathLike)):
            return cls.load(run, keep=False)
        raise InvalidArgumentError(
            f"run: {short(run)} is no Evaluation: give one, or the path it was saved to"
        )

    def to_dicts(self) -> Iterator[dict[str, Any]]:
        """Give one flat dict per sample: id, question, metadata, each value and status.

        A key of the metadata that is one of the others' names bears `metadata.` before it.
        """
        return flat_rows(self.ids, self._holder.samples(), self._tallies.of)

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame of `to_dicts`.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        pd = load("pandas", "to_pandas()", "pandas")
        return pd.DataFrame([whole(row) for row in self.to_dicts()])

    def to_arrow(self) -> Any:
        r"""Give a pyarrow Table of `to_dicts`.

        A column whose values are of several kinds holds them as JSON; half of a surrogate
        pair, which Arrow has no form for, is written as `\ud83d`.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        return arrow_table(list(self.to_dicts()))

    def to_jsonl(self, path: str | PathLike[str]) -> None:
        """Write `to_dicts` to a file, one JSON object a line, for other tools."""
        try:
            with Path(path).open("w", encoding="utf-8") as lines:
                for row in self.to_dicts():
                    lines.write(json_line(row))
        except OSError as error:
            raise InvalidArgumentError(
                f"path: {short(str(path))} cannot be written: {error.strerror}"
            ) from None

    def __repr__(self) -> str:
        """Show means with their coverage, for a terminal."""
        lines = [f"Evaluation of {len(self)} samples"]
        for name, tally in self._tallies.of.items():
            values = [value for _, value in tally.scored()]
            mean = f"{sum(values) / len(values):.3f}" if values else "no value"
            lines.append(f"  {name:42} {mean:>8}  ({len(values)} of {len(self)} scored)")
        return "\n".join(lines)


def _keeping(rows: Iterable[Row], kept: list[Row]) -> Iterator[Row]:
    for row in rows:
        kept.append(row)
        yield row
