"""The only module that reads a clock."""

import datetime
import time

from specbench.units import Second


def now_s() -> Second:
    """Monotonic seconds from an arbitrary origin; differences only."""
    return time.monotonic()


def wall_s() -> Second:
    """Seconds since the Unix epoch, UTC. May step; never used for a latency."""
    return time.time()


def utc_text(at_s: Second | None = None) -> str:
    """`2026-11-29T15:36:47Z` for an epoch time, or for now."""
    moment = datetime.datetime.fromtimestamp(wall_s() if at_s is None else at_s, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_fine_text() -> str:
    """`2026-11-29T15:36:47.123456Z`: now, for spans that are compared with one another."""
    return datetime.datetime.fromtimestamp(wall_s(), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def utc_stamp() -> str:
    """`20261129-153647`: now, as part of a folder's name."""
    return datetime.datetime.fromtimestamp(wall_s(), datetime.UTC).strftime("%Y%m%d-%H%M%S")
