"""The formulas: pure functions from verdicts to a number, each in one place."""
