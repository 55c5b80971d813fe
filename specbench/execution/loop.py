"""The event loop that all our processes run on."""

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it is installed; None leaves it to asyncio."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
