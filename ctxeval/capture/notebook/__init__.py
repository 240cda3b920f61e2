"""What a notebook shows of captured queries, and when."""

from ctxeval.capture.notebook.extension import load_ipython_extension, unload_ipython_extension

__all__ = ["load_ipython_extension", "unload_ipython_extension"]
