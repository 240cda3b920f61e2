"""ctxeval for Ray: score data that outgrows one machine, by batches of Arrow."""

from __future__ import annotations

try:
    from ctxeval_ray.dataset import score_dataset
except ModuleNotFoundError as error:
    if error.name not in ("ray", "pandas", "pyarrow"):
        raise
    raise ModuleNotFoundError(
        "ctxeval_ray needs Ray with its data library: pip install 'ctxeval[ray]'", name=error.name
    ) from error

__all__ = ["score_dataset"]
