"""LlamaIndex's instrumentation, which is a package of its own since core 0.12.46.

It takes a small part of the time to import that `llama_index.core` takes.
"""

from __future__ import annotations

try:
    from llama_index_instrumentation import get_dispatcher
    from llama_index_instrumentation.base import BaseEvent
    from llama_index_instrumentation.dispatcher import active_instrument_tags
    from llama_index_instrumentation.event_handlers import BaseEventHandler
    from llama_index_instrumentation.span_handlers import BaseSpanHandler
except ModuleNotFoundError as error:
    if error.name != "llama_index_instrumentation":
        raise
    from llama_index.core.instrumentation import (  # type: ignore[attr-defined]  # re-exported
        get_dispatcher,  # pyright: ignore[reportPrivateImportUsage]
    )
    from llama_index.core.instrumentation.dispatcher import (  # type: ignore[attr-defined]
        active_instrument_tags,  # pyright: ignore[reportPrivateImportUsage]
    )
    from llama_index.core.instrumentation.event_handlers import BaseEventHandler
    from llama_index.core.instrumentation.events import BaseEvent
    from llama_index.core.instrumentation.span_handlers import BaseSpanHandler

__all__ = [
    "BaseEvent",
    "BaseEventHandler",
    "BaseSpanHandler",
    "active_instrument_tags",
    "get_dispatcher",
]
