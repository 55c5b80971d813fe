"""A load is hung when nothing moves, however long it takes when something does."""

import asyncio

import pytest

from specbench.execution.guard import guarded
from specbench.execution.stall import Pace, Stall


def test_progress() -> None:
    reads = [0]
    pace = Pace(lambda: reads[0])
    assert pace.moved(), "nothing to wait for"
    pace.begin()
    assert not pace.moved()
    reads[0] = 3
    assert pace.moved()
    assert not pace.moved()
    reads[0] = 1  # another request ended, and its reads are no longer counted
    assert not pace.moved()
    reads[0] = 2
    assert pace.moved()
    pace.begin()
    pace.end(given_up=True)
    assert not pace.moved(), "what we gave up is no progress"
    pace.end(given_up=False)
    assert pace.moved()


async def scene(moves: list[bool], seconds: float) -> str:
    stall = Stall(0.2)
    stall.watch(lambda: moves.pop(0) if len(moves) > 1 else moves[0])
    return await guarded(asyncio.sleep(seconds), None, stall)


def test_a_load_that_moves_may_take_long() -> None:
    assert asyncio.run(scene([True], 0.8)) == "ended"


def test_a_load_that_does_not_move_is_hung() -> None:
    assert asyncio.run(scene([True, False], 60)) == "hung"


def test_one_that_hangs_beside_one_that_has_nothing_to_do() -> None:
    async def both() -> str:
        stall = Stall(0.1)
        stall.watch(lambda: True)
        stall.watch(lambda: False)
        return await guarded(asyncio.sleep(60), None, stall)

    assert asyncio.run(both()) == "hung"


def test_what_the_load_raises_is_raised() -> None:
    async def broken() -> None:
        raise ValueError("mine")

    async def run() -> str:
        return await guarded(broken(), None, Stall(60))

    with pytest.raises(ValueError, match="mine"):
        asyncio.run(run())


def test_death_goes_before() -> None:
    async def run() -> str:
        async def dead() -> int:
            return 1

        return await guarded(asyncio.sleep(60), asyncio.create_task(dead()), Stall(60))

    assert asyncio.run(run()) == "died"


def test_the_sentence() -> None:
    error = Stall(300).error(("last",))
    assert (error.kind, error.log_tail) == ("server_hung", ("last",))
    assert "for 300 s (stall_timeout_s)" in error.cause
