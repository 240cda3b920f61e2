"""What a judge needs of a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ctxeval.verdicts import Usage

Message = Mapping[str, str]
"""A chat message: `{"role": "system" | "user", "content": …}`."""

Schema = Mapping[str, Any]
"""A JSON schema: every field required, no unions, no additional properties."""


_FINISH = {
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "safety": "content_filter",
}
"""Reasons to stop, as providers name them, in ctxeval's words; others are left as they are."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply.

    Attributes:
        text: What it wrote; "" where it wrote nothing.
        usage: What the call cost that was answered: refused attempts cost nothing that is told.
        finish_reason: Why it stopped: "stop", "length" (the output was cut),
            "content_filter" or "refusal" (it would not answer). What providers call
            otherwise, as "MAX_TOKENS", is put in these words.
        model: The model that answered, as the endpoint names it.

    Examples:
        >>> Completion("cut", finish_reason="MAX_TOKENS").finish_reason
        'length'
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = "stop"
    model: str = ""

    def __post_init__(self) -> None:
        """Put the reason to stop in ctxeval's words."""
        said = str(self.finish_reason or "stop").lower()  # endpoints may leave it null
        object.__setattr__(self, "finish_reason", _FINISH.get(said, said))


@runtime_checkable
class LLM(Protocol):
    """A language model that can judge. Implement it to bring your own.

    `complete` is awaited on ctxeval's own event loop (see `ctxeval.llm.loop`), many
    calls at a time: as many as an attribute `concurrency` says, 16 without one.
    """

    @property
    def identity(self) -> Mapping[str, Any]:
        """What distinguishes this model's answers from another's, and no secret.

        It enters the key under which verdicts are kept: endpoint, model, parameters.
        """
        ...

    async def complete(
        self, messages: Sequence[Message], schema: Schema, *, max_tokens: int | None = None
    ) -> Completion:
        """Answer the messages with JSON that follows the schema.

        Args:
            messages: What to answer.
            schema: What the answer should look like. The messages describe it too, so
                an endpoint without structured output may leave it aside.
            max_tokens: The cap on the output.

        Raises:
            ContextOverflowError: The messages do not fit.
            JudgeError: There is no reply, for good.
        """
        ...


@dataclass(frozen=True, slots=True)
class FirstToken:
    """How a model would begin its answer.

    Attributes:
        logprobs: The natural logarithm of the probability of each of the likeliest first
            tokens.
        usage: What the call cost that was answered: refused attempts cost nothing that is told.
        model: The model that answered, as the endpoint names it.
        refusal: Why there is no answer; "" where there is one.
    """

    logprobs: Mapping[str, float]
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    refusal: str = ""


@runtime_checkable
class FirstTokenLLM(LLM, Protocol):
    """A model that also tells the probabilities of its words, as `mode="logprob"` needs it."""

    async def first_token(self, messages: Sequence[Message]) -> FirstToken:
        """Tell how the answer to the messages would begin.

        Raises:
            ContextOverflowError: The messages do not fit.
            JudgeError: There is no reply, or none with probabilities, for good.
        """
        ...
