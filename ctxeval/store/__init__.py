"""Where records, runs and judgements are kept: SQLite on one machine, PostgreSQL for teams."""
