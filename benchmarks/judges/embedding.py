"""A small sentence model on this machine, from its files: the mean of its tokens' vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

LONGEST = 256
"""Tokens of a text that are read."""

BATCH = 32


def sentence_model(folder: Path) -> Callable[[Sequence[str]], list[list[float]]]:
    """Read `model.onnx` and `tokenizer.json`; needs onnxruntime and tokenizers."""
    import onnxruntime
    import tokenizers

    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()
    names = {one.name for one in session.get_inputs()}

    def embed(texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
        for start in range(0, len(texts), BATCH):
            read = tokenizer.encode_batch([texts[n] for n in order[start : start + BATCH]])
            given = {
                "input_ids": np.array([one.ids for one in read], np.int64),
                "attention_mask": np.array([one.attention_mask for one in read], np.int64),
                "token_type_ids": np.array([one.type_ids for one in read], np.int64),
            }
            told = session.run(None, {name: given[name] for name in names})[0]
            if told.ndim == 3:
                mask = given["attention_mask"][:, :, None]
                told = (told * mask).sum(axis=1) / mask.sum(axis=1)
            vectors += told.tolist()
        return [vector for _, vector in sorted(zip(order, vectors, strict=True))]

    return embed
