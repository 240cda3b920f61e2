"""Texts that want to run, to break out or to steer whoever shows them."""

from ctxeval import Chunk, ContextRecall, Evaluation, QueryRecord, Recorder, Retrieval, TextJudge
from ctxeval.metrics import RecallAtK
from ctxeval.testing import ScriptedLLM

HOSTILE = {
    "script": "<script>alert('run')</script>",
    "handler": '"><img src=x onerror=alert(1)><svg/onload=alert(2)>',
    "cell": "</td></tr></table></details></section><h1>Broken out</h1>",
    "template": "{{ 7 * 7 }} {% for x in y %} {# hidden #} ${6*6} #{5*5}",
    "style": "</style><style>* { display: none !important }</style>",
    "comment": "<!-- --><![CDATA[ <plaintext> <xmp> <textarea>",
    "link": '<a href="javascript:alert(3)">click</a>[x](javascript:alert(4))',
    "bidi": "safe \u202egnp.exe\u202c \u2066isolated\u2069 \u061cmark",
    "nul": "before\0after \ufffe \x85 \u2028 \u2029 end",
    "ansi": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \x1b]8;;http://x\x1b\\link",
    "markup": "[bold red]rich[/] [link=http://x]y[/link] :smile: \\[x]",
    "surrogate": "half \ud800 a pair \udfff",
    "megabyte": "x" * 1_000_000,
    "blank": " " * 1_000_000 + "end",
    "marks": "e" + "\u0301" * 5_000,
    "formula": '=HYPERLINK("http://x","y") $\\frac{1}{2}$ `code` **bold**',
}


def hostile_run() -> Evaluation:
    """Capture queries whose every text is hostile."""
    references, records = [], []
    for n, text in enumerate(HOSTILE.values()):
        references.append(
            {
                "id": str(n),
                "user_input": text,
                "reference": f"{text}. {text}",
                "reference_contexts": [text],
                "reference_context_ids": [text],
            }
        )
        chunks = tuple(
            Chunk(rank, one, one, one, metadata={one: one})
            for rank, one in enumerate((text, *list(HOSTILE.values())[:3]))
        )
        error = text if n % 2 else ""
        stages = [
            Retrieval(text, chunks, text),
            Retrieval(text, () if error else chunks, text, "rerank", order=1, error=error),
        ]
        records.append(QueryRecord(text, text, text, "ok", stages, metadata={"ctxeval_id": str(n)}))
    llm = ScriptedLLM(
        claims=lambda reference: [reference[:200], "no"],
        supported=lambda claim, texts: [0] if claim != "no" else [],
    )
    metrics = [
        *("id_based_context_recall", "ndcg@10", ContextRecall(llm, repeats=3)),
        RecallAtK(3, judge=TextJudge(distance_measure=lambda a, b: float(a == b), threshold=1.0)),
    ]
    recorder = Recorder(metrics, references)
    for n, record in enumerate(records):
        recorder.submit(n, n, lambda record=record: record)
    recorder.flush()
    return recorder.evaluation()
