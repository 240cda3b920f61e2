"""ctxeval for LangChain."""
