"""Queries as HTML: every word and number is there, and hostile text is only text."""

import html

import pytest

import ctxeval
from ctxeval import Sample
from ctxeval.report.viewing import view_of_sample

pytest.importorskip("jinja2")

from ctxeval.report.html import render_queries


def view(**fields):
    sample = Sample(**{"user_input": "q", **fields})
    expected = sample.reference_context_ids
    return view_of_sample(sample, ctxeval.score(sample) if expected else {})


def test_verdicts_ids_and_numbers_are_words():
    shown = render_queries(
        [view(retrieved_context_ids=["a", "b"], reference_context_ids=["b", "c"])]
    )
    for word in ("relevant", "not relevant", "found", "missing", "0.500", "rank 2", "ndcg@10"):
        assert word in shown


def test_markup_in_a_text_stays_text():
    hostile = "<script>alert(1)</script></td><img src=x onerror=alert(1)>{{ 7 * 7 }}{% raw %}"
    shown = render_queries(
        [
            view(
                user_input=hostile,
                response=hostile,
                reference=hostile,
                retrieved_contexts=[hostile],
                retrieved_context_ids=[hostile],
                reference_context_ids=[hostile],
            )
        ]
    )
    assert html.escape(hostile) in shown
    assert "<script" not in shown
    assert "<img" not in shown


def test_what_steers_a_reader_is_taken_out():
    shown = render_queries([view(retrieved_contexts=["a\0b\x1b[31m\u202ec\ud800"])])
    assert "a�b�[31m�c�" in shown
    shown.encode()


def test_what_is_left_out_is_counted():
    many = [view(user_input=f"q{n}", retrieved_context_ids=list(range(15))) for n in range(30)]
    shown = render_queries(many)
    assert "5 more chunks" in shown
    assert "10 more queries" in shown
    assert len(render_queries(many, size=20_000).encode()) <= 20_000


def test_a_text_of_a_megabyte_is_cut_and_its_length_told():
    shown = render_queries([view(retrieved_contexts=["x" * 1_000_000])])
    assert "1,000,000 characters" in shown
    assert len(shown) < 10_000


def test_relevant_chunks_are_shown_however_far_behind():
    found = view(retrieved_context_ids=list(range(40)), reference_context_ids=[29, 33])
    shown = render_queries([found])
    assert "<bdi>29</bdi>" in shown
    assert "28 more chunks" in shown
