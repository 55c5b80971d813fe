"""What one request's record says of its time and tokens: the figures that load and analysis must agree on.

None is never zero. A request during which the system's clock was set has tokens and no times.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from specbench.records import RequestRecord
from specbench.suite import Slo
from specbench.units import PerSecond, Second

BRIDGED_S: Final = 0.1
"""A chunk may seem to come so much after the end: the kernel's clock is another one, and is slewed."""


class Stamped(Protocol):
    """A stored request, whole or lean."""

    @property
    def due_s(self) -> Second: ...
    @property
    def done_s(self) -> Second: ...
    @property
    def stepped(self) -> bool: ...
    @property
    def chunk_s(self) -> tuple[Second, ...]: ...
    @property
    def output_tokens(self) -> int | None: ...
    @property
    def verify_count(self) -> int | None: ...


def is_impossible(request: Stamped) -> bool:
    """Whether its record can't be true: damaged, or stamped by a clock that went wrong unseen. It gives no figure then."""
    due_s, done_s, chunk_s = request.due_s, request.done_s, request.chunk_s
    if done_s < due_s or due_s < 0 or (request.output_tokens or 0) < 0 or (request.verify_count or 0) < 0:
        return True
    if not chunk_s or request.stepped:
        return False
    return chunk_s[0] < due_s or chunk_s[-1] > done_s + BRIDGED_S or list(chunk_s) != sorted(chunk_s)


def tokens_of(request: RequestRecord) -> int | None:
    """Output tokens as the server counted them; None when it did not."""
    if request.output_tokens is not None:
        return request.output_tokens
    return sum(request.chunk_tokens) if request.chunk_tokens else None


def tokens_per_chunk_known(request: RequestRecord) -> bool:
    """Whether each chunk has its own count."""
    return bool(request.chunk_tokens) and len(request.chunk_tokens) == len(request.chunk_s)


def ttft_s(request: RequestRecord) -> Second | None:
    """From due, so that a request held back by the harness is not flattered."""
    return request.chunk_s[0] - request.due_s if request.chunk_s and not request.stepped else None


def tpot_s(request: RequestRecord) -> Second | None:
    """(last chunk − first chunk) / tokens after the first chunk.

    Where the server counts tokens only at the end, one token is assumed in the first chunk: it comes from the prefill,
    which yields one. `metrics.tpot_source` marks every cell in which that was done.
    """
    if len(request.chunk_s) < 2 or request.stepped:
        return None
    if tokens_per_chunk_known(request):
        later_tokens = sum(request.chunk_tokens[1:])
    else:
        total = tokens_of(request)
        later_tokens = 0 if total is None else total - 1
    return (request.chunk_s[-1] - request.chunk_s[0]) / later_tokens if later_tokens > 0 else None


def offered_wall_s(requests: Sequence[RequestRecord], workload_rate_rps: PerSecond | None) -> Second:
    """From the first due to the last done; in an open loop no shorter than so many arrivals take at their rate, so that
    goodput never exceeds what was offered. 0 of nothing."""
    if not requests:
        return 0.0
    wall_s = max(one.done_s for one in requests) - min(one.due_s for one in requests)
    return no_shorter_s(wall_s, sum(one.turn_index == 0 for one in requests), workload_rate_rps)


def no_shorter_s(wall_s: Second, arrivals_count: int, rate_rps: PerSecond | None) -> Second:
    """`wall_s`, or the time that so many arrivals take at their rate, if that is longer."""
    return max(wall_s, arrivals_count / rate_rps) if rate_rps else wall_s


def meets(request: RequestRecord, slo: Slo) -> bool:
    """Whether it ended well and within the objective. An answer of one chunk has no TPOT to miss."""
    if request.error is not None:
        return False
    first_s, per_token_s = ttft_s(request), tpot_s(request)
    if slo.ttft_s is not None and (first_s is None or first_s > slo.ttft_s):
        return False
    return slo.tpot_s is None or len(request.chunk_s) == 1 or (per_token_s is not None and per_token_s <= slo.tpot_s)
