"""Similarity by embedding vectors that the user's own model makes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.forking import lock_for

EmbedFunction = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""From texts to as many vectors of one length."""


class EmbeddingSimilarity:
    """Cosine similarity of embedding vectors; negative cosines count as 0.

    Each distinct text is embedded once, in as few batches as possible.

    Args:
        embed: A function from a list of texts to a list of vectors, or an embedding
            object of LangChain (`embed_documents`) or LlamaIndex
            (`get_text_embedding_batch`).
        max_texts: How many vectors are kept at most.

    Raises:
        InvalidArgumentError: `embed` is neither, or it returned something else
            than one finite vector per text.

    Examples:
        >>> same = EmbeddingSimilarity(lambda texts: [[len(text), 1.0] for text in texts])
        >>> round(same("abc", "xyz"), 6)
        1.0
    """

    def __init__(self, embed: EmbedFunction | Any, max_texts: int = 100_000) -> None:
        """See the class."""
        self._given = embed
        self._embed = batch_function(embed)
        self._lock = lock_for(self)
        self._max_texts = max_texts
        self._vectors: OrderedDict[str, Any] = OrderedDict()
        kind = embed if callable(embed) and hasattr(embed, "__qualname__") else type(embed)
        model = getattr(embed, "model_name", None) or getattr(embed, "model", None)
        self.name = f"embedding({kind.__qualname__}{f' {model}' if model else ''})"

    def prepare(self, texts: Iterable[str]) -> None:
        """Embed in one batch those of the texts that are not yet embedded.

        Of all vectors, those asked for longest ago are forgotten above `max_texts`.
        """
        wanted = dict.fromkeys(texts)
        with self._lock:
            missing = [text for text in wanted if text not in self._vectors]
            if not missing:
                return
            for text in wanted.keys() - set(missing):
                self._vectors.move_to_end(text)
            self._vectors.update(zip(missing, self._unit_vectors(missing), strict=True))
            while len(self._vectors) > max(self._max_texts, len(wanted)):
                self._vectors.popitem(last=False)

    def __call__(self, reference: str, chunk: str) -> float:
        """Compare two texts.

        Returns:
            The cosine in [0, 1]; 0 where it is negative or a vector is zero.
        """
        if reference == chunk:
            return 1.0
        with self._lock:
            self.prepare((reference, chunk))
            one, other = self._vectors[reference], self._vectors[chunk]
        if one.shape != other.shape:
            raise InvalidArgumentError(
                f"embed: it returned vectors of {len(one)} and of {len(other)} numbers: all of a "
                "model's have one length"
            )
        # Rounded, since the product of equal unit vectors may miss 1 by the last digit.
        return min(1.0, max(0.0, round(float(one @ other), 12)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by what embeds; the vectors are made anew."""
        return type(self), (self._given, self._max_texts)

    def _unit_vectors(self, texts: list[str]) -> Any:
        import numpy as np  # here, so that `import ctxeval` stays quick

        given = self._embed(texts)  # what the user's own function raises is the user's
        try:
            vectors = np.asarray(given, dtype=float)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"embed: it must return one vector of numbers per text, but: {error}"
            ) from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise InvalidArgumentError(
                f"embed: it returned an array of shape {vectors.shape} for {len(texts)} texts: "
                "it must return one vector per text"
            )
        if not np.isfinite(vectors).all():
            bad = texts[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
            raise InvalidArgumentError(f"embed: the vector of {short(bad)} holds NaN or infinity")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths == 0, 1, lengths)


def batch_function(embed: Any) -> EmbedFunction:
    """Give the function from texts to vectors that is meant, or that an object has.

    Raises:
        InvalidArgumentError: There is none.
    """
    for method in ("embed_documents", "get_text_embedding_batch"):
        if hasattr(embed, method):
            return getattr(embed, method)  # type: ignore[no-any-return]  # duck-typed
    if callable(embed):
        return embed  # type: ignore[no-any-return]  # checked when it answers
    raise InvalidArgumentError(
        f"embed: {short(embed)} is no function from texts to vectors and has neither "
        "embed_documents nor get_text_embedding_batch"
    )
