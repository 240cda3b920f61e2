"""Whatever a provider's package raises, it is read alike: status, code, and what it means."""

import pytest

from ctxeval import (
    AuthenticationError,
    Completion,
    ContextOverflowError,
    Fault,
    JudgeError,
    QuotaError,
    Usage,
)


def raised(message="no", kind=Exception, cause=None, **carried):
    error = kind(message)
    vars(error).update(carried)
    error.__cause__ = cause
    return error


BOTO = {"ResponseMetadata": {"HTTPStatusCode": 429}, "Error": {"Code": "ThrottlingException"}}


@pytest.mark.parametrize(
    ("error", "status", "passing"),
    [
        (raised(status_code=503), 503, True),
        (raised(code=400), 400, False),
        (raised(code="invalid"), None, False),
        (raised(response=BOTO), 429, True),
        (raised(cause=raised(status_code=429)), 429, True),
        (raised(status_code=500, cause=raised(status_code=401)), 500, True),
        (raised(kind=TimeoutError), None, True),
        (raised(status_code=True), None, False),
    ],
)
def test_the_status_is_found_where_the_package_puts_it(error, status, passing):
    fault = Fault(error)
    assert (fault.status, fault.passing) == (status, passing)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (raised("the context limit is 8192 tokens", status_code=400), ContextOverflowError),
        (raised("9000 exceeds the slot's n_ctx", status_code=500), ContextOverflowError),
        (raised("too many input tokens"), ContextOverflowError),
        (raised(code="context_length_exceeded", status_code=400), ContextOverflowError),
        (raised("context window per minute", status_code=429), JudgeError),
        (raised("maximum context", kind=ConnectionError), JudgeError),
        (raised(cause=raised("nobody", status_code=401)), AuthenticationError),
        (raised(body={"error": {"type": "insufficient_quota"}}, status_code=429), QuotaError),
    ],
)
def test_the_error_says_what_to_mend(error, expected):
    assert type(Fault(error).as_error("Model")) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (raised("format?", status_code=400), True),
        (raised("format?", status_code=422), True),
        (raised("unexpected keyword argument", kind=TypeError), True),
        (raised("format?", status_code=404), False),
        (raised("broken", kind=RuntimeError), False),
        (raised("prompt too large", status_code=400), False),
        (raised("filtered", status_code=400, code="content_filter"), False),
    ],
)
def test_another_way_is_tried_only_where_it_may_help(error, expected):
    assert Fault(error).of_the_way is expected


def test_a_filter_is_an_answer():
    fault = Fault(raised("not with us", status_code=400, code="content_policy_violation"))
    usage = Usage(requests=1, unreported=1)
    assert fault.completion == Completion("not with us", usage, "content_filter")


def test_what_is_said_is_one_line_without_keys():
    key = "sk-proj-abcdef123456"
    behind = raised(f"for https://me:geheim@host/v1, {key}", status_code=401)
    fault = Fault(raised(f"refused {key}\n\x1b[31mat https://me:geheim@host/v1", cause=behind))
    said = str(fault.as_error("Model"))
    assert said.startswith("Model failed: Exception: refused [key] ")
    assert not any(part in said for part in ("abcdef", "geheim", "\n", "\x1b"))
    assert fault.cause is None


def test_an_error_without_keys_is_the_cause():
    error = raised("no")
    assert Fault(error).cause is error


@pytest.mark.parametrize(
    ("said", "expected"),
    [(None, "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("odd", "odd")],
)
def test_the_reason_to_stop_is_put_in_our_words(said, expected):
    assert Completion("text", finish_reason=said).finish_reason == expected
