"""Print what the demo found."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console
from rich.markup import escape

from ctxeval.demo.run import METRICS, Demo
from ctxeval.record.query import QueryRecord
from ctxeval.report.terminal import table
from ctxeval.report.wording import line, span

NEXT = """\
Capture your own application, with a list of questions and the ids that should be
retrieved for them:

    from ctxeval_langchain import CtxEvalCallbackHandler

    handler = CtxEvalCallbackHandler(
        references=[{"user_input": "…", "reference_context_ids": ["…"]}]
    )
    chain.invoke("…", config={"callbacks": [handler]})
    print(handler.records[0].scores)

No list yet? Give llm=ctxeval.llm_factory("…") instead, and a model judges the
context_relevance without any reference.
"""

KEPT = """\
The run is in {run}. Open it, or make a report of it:

    ctxeval show {name}
    ctxeval report {name} -o {page}"""


def show(demo: Demo, run: Path, console: Console) -> None:
    """Print the table of metrics, the styles side by side, the worst questions, and where they are.

    Args:
        demo: What the demo found.
        run: Where it is saved.
        console: Where to print.
    """
    n = len(demo.records)
    console.print(
        f"[bold]{n} questions[/bold] to Python's own language reference, "
        f"{demo.passages} passages, BM25, 10 retrieved each."
    )
    if demo.left_out:
        topics = ", ".join(question.topic for question in demo.left_out)
        console.print(
            f"{len(demo.left_out)} more were left out, since this Python's reference words their "
            f"answer in another way: {topics}"
        )
    found = table("metric", "mean", "95 % interval", "scored", "beginner", "reference")
    for metric in METRICS:
        whole = demo.interval(metric)
        styles = [demo.interval(metric, style).mean for style in ("beginner", "reference")]
        found.add_row(
            metric,
            f"{whole.mean:.3f}",
            span(whole.low, whole.high, whole.method),
            f"{whole.n}/{n}",
            *(f"{mean:.3f}" for mean in styles),
        )
    console.print(found)
    console.print(
        "beginner: asked in everyday words; reference: asked in the reference's own terms. "
        "Intervals: Wilson where all scores are 0 or 1, else BCa. The questions were written for "
        "this demo: they show what retrieval misses, and rank no retriever.\n"
    )
    console.print("[bold]The five worst questions[/bold]")
    for record in demo.worst():
        _show_query(record, console)
    console.print()
    console.rule("Next")
    console.print(NEXT, markup=False, highlight=False, soft_wrap=True)
    name, page = quote(str(run)), quote(str(run.with_suffix(".html")))
    kept = KEPT.format(run=run, name=name, page=page)
    console.print(kept, markup=False, highlight=False, soft_wrap=True)


def _show_query(record: QueryRecord, console: Console) -> None:
    expected = (record.reference and record.reference.reference_context_ids) or ()
    chunks = record.chunks()
    retrieved = [chunk.id for chunk in chunks]
    missed = [name for name in expected if name not in retrieved]
    ndcg = float(record.scores["ndcg@10"])
    console.print(f"\n  [bold]{escape(record.question)}[/bold]  (ndcg@10 {ndcg:.3f})")
    if missed:
        console.print(f"    missed:            {escape(', '.join(missed))}")
    else:
        ranks = ", ".join(f"{name} at rank {retrieved.index(name) + 1}" for name in expected)
        console.print(f"    found late:        {escape(ranks)}")
    console.print("    retrieved instead:")
    for chunk in chunks[:3]:
        shown = f"      {chunk.rank + 1:2}. {chunk.id:20} {line(chunk.text, 200)}"
        console.print(shown, markup=False, no_wrap=True, overflow="ellipsis", highlight=False)


def to_data(demo: Demo) -> dict[str, Any]:
    """Write what the demo found as plain data, for JSON."""
    return {
        "passages": demo.passages,
        "left_out": [question.text for question in demo.left_out],
        "metrics": {metric: demo.interval(metric)._asdict() for metric in METRICS},
        "queries": [
            {
                "question": record.question,
                "style": question.style,
                "expected": list(
                    (record.reference and record.reference.reference_context_ids) or ()
                ),
                "retrieved": [chunk.id for chunk in record.chunks()],
                "scores": {name: result.value for name, result in record.scores.items()},
            }
            for record, question in zip(demo.records, demo.questions, strict=True)
        ],
    }
