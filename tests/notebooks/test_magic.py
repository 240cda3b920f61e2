"""`%ctxeval` in a real kernel: what is shown below which cell, and how often."""

from __future__ import annotations

import re

import pytest
from notebook_cells import CHAIN, JUDGE, QUERY_ENGINE
from openai_server import NO_CREDIT, OpenAIServer

from ctxeval.testing import ScriptedLLM

for needed in ("ipykernel", "jinja2", "langchain_core", "pandas", "rich", "scipy"):
    pytest.importorskip(needed)

QUESTION = "Can I send it back?"
ASK = f"chain.invoke({QUESTION!r});"


def of_kind(messages, *kinds):
    return [one for one in messages if one.kind in kinds]


@pytest.fixture(scope="module")
def loaded(running):
    """A kernel with a chain and a judge, in which the extension is loaded."""
    keyless = "import os; os.environ.pop('OPENAI_API_KEY', None);"
    for cell in (keyless, CHAIN, JUDGE, "%load_ext ctxeval"):
        assert running.run(cell) == []
    return running


@pytest.fixture
def kernel(loaded):
    """The same, with tracing on."""
    loaded.run("t = %ctxeval on --references references")
    yield loaded
    loaded.run("%ctxeval off")


def test_a_cell_that_retrieves_shows_one_output_at_its_end(kernel):
    shown = kernel.run(f"{ASK}\nprint('the end')")
    assert [one.kind for one in shown] == ["stream", "display_data"]
    html = shown[1].html
    for word in (QUESTION, "We ship within two days.", "Within 30 days.", "faq-9", "reciprocal"):
        assert word in html
    rows = re.findall(r'<th scope="row" class="number">(\d)<', html)
    assert rows == ["1", "2"]
    assert html.index("not relevant") < html.index(">relevant<")


def test_the_same_stands_there_as_text(kernel):
    text = kernel.run(ASK)[0].text
    for word in (QUESTION, "not relevant", "faq-7", "missing", "faq-9", "0.500", "ndcg@10"):
        assert word in text
    assert "<" not in text
    assert "\x1b" not in text


def test_a_cell_that_does_not_retrieve_shows_nothing(kernel):
    assert kernel.run("x = 1") == []
    assert kernel.run("") == []


def test_all_queries_of_a_cell_are_in_one_output(kernel):
    shown = kernel.run("for n in range(3): chain.invoke(f'question {n}')")
    assert len(shown) == 1
    assert [f"question {n}" in shown[0].html for n in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(f"await chain.ainvoke({QUESTION!r});", id="await"),
        pytest.param(
            "await asyncio.gather(*(chain.ainvoke(one) for one in ('a', 'b')));", id="gather"
        ),
        pytest.param(f"async for part in chain.astream({QUESTION!r}): pass", id="async for"),
        pytest.param(f"await asyncio.to_thread(chain.invoke, {QUESTION!r});", id="to_thread"),
        pytest.param(
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(4) as pool: _ = list(pool.map(chain.invoke, 'abcd'))",
            id="threads of one's own",
        ),
        pytest.param(f"get_ipython().run_cell({ASK!r})\n{ASK}", id="a cell in a cell"),
        pytest.param(f"%%time\n{ASK}", id="%%time"),
        pytest.param(f"%%capture\n{ASK}", id="%%capture"),
        pytest.param(f"{ASK}\n1 / 0", id="an error"),
    ],
)
def test_it_is_shown_once_however_the_cell_runs(kernel, cell):
    shown = kernel.run(cell)
    assert len(of_kind(shown, "display_data")) == 1
    assert shown[-1].kind == "display_data"


def test_an_interrupted_cell_shows_what_it_had_retrieved(kernel):
    import threading

    interrupt = threading.Timer(1.0, kernel.interrupt)
    interrupt.start()
    shown = kernel.run(f"{ASK}\ntime.sleep(60)")
    interrupt.join()
    assert [one.kind for one in shown] == ["error", "display_data"]
    assert len(of_kind(kernel.run(ASK), "display_data")) == 1


def test_a_query_that_ends_after_its_cell_shows_below_the_next_one(kernel):
    begin = "async def later():\n    await asyncio.sleep(0.3)\n    await chain.ainvoke('late')\n"
    assert of_kind(kernel.run(f"{begin}task = asyncio.create_task(later())"), "display_data") == []
    shown = of_kind(kernel.run("await asyncio.sleep(0.6)"), "display_data")
    assert ["late" in one.html for one in shown] == [True]


def test_of_many_queries_20_are_shown_and_all_are_there(kernel):
    shown = kernel.run("for n in range(1000): chain.invoke(f'question {n}')")
    assert len(shown) == 1
    assert "980 more queries" in shown[0].html
    assert "980 more queries" in shown[0].text
    assert len(shown[0].html) <= 300_000
    assert kernel.value("len(t.records)") == "1000"


def test_off_shows_no_more(kernel):
    assert "ctxeval is off" in kernel.run("%ctxeval off")[0].text
    assert kernel.run(ASK) == []


def test_a_second_on_begins_anew(kernel):
    kernel.run(ASK)
    said = kernel.run("%ctxeval on --metrics hit_rate@1 --references references")
    assert "1 query" in said[0].text
    shown = kernel.run(ASK)
    assert "hit_rate@1" in shown[0].html
    assert "ndcg@10" not in shown[0].html
    assert kernel.value("len(t.records)") == "1"


def test_the_report_holds_all_cells(kernel):
    kernel.run("%ctxeval on --references references --metrics ndcg@10 hit_rate@1")
    kernel.run(ASK)
    kernel.run("chain.invoke('no reference');")
    shown = kernel.run("%ctxeval report")
    assert [one.kind for one in shown] == ["display_data"]
    for form in (shown[0].html, shown[0].text):
        for word in (QUESTION, "no reference", "95 % interval", "0.387", "50 %", "skipped"):
            assert word in form
        assert form.index(QUESTION) < form.index("no reference has this question")


def test_the_report_goes_to_a_file_too(kernel, tmp_path):
    pytest.importorskip("matplotlib")
    kernel.run(ASK)
    (said,) = kernel.run(f"%ctxeval report {tmp_path / 'report.html'}")
    assert "report.html" in said.text
    assert QUESTION in (tmp_path / "report.html").read_text()
    (said,) = kernel.run(f"%ctxeval report {tmp_path / 'nowhere' / 'report.html'}")
    assert "UsageError: path: " in said.text


def test_an_inner_block_has_its_own_records(kernel):
    cell = f"import ctxeval\nwith ctxeval.trace(references=references) as inner:\n    {ASK}\ninner"
    shown = kernel.run(cell)
    assert [one.kind for one in shown] == ["execute_result"]
    assert "faq-9" in shown[0].html
    assert "faq-9" in shown[0].text
    assert kernel.value("len(t.records)") == "0"


def test_a_record_shows_itself(kernel):
    kernel.run(ASK)
    (shown,) = kernel.run("t.records[0]")
    assert shown.kind == "execute_result"
    assert "faq-9" in shown.html
    assert "not relevant by id" in shown.text


def test_llamaindex_is_captured_too(kernel):
    pytest.importorskip("llama_index.core")
    kernel.run(QUERY_ENGINE)
    shown = of_kind(kernel.run(f"engine.query({QUESTION!r});"), "display_data")
    assert len(shown) == 1
    for word in ("retrieve", "prompt", "faq-2", "0.9", "not relevant"):
        assert word in shown[0].html


def test_scores_by_a_model_update_the_same_output(kernel):
    kernel.run("%ctxeval on --references references --model judge")
    asked = f"for question in ({QUESTION!r}, 'b', 'c', 'd'): chain.invoke(question)"
    messages = kernel.run(asked, late=4)
    assert {one.kind for one in messages} == {"display_data", "update_display_data"}
    shown, *updates = messages
    assert "is being judged" in shown.html
    assert {one.output for one in messages} == {shown.output}
    assert 1 <= len(updates) <= 16
    gaps = [after.at - before.at for before, after in zip(messages, updates, strict=False)]
    assert min(gaps) > 0.24
    assert "is being judged" not in updates[-1].html
    assert "context_recall" in updates[-1].html
    assert "by script" in updates[-1].html


def test_updates_are_sent_again_in_the_name_of_the_cell_that_runs(kernel):
    # nbclient hears only that cell's messages: what came in between would be lost.
    kernel.run("%ctxeval on --references references --model judge")
    shown = kernel.run("chain.invoke('asked but once');", late=3)
    (again,) = (one for one in kernel.run("1;", others=True) if one.output == shown[0].output)
    assert again.kind == "update_display_data"
    assert again.request == kernel.request
    assert again.html == shown[-1].html


def test_a_model_behind_an_endpoint_judges(kernel):
    pytest.importorskip("openai")
    goods = "You may return goods within 30 days."
    with OpenAIServer(ScriptedLLM(relevant={goods})) as server:
        model = f"--model tiny --base-url {server.url}"
        kernel.run(f"%ctxeval on --metrics context_relevance {model}")
        kernel.run(ASK)
        (shown,) = kernel.run("%ctxeval report")
    assert "by model, for the question" in shown.text
    assert "0.500" in shown.html


def test_an_endpoint_that_gives_no_reply_is_told_where_its_score_would_stand(kernel):
    pytest.importorskip("openai")
    with OpenAIServer(replies=[NO_CREDIT] * 9) as server:
        model = f"--model tiny --base-url {server.url}"
        kernel.run(f"%ctxeval on --metrics context_relevance {model}")
        kernel.run(ASK)
        (shown,) = kernel.run("%ctxeval report")
    assert "failed" in shown.text
    assert "credit" in shown.html


def test_what_could_not_be_judged_stands_before_the_worst(kernel):
    pytest.importorskip("openai")
    with OpenAIServer(ScriptedLLM(), replies=[NO_CREDIT]) as server:
        model = f"--model tiny --base-url {server.url}"
        kernel.run(f"%ctxeval on --metrics context_relevance {model}")
        kernel.run("chain.invoke('this one fails');", late=2)
        kernel.run("chain.invoke('this one is bad');", late=2)
        (shown,) = kernel.run("%ctxeval report")
    assert "What could not be judged first, then the worst" in shown.text
    assert shown.text.index("this one fails") < shown.text.index("this one is bad")


def test_queries_that_are_not_shown_update_nothing(kernel):
    kernel.run("%ctxeval on --references references --model judge")
    shown = kernel.run("for n in range(60): chain.invoke(f'unseen {n}')", late=5)
    assert len({one.html for one in shown}) == len(shown)
    assert "is being judged" not in shown[-1].html


def test_what_goes_wrong_is_one_line(kernel):
    broken = "import IPython.display as d; real = d.display; d.display = None"
    (said,) = kernel.run(f"{broken}\n{ASK}")
    assert said.text.startswith("ctxeval: what was retrieved could not be shown: TypeError")
    assert said.text.count("\n") == 1
    assert len(kernel.run(f"d.display = real\n{ASK}")) == 1


def test_nothing_is_written_by_threads(kernel):
    kernel.run("%ctxeval on --references references --model judge")
    cell = "chain.invoke('no reference has this question'); chain.invoke({'input': 'x'});"
    assert of_kind(kernel.run(cell, late=3), "stream") == []


def test_a_block_shows_scores_by_a_model_as_they_come(kernel):
    block = "with ctxeval.trace(references=references, llm=judge) as inner:"
    messages = kernel.run(f"import ctxeval\n{block}\n    chain.invoke('e')\ninner", late=3)
    assert [one.kind for one in messages] == ["display_data", "update_display_data"]
    assert "is being judged" not in messages[-1].html
    assert [one.kind for one in of_kind(kernel.run("inner"), "execute_result")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("on --metrics ndgc@10", "did you mean 'ndcg@10'"),
        ("on --metrics context_recall", "judged by a model: add --model NAME"),
        ("on --model tiny", "set OPENAI_API_KEY, or add --base-url URL"),
        ("on --metrics", "expected at least one argument"),
        ("on --metrc ndcg@10", "did you mean '--metrics'"),
        ("on --references nowhere.jsonl", "No such file"),
        ("on --references chain", "references"),
        ("on --model chain", "as_llm"),
        ("on --base-url http://localhost:1", "add --model NAME"),
        ("on --model tiny --base-url localhost", "http://"),
        ("on 'unbalanced", "No closing quotation"),
        ("onn", "did you mean 'on'"),
        ("off now", "leave it out"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(loaded, line, said):
    (message,) = loaded.run(f"%ctxeval {line}")
    assert message.content["name"] == "stderr"
    assert message.text.startswith("UsageError: ")
    assert message.text.count("\n") == 1
    assert said in message.text


def test_metrics_are_named_apart_or_with_commas_or_not_at_all(loaded):
    for named, shown in (
        ("hit_rate@1 mrr", "hit_rate@1, reciprocal_rank"),
        ("hit_rate@1,mrr", "hit_rate@1, reciprocal_rank"),
        ("auto", "auto"),
    ):
        said = loaded.run(f"%ctxeval on --references references --metrics {named}")[-1].text
        assert f"Metrics: {shown}; 1 reference." in said
    loaded.run("%ctxeval off")


def test_without_a_word_it_says_what_there_is(loaded):
    text = loaded.run("%ctxeval")[0].text
    for word in ("on", "off", "report", "--metrics", "--references", "--model", "--base-url"):
        assert word in text


def test_the_extension_can_be_loaded_anew_and_taken_out(loaded):
    loaded.run("%ctxeval on")
    loaded.run("%reload_ext ctxeval")
    assert loaded.run(ASK) == []
    assert "nothing was captured" in loaded.run("%ctxeval report")[0].text
    loaded.run("%ctxeval on")
    assert len(loaded.run(ASK)) == 1
    loaded.run("%unload_ext ctxeval")
    assert "not found" in loaded.run("%ctxeval on")[0].text
    assert loaded.run(ASK) == []
    loaded.run("%load_ext ctxeval")
