"""Events as JSON lines: each is whole, says SIMULATED, and none is a request's."""

import json
from typing import Any

from specbench.records import Event
from specbench.render.event_lines import EVENTS_SCHEMA_VERSION, EventLines
from tests.unit.render.test_remaining import plan, progress


def lines(rehearsal: str | None = None) -> list[dict[str, Any]]:
    told: list[str] = []
    one = plan(1)
    found = EventLines(told.append, one, rehearsal)
    found(Event(kind="note", text="two\nlines"))
    found(Event(kind="launch", trial=one.trials[0], text="Fake", gpu_ids=(0, 1)))
    found(Event(kind="request", trial=one.trials[0], text="w"))
    found(Event(kind="progress", trial=one.trials[0], text="w", at_s=3.0, progress=progress(7)))
    found(Event(kind="launch_done", trial=one.trials[0], at_s=9.0))
    found.done("results/s", 1)
    assert all("\n" not in line for line in told)
    return [json.loads(line) for line in told]


def test_each_line_tells_what_it_must() -> None:
    found = lines()
    assert [one["kind"] for one in found] == ["run", "note", "launch", "progress", "launch_done", "run_done"]
    run, note, launch, moving, done, end = found
    assert (run["schema_version"], run["suite_name"], run["launch_count"]) == (EVENTS_SCHEMA_VERSION, "s", 2)
    assert note["text"] == "two\nlines"
    assert (launch["launch"], launch["variant"], launch["order_index"], launch["gpu_ids"]) == (
        "plain.launch0",
        "plain",
        0,
        [0, 1],
    )
    assert moving["progress"]["ended_count"] == 7
    assert (done["done_count"], done["at_s"], done["left_s"]) == (1, 9.0, 9.0)
    assert (end["folder"], end["exit_code"]) == ("results/s", 1)
    assert all("label" not in one and one["time_utc"].endswith("Z") for one in found)


def test_what_is_simulated_says_so_in_every_line() -> None:
    assert {one["label"] for one in lines("a shrunk load")} == {"SIMULATED"}
