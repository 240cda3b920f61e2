from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ctxeval import EmbeddingSimilarity, InvalidArgumentError, NonLLMContextRecall, Sample
from ctxeval.metrics import NonLLMContextPrecision

VECTORS = {
    "east": [1.0, 0.0],
    "far east": [7.0, 0.0],
    "north": [0.0, 1.0],
    "north-east": [1.0, 1.0],
    "west": [-2.0, 0.0],
    "nowhere": [0.0, 0.0],
    "three of five": [3.0, 4.0],
}


class Recording:
    """A table of vectors that remembers what it was asked."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.batches.append(list(texts))
        return [VECTORS[text] for text in texts]


def sample_of(retrieved: Sequence[str], references: Sequence[str]) -> Sample:
    return Sample(retrieved_contexts=retrieved, reference_contexts=references)


@pytest.mark.parametrize(
    ("one", "other", "cosine"),
    [
        pytest.param("east", "far east", 1.0, id="parallel"),
        pytest.param("east", "north", 0.0, id="at a right angle"),
        pytest.param("east", "north-east", math.sqrt(0.5), id="at 45 degrees"),
        pytest.param("east", "three of five", 0.6, id="3/5"),
        pytest.param("east", "west", 0.0, id="opposite: no less than 0"),
        pytest.param("east", "nowhere", 0.0, id="a vector of zeros"),
        pytest.param("nowhere", "nowhere", 1.0, id="the same text, whatever its vector"),
    ],
)
def test_cosine_by_hand(one: str, other: str, cosine: float) -> None:
    similarity = EmbeddingSimilarity(Recording())
    assert similarity(one, other) == pytest.approx(cosine, abs=1e-12)
    assert similarity(other, one) == similarity(one, other)
    assert 0 <= similarity(one, other) <= 1


def test_each_distinct_text_is_embedded_once_in_one_batch() -> None:
    recording = Recording()
    metric = NonLLMContextRecall(EmbeddingSimilarity(recording), threshold=0.7)
    results = metric.batch_score(
        [
            sample_of(["north", "east"], ["far east", "west"]),
            sample_of(["north-east", " ", "north"], ["east", ""]),
            sample_of([], ["nowhere"]),
        ]
    )
    assert [result.value for result in results] == [0.5, 0.5, 0.0]
    assert len(recording.batches) == 1
    assert sorted(recording.batches[0]) == ["east", "far east", "north", "north-east", "west"]
    metric.score(sample_of(["north"], ["east", "nowhere"]))
    assert recording.batches[1:] == [["nowhere"]]


def test_metrics_share_one_embedding() -> None:
    recording = Recording()
    similarity = EmbeddingSimilarity(recording)
    one, two = NonLLMContextRecall(similarity, 0.9), NonLLMContextPrecision(similarity, 0.7)
    assert one.score(sample_of(["north-east"], ["east"])).value == 0
    assert two.score(sample_of(["north-east"], ["east"])).value == 1
    assert len(recording.batches) == 1


def test_the_threshold_is_included() -> None:
    similarity = EmbeddingSimilarity(Recording())
    assert NonLLMContextRecall(similarity, 0.0).score(sample_of(["west"], ["east"])).value == 1
    assert NonLLMContextRecall(similarity, 1.0).score(sample_of(["far east"], ["east"])).value == 1


def test_the_oldest_vectors_are_forgotten() -> None:
    recording = Recording()
    similarity = EmbeddingSimilarity(recording, max_texts=3)
    similarity.prepare(["east", "north"])
    similarity.prepare(["west"])
    similarity.prepare(["east", "nowhere"])  # keeps east and west, forgets north
    similarity.prepare(["east", "west"])
    assert recording.batches == [["east", "north"], ["west"], ["nowhere"]]
    similarity.prepare(["north"])
    assert recording.batches[3:] == [["north"]]


def test_what_is_needed_at_once_is_kept_at_once() -> None:
    recording = Recording()
    similarity = EmbeddingSimilarity(recording, max_texts=1)
    result = NonLLMContextRecall(similarity, 0.5).score(
        sample_of(["north", "north-east"], ["east", "west"])
    )
    assert result.value == 0.5
    assert len(recording.batches) == 1


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        pytest.param(lambda texts: [[1.0]] * 3, r"shape \(3, 1\) for 2 texts", id="too many"),
        pytest.param(lambda texts: [[1.0]], r"shape \(1, 1\) for 2 texts", id="too few"),
        pytest.param(lambda texts: [], r"shape \(0,\) for 2 texts", id="none"),
        pytest.param(lambda texts: [[], []], r"shape \(2, 0\) for 2 texts", id="no numbers"),
        pytest.param(lambda texts: [1.0, 2.0], r"shape \(2,\) for 2 texts", id="numbers"),
        pytest.param(lambda texts: [[[1.0]]] * 2, r"shape \(2, 1, 1\) for 2", id="too deep"),
        pytest.param(lambda texts: None, "one vector", id="None"),
        pytest.param(lambda texts: [[1.0], [1.0, 2.0]], "one vector of numbers", id="ragged"),
        pytest.param(lambda texts: [["a"], ["b"]], "one vector of numbers", id="words"),
        pytest.param(
            lambda texts: [[1.0, 0.0], [math.nan, 0.0]], "vector of 'chunk' holds NaN", id="NaN"
        ),
        pytest.param(
            lambda texts: [[math.inf], [1.0]], "vector of 'reference' holds NaN or inf", id="inf"
        ),
    ],
)
def test_what_is_no_vector_per_text(embed: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^embed: .*{message}"):
        EmbeddingSimilarity(embed)("reference", "chunk")


@pytest.mark.parametrize("error", [RuntimeError, ValueError, TypeError])
def test_what_the_users_function_raises_is_the_users(error: type[Exception]) -> None:
    def embed(texts: Any) -> Any:
        raise error("out of memory")

    with pytest.raises(error, match=r"^out of memory$"):
        EmbeddingSimilarity(embed)("reference", "chunk")


def test_what_does_not_embed() -> None:
    with pytest.raises(InvalidArgumentError, match="embed: 'model' is no function"):
        EmbeddingSimilarity("model")


def test_arrays_are_vectors_too() -> None:
    as_array = EmbeddingSimilarity(lambda texts: np.array([VECTORS[text] for text in texts]))
    as_integers = EmbeddingSimilarity(lambda texts: [[3, 4] if t == "a" else [1, 0] for t in texts])
    assert as_array("east", "three of five") == pytest.approx(0.6, abs=1e-12)
    assert as_integers("a", "b") == pytest.approx(0.6, abs=1e-12)


class LlamaIndexLike:
    model_name = "small"

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return [VECTORS[text] for text in texts]


def test_the_signature_names_what_embeds() -> None:
    metric = NonLLMContextRecall(EmbeddingSimilarity(LlamaIndexLike()), 0.5)
    assert metric.score(sample_of(["north-east"], ["east"])).value == 1
    assert "embedding(LlamaIndexLike small)>=0.5" in metric.signature


def test_an_embedding_object_of_langchain_fits() -> None:
    embeddings = pytest.importorskip("langchain_core.embeddings", reason="langchain-core")
    fake = embeddings.DeterministicFakeEmbedding(size=64)
    similarity = EmbeddingSimilarity(fake)
    one, other = (np.array(fake.embed_query(text)) for text in ("a text", "another"))
    cosine = float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
    assert similarity("a text", "another") == pytest.approx(max(0.0, cosine), abs=1e-12)
    metric = NonLLMContextRecall(similarity, threshold=0.99)
    assert metric.score(sample_of(["a text"], ["a text", "another"])).value == 0.5
