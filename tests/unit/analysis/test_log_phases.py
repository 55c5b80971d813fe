"""How long the phases of a start-up took."""

import pytest

from specbench.analysis.log_report import study
from specbench.analysis.log_tally import between_s


def test_phases_without_a_stated_time_go_by_the_clock() -> None:
    lines = [
        "[2026-11-01 10:00:08 TP0] Init torch distributed begin.",
        "[2026-11-01 10:00:12 TP0] Init torch distributed ends. mem usage=1.20 GB",
        "[2026-11-01 10:00:12 TP0] Load weight begin. avail mem=138.20 GB",
        "[2026-11-01 10:02:12 TP0] Load weight end. type=A, dtype=torch.bfloat16, avail mem=60.10 GB, mem usage=78.10 GB.",
        "[2026-11-01 10:02:22 TP1] Load weight end. type=A, dtype=torch.bfloat16, avail mem=60.10 GB, mem usage=78.10 GB.",
        "[2026-11-01 10:02:30 TP0] KV Cache is allocated. #tokens: 400000, KV size: 30.00 GB",
        "[2026-11-01 10:02:32 TP1] KV Cache is allocated. #tokens: 400000, KV size: 30.00 GB",
        "[2026-11-01 10:02:33 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=20.00 GB",
        "[2026-11-01 10:02:51 TP0] Capture cuda graph end. Time elapsed: 17.11 s. mem usage=2.00 GB. avail mem=18.00 GB.",
    ]
    found = study(lines, "sglang")
    assert found is not None
    told = {phase.name: phase.elapsed_s for phase in found.phases}
    assert told == {"distributed": 4.0, "weights": 130.0, "kv_cache": None, "graph_capture": 17.11}


@pytest.mark.parametrize(
    ("first", "last", "seconds"),
    [
        ("2026-11-01 10:00:00", "2026-11-01 10:00:01.500", 1.5),
        ("2026-11-01 10:00:00", "2026-11-01 09:00:00", None),
        ("2026-11-01T10:00:00Z", "2026-11-01 10:00:01", None),
        ("Nov 01 10:00:00", "Nov 01 10:00:01", None),
        (None, "2026-11-01 10:00:01", None),
    ],
)
def test_time_between_clocks(first: str | None, last: str | None, seconds: float | None) -> None:
    assert between_s(first, last) == seconds
