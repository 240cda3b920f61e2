"""Scores for the rows of a data set, as two more columns for each metric."""
# pyright: reportMissingImports=false

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from ray import cloudpickle, data

from ctxeval import LLM, InvalidArgumentError, Metrics, MetricSet, Store, resolve_metrics
from ctxeval_ray.batches import Batches, JudgedBatches
from ctxeval_ray.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable


def score_dataset(
    dataset: data.Dataset,
    metrics: Metrics = "auto",
    *,
    llm: LLM | None = None,
    concurrency: int = 16,
    actors: int = 1,
    store: Store | str | PathLike[str] | None = None,
    max_requests_per_minute: int | None = None,
    max_tokens_per_day: int | None = None,
    errors: Literal["raise", "status"] = "raise",
) -> data.Dataset:
    """Score the rows of a data set by several metrics, wherever its blocks are.

    Nothing runs until the result is read. Metrics by id, text and span are stateless tasks.
    With a metric that asks a model, the batches go to asynchronous actors, each with one
    client; they take no CPU for themselves, since they mostly wait, and so never hold up
    what brings them their batches.

    Ray gives rows on in whichever order they are done: a row keeps all of its columns, so
    let one of them be an `id`. Or set `DataContext.get_current().execution_options
    .preserve_order` before the data set is made.

    Args:
        dataset: Its columns have the names of a `Sample`'s fields; others are handed on.
        metrics: Metrics or their names, or "auto": those that the data set has the columns
            for.
        llm: The model, for metrics given by name and for "auto". It is sent to each actor,
            which makes a client of its own.
        concurrency: How many calls to a model are under way at most, all actors together.
        actors: How many actors ask the model. One does for some hundred calls a second. Each
            takes whole blocks of the data set: see `Dataset.repartition`.
        store: Where a model's verdicts are kept, so that the same call goes on where another
            was interrupted: a `Store`, or a URL. A file does for one machine, PostgreSQL for
            several.
        max_requests_per_minute: How many requests the model may get, of all that share the
            store; further ones wait.
        max_tokens_per_day: How many tokens may be spent on one day (UTC), by all that share
            the store; what is then not judged yet has "failed".
        errors: What a row does that is no sample, and a metric whose column is missing: as
            of `ctxeval.score_table`.

    Returns:
        The data set with the columns `NAME` and `NAME_status` for each metric, as
        `ctxeval.score_table` makes them; behind those of a metric that asks a model
        `NAME_reason`, which says why there is no value.

    Raises:
        InvalidArgumentError: A metric is unknown, a number is out of range, a limit has no
            store, or the model cannot be sent to other processes.

    Examples:
        >>> import ray
        >>> rows = ray.data.read_parquet("samples/*.parquet")  # doctest: +SKIP
        >>> score_dataset(rows, ["ndcg@10"]).mean("ndcg@10")  # doctest: +SKIP
        0.83
    """
    if not isinstance(dataset, data.Dataset):
        raise InvalidArgumentError(
            f"dataset: {type(dataset).__name__} is none of Ray: give ray.data.read_parquet(…)"
        )
    if errors not in ("raise", "status"):
        raise InvalidArgumentError(f"errors: {errors!r} is unknown: give 'raise' or 'status'")
    for name, number in (("concurrency", concurrency), ("actors", actors)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidArgumentError(f"{name}: {number!r} is no integer >= 1")
    if actors > concurrency:
        raise InvalidArgumentError(
            f"actors: {actors} cannot share a concurrency of {concurrency}: give as many at most"
        )
    chosen: Metrics = metrics
    if metrics != "auto":
        chosen = resolve_metrics(metrics, llm)
        asks = any(metric.judge.calls_model for metric in chosen)
    else:
        MetricSet("auto", llm)
        asks = llm is not None
    if not asks:
        return _by_tasks(dataset, Batches(chosen, errors))
    limits = Limits.checked(Store.of(store), max_requests_per_minute, max_tokens_per_day)
    return _by_actors(dataset, (chosen, llm, errors, limits), concurrency // actors, actors)


def _by_tasks(dataset: data.Dataset, score: Callable[[Any], Any]) -> data.Dataset:
    return dataset.map_batches(
        score, batch_format="pyarrow", batch_size=None, udf_modifying_row_count=False
    )


def _by_actors(
    dataset: data.Dataset, arguments: tuple[Any, ...], concurrency: int, actors: int
) -> data.Dataset:
    try:
        cloudpickle.dumps(arguments)
    except Exception as error:
        raise InvalidArgumentError(
            f"metrics and llm cannot be sent to other processes: {error}: give the model as "
            "ctxeval.llm_factory('…'), a client of your own as a function that makes it"
        ) from error
    return dataset.map_batches(
        JudgedBatches,
        fn_constructor_args=(*arguments, concurrency),
        batch_format="pyarrow",
        batch_size=max(16, concurrency),
        compute=data.ActorPoolStrategy(min_size=1, max_size=actors),
        num_cpus=0,
        udf_modifying_row_count=False,
    )
