"""Progress: little on a pipe, a status on a terminal, nothing when quiet."""

import io
from typing import Any

import pytest

from specbench.plan import Plan, make_plan
from specbench.records import Event, Progress
from specbench.render.live import duration, gpu_text, progress, speed_text
from specbench.suite import Model, Server, Suite, Variant, Workload


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def plan() -> Plan:
    variant = Variant(name="plain", engine="fake", server=Server())
    return make_plan(
        Suite(
            name="small",
            path="s",
            model=Model(path="m"),
            variants=(variant,),
            baseline="plain",
            workloads=(Workload(name="w"),),
        )
    )


def reading(count: int, **fields: Any) -> Progress:
    told: dict[str, Any] = {"output_tps": 412.4, "accept_length": 2.313, **fields}
    return Progress(
        workload="w",
        concurrency=1,
        ended_count=count,
        failed_count=0,
        planned_count=99,
        launch_ended_count=count,
        launch_planned_count=99,
        **told,
    )


def shown(stream: io.StringIO, quiet: bool = False, rehearsal: str | None = None) -> str:
    one = plan()
    (trial,) = one.trials
    with progress(stream, quiet, one, rehearsal) as tell:
        tell(Event(kind="note", text="a note"))
        tell(Event(kind="launch", trial=trial, text="Fake 1.0"))
        for second in range(1, 40):
            tell(Event(kind="phase", trial=trial, text="weights" if second < 30 else "kv_cache", at_s=float(second)))
        for count in range(1, 100):
            tell(Event(kind="request", trial=trial, text="not shown", at_s=40 + count / 10))
            tell(
                Event(kind="progress", trial=trial, text=f"w c=1: {count}/99", at_s=40 + count / 10, progress=reading(count))
            )
        tell(Event(kind="failure", trial=trial, text="it died [/bold]", at_s=70.0))
    return stream.getvalue()


def test_a_pipe_gets_few_lines() -> None:
    lines = shown(io.StringIO()).splitlines()
    assert lines[0] == "small: 1 launch, about 1 min 34 s by the suite's estimate"
    assert lines[1:4] == ["a note", "[1/1 plain.launch0] Fake 1.0 (0 s)", "[1/1 plain.launch0] weights (1 s)"]
    assert sum("weights" in line for line in lines) == 3
    assert sum("kv_cache" in line for line in lines) == 1
    assert [line for line in lines if "w c=1" in line] == [
        "[1/1 plain.launch0] w c=1: 1/99 · 412.4 tok/s · AL 2.31 (40 s)",
    ]
    assert "0 of 1 launch done, about 54 s left" in lines
    assert not any("not shown" in line for line in lines)
    assert lines[-1] == "[1/1 plain.launch0] FAILED: it died [/bold] (1 min 10 s)"


def test_a_rehearsal_says_so_in_every_line() -> None:
    lines = shown(io.StringIO(), rehearsal="a shrunk load").splitlines()
    assert lines[0] == "SIMULATED small: 1 launch, a shrunk load"
    assert all(line.startswith("SIMULATED ") for line in lines)


def test_a_terminal_keeps_the_lines_that_matter() -> None:
    text = shown(Terminal())
    assert "FAILED: it died [/bold]" in text
    assert "Fake 1.0" in text


def test_a_terminal_tells_of_every_launch_that_runs_and_of_the_whole() -> None:
    text = shown(Terminal())
    assert "0 of 1 launch done" in text
    assert "412.4 tok/s · AL 2.31" in text


def test_long_launches_get_fewer_lines() -> None:
    stream, one = io.StringIO(), plan()
    with progress(stream, False, one, None) as tell:
        for second in range(3600):
            tell(Event(kind="progress", trial=one.trials[0], text=f"w: {second}", at_s=float(second)))
    count = sum("w: " in line for line in stream.getvalue().splitlines())
    assert 3600 / 60 <= count <= 100


@pytest.mark.parametrize(
    ("gpu_ids", "sample", "told"),
    [
        ((), None, ""),
        ((0,), None, " · GPU 0"),
        ((0, 1, 2, 3), None, " · GPU 0-3"),
        (
            (0, 2),
            [{"power_w": 300.4, "temperature_c": 60}, {"power_w": 310.0, "temperature_c": 71}],
            " · GPU 0,2: 610 W, 71 °C",
        ),
        ((4,), [{"power_w": None, "temperature_c": 50}, "odd"], " · GPU 4: 50 °C"),
        ((4,), {"odd": 1}, " · GPU 4"),
    ],
)
def test_gpus_are_told_as_far_as_they_are_known(gpu_ids: tuple[int, ...], sample: Any, told: str) -> None:
    assert gpu_text(gpu_ids, reading(1, gpus=sample)) == told


def test_speed_is_told_as_far_as_it_is_known() -> None:
    assert speed_text(reading(1, output_tps=None, accept_length=None)) == ""
    assert speed_text(reading(1, accept_length=None)) == " · 412.4 tok/s"


def test_quiet_is_quiet() -> None:
    assert shown(io.StringIO(), quiet=True) == ""


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599, "59 min 59 s"), (7800, "2 h 10 min")]
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


class Gone(io.StringIO):
    """A pipe whose reader has left."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_progress_that_nobody_reads_does_not_end_the_run() -> None:
    assert shown(Gone()) == ""


def test_what_a_server_prints_reaches_no_terminal_raw() -> None:
    stream = io.StringIO()
    with progress(stream, False, plan(), None) as tell:
        tell(Event(kind="failure", text="refused: \x1b[31mred\x1b[0m\x07"))
    assert "refused: red" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
