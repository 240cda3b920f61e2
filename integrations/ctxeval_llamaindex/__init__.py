"""ctxeval for LlamaIndex: evaluators that keep node ids, and capture at query time."""
