"""Histories of nights: the first, a long one with all that can happen, a hostile one."""

import math
import random

from specbench.nights import Figures, History, Night, Status, Worse
from tests.unit.render.pages import HOSTILE

STATUSES: dict[int, Status] = {0: "first", 9: "failed", 12: "inconclusive", 13: "refused", 20: "fail", 30: "failed"}
CHANGED_INDEX = 25


def first() -> History:
    """One night."""
    figures = (Figures(variant="baseline", launch_count=5, output_tps=80.0, is_baseline=True),)
    night = Night(started_utc="2026-09-01T02:00:00Z", status="first", run="s-20260901-020000", figures=figures)
    return History(suite_name="s", nights=(night,))


def many(count: int = 45) -> History:
    """Six variants, all of them 5 % slower from night 25 on; night 9 measured nothing."""
    dice = random.Random(1)
    return History(suite_name="kimi", nights=tuple(_night(place, dice) for place in range(count)))


def _night(place: int, dice: random.Random) -> Night:
    status = STATUSES.get(place, "pass")
    day = f"{9 + place // 30:02d}-{1 + place % 30:02d}"
    worse = (Worse(variant="a-drafter-number-1", metric="output_tps", change_ratio=-0.049),) if status == "fail" else ()
    return Night(
        started_utc=f"2026-{day}T02:00:00Z",
        status=status,
        run=f"kimi-2026{day.replace('-', '')}-020000",
        reference="results/nightly/kimi/kimi-20260901-020000",
        headlines=("CUDA out of memory",) if status == "failed" else (f"what was said in night {place}",),
        figures=() if place == 9 else tuple(_figures(place, number, dice) for number in range(6)),
        worse=worse,
        engines=("sglang 0.5.23",),
    )


def _figures(place: int, number: int, dice: random.Random) -> Figures:
    speed = (80 + 9 * number) * math.exp(dice.gauss(0, 0.006)) * (0.95 if place >= CHANGED_INDEX else 1.0)
    return Figures(
        variant=f"a-drafter-number-{number}" if number else "baseline",
        launch_count=5,
        is_baseline=number == 0,
        output_tps=speed,
        accept_length=1.5 + 0.1 * number + dice.gauss(0, 0.005) if number else None,
    )


def hostile() -> History:
    """Whatever a suite, a server or a person may write is there as text."""
    night = Night(
        started_utc=HOSTILE,
        status="fail",
        run="s-20260901-020000",
        reference=HOSTILE,
        headlines=(HOSTILE, HOSTILE),
        figures=(Figures(variant=HOSTILE, launch_count=5, output_tps=80.0, accept_length=2.0),),
        worse=(Worse(variant=HOSTILE, metric=HOSTILE, change_ratio=-0.1),),
        engines=(HOSTILE,),
        simulated=True,
    )
    return History(suite_name=HOSTILE, nights=(night, night))


HISTORIES = {"first": first, "many": many, "hostile": hostile}
