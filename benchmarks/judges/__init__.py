"""How well models judge: wordings and modes, on pairs whose labels are known.

`python -m benchmarks.judges`; see JUDGES.md.
"""
