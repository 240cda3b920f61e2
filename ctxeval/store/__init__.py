"""Where records, runs and judgements are kept: SQLite on one machine, PostgreSQL for teams."""

from ctxeval.store.store import Store

__all__ = ["Store"]
