"""A load under guard: it ends, or its server dies, or nothing moves any more."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal

from specbench.execution.stall import Stall

End = Literal["ended", "died", "hung"]


async def guarded(work: Coroutine[Any, Any, None], exited: "asyncio.Task[Any] | None", stall: Stall) -> End:
    """How it ended; unless the server died, what the load itself raised is raised. Whatever comes, the load is over then."""
    load, stalled = asyncio.create_task(work), asyncio.create_task(stall.come())
    dying = {exited} if exited is not None else set()
    hung = died = False
    try:
        await asyncio.wait({load, stalled, *dying}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        died = exited is not None and exited.done()
        hung = stalled.done() and not load.done()
        stalled.cancel()
        if not load.done():
            load.cancel()
            await asyncio.wait({load})
        load.cancelled() or load.exception()  # heard here: what counts is raised below, or is already on its way
    if died or hung:
        return "died" if died else "hung"
    load.result()
    return "ended"
