"""Which GPUs a launch gets, and which launch is next."""

from typing import Any

import pytest

from specbench.placement import Floor, GpuPlace, Planned, forecast, job_trials, next_start
from specbench.plan import Trial, make_plan
from specbench.suite import Expected, Hardware, Model, Server, Suite, Variant, Workload
from specbench.suite.scaling import Slurm, gpus_needed

EIGHT = [GpuPlace(index) for index in range(8)]


def a_suite(*widths: int, **changes: Any) -> Suite:
    """Variants `v0`, `v1`, … that span so many GPUs."""
    variants = tuple(
        Variant(name=f"v{place}", engine="sglang", server=Server(tensor_parallel=width))
        for place, width in enumerate(widths)
    )
    fields: dict[str, Any] = {
        "name": "s",
        "path": "s.yaml",
        "model": Model(path="m"),
        "variants": variants,
        "baseline": "v0",
        "workloads": (Workload(name="w", concurrency=(1,), request_count=1, max_output_tokens=40),),
        "expected": Expected(startup_s=60, per_user_tps=1),
        "hardware": Hardware(gpu_count=8),
        "packing": "on",
    }
    return Suite(**(fields | changes))


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ((), 4),
        (("--dp-size", 2), 8),
        (("--dp-size=2", "--enable-dp-attention"), 4),
        (("--tp", "8", "--pp-size", 2), 16),
        (("--dp-size",), 4),
        (("--tp-size", "many"), 4),
        (("--tp", 2), 2),
        (("--tp=2",), 2),
        (("--tensor-parallel-size", 2), 2),
        (("--tensor-parallel-size=2",), 2),
        (("--tensor_parallel_size", 2), 2),
        (("--tensor_parallel_size=2",), 2),
        (("-tp", 2), 2),
        (("-tp=2",), 2),
        (("--pp", 2), 8),
        (("--pp=2",), 8),
        (("--pipeline-parallel-size", 2), 8),
        (("--pipeline-parallel-size=2",), 8),
        (("-pp", 2), 8),
        (("-pp=2",), 8),
        (("--dp", 2), 8),
        (("--dp=2",), 8),
        (("--data-parallel-size", 2), 8),
        (("--data-parallel-size=2",), 8),
        (("-dp", 2), 8),
        (("-dp=2",), 8),
        (("-pcp", 2), 8),
        (("--prefill-context-parallel-size=2",), 8),
        (("--decode-context-parallel-size", 2), 4),
        (("-tp", 2, "-pp=2", "--data-parallel-size", 2), 8),
    ],
)
def test_gpus_of_a_server(args: tuple[str | int, ...], count: int) -> None:
    assert gpus_needed(4, args) == count


def test_groups_are_aligned_and_rotate() -> None:
    floor = Floor(EIGHT)
    assert [floor.hold(2, turn) for turn in (0, 1, 1, 3)] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert floor.hold(1, 0) is None
    floor.release((4, 5))
    assert floor.hold(2, 0) == (4, 5)


def test_a_group_stays_on_one_side_of_the_machine() -> None:
    floor = Floor([GpuPlace(index, index % 2) for index in range(8)])
    assert (floor.hold(4, 0), floor.hold(4, 0)) == ((0, 2, 4, 6), (1, 3, 5, 7))


def test_no_gpu_is_held_twice_whatever_is_asked() -> None:
    floor = Floor(EIGHT)
    assert floor.hold(4, 0) == (0, 1, 2, 3)
    assert floor.hold(8, 0) is None
    assert floor.hold(4, 0) == (4, 5, 6, 7)
    assert floor.held == frozenset(range(8))


def test_a_launch_alone_gets_the_gpus_that_it_had_packed() -> None:
    plan = make_plan(a_suite(2, 1, 1, packing="control", launches=2))
    held = {(one.trial.folder, one.trial.alone): one.gpu_ids for one in forecast(plan, 4, 99)}
    for (folder, alone), gpu_ids in held.items():
        assert not alone or gpu_ids == held[folder.removesuffix(".alone"), False]


def test_twins_whose_gpus_are_gone_take_others() -> None:
    floor = Floor(EIGHT)
    assert floor.hold(2, 3, twins="a 0") == (6, 7)
    floor.release((6, 7))
    floor.poison([6])
    assert floor.hold(2, 0, twins="a 0") == (0, 1)


def test_poisoned_gpus_are_given_to_nobody() -> None:
    floor = Floor(EIGHT)
    floor.poison([1])
    assert floor.hold(4, 0) == (4, 5, 6, 7)
    assert (floor.hold(2, 0), floor.hold(2, 0)) == ((2, 3), None)
    assert (floor.fits(7), floor.fits(8)) == (True, False)


def test_what_is_left_of_broken_groups_is_used() -> None:
    floor = Floor([GpuPlace(index) for index in range(4)])
    floor.poison([1])
    assert (floor.hold(2, 0), floor.hold(1, 0)) == ((2, 3), (0,))
    floor.release((2, 3))
    floor.poison([2])
    assert floor.fits(2)


def test_gpus_of_strangers_are_shunned() -> None:
    assert Floor(EIGHT).hold(2, 0, shunned=[1]) == (2, 3)
    assert Floor(EIGHT).hold(8, 0, shunned=[1]) is None


def starts(suite: Suite, width_count: int = 99) -> list[tuple[str, tuple[int, ...]]]:
    """All that begins at once on 8 GPUs."""
    floor, waiting, running = Floor(EIGHT), list(make_plan(suite).trials), list[Trial]()
    found = []
    while (start := next_start(suite, waiting, floor, running, width_count)) is not None:
        waiting.remove(start.trial)
        running.append(start.trial)
        found.append((start.trial.folder, start.gpu_ids))
    return found


def test_narrow_ones_fill_what_wide_ones_leave() -> None:
    assert starts(a_suite(1, 4, 8, 1)) == [("v2.launch0", tuple(range(8)))]
    assert starts(a_suite(1, 4, 2, 1)) == [
        ("v1.launch0", (4, 5, 6, 7)),
        ("v2.launch0", (0, 1)),
        ("v0.launch0", (2,)),
        ("v3.launch0", (3,)),
    ]


def test_no_more_servers_than_the_clients_can_drive() -> None:
    assert len(starts(a_suite(1, 1, 1, 1), width_count=2)) == 2


def test_unpacked_launches_share_their_gpus() -> None:
    suite = a_suite(2, 2, packing="off", launches=2)
    seen = [one.gpu_ids for one in forecast(make_plan(suite), 8, width_count=1)]
    assert seen == [(0, 1)] * 4


def test_an_arm_rotates_over_the_slots_by_block() -> None:
    suite = a_suite(2, 2, 2, 2, launches=4)
    seen = [one for one in forecast(make_plan(suite), 8, width_count=99) if one.trial.variant == "v0"]
    assert len({one.gpu_ids for one in seen}) > 1


def test_nothing_runs_beside_a_launch_that_is_to_be_alone() -> None:
    suite = a_suite(1, 4, 8, packing="control")
    plan = make_plan(suite)
    assert [trial.folder for trial in plan.trials if trial.alone] == ["v1.launch0.alone", "v0.launch0.alone"]
    foreseen = forecast(plan, 8, width_count=99)
    for one in foreseen:
        beside = [other for other in foreseen if overlap(one, other)]
        assert one.trial.alone is False or beside == [one]


def overlap(one: Planned, other: Planned) -> bool:
    return one.start_s < other.end_s and other.start_s < one.end_s


def test_the_forecast_keeps_the_gpus_busy() -> None:
    foreseen = forecast(make_plan(a_suite(8, 4, 4, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1)), 8, width_count=99)
    assert max(one.end_s for one in foreseen) == pytest.approx(400)
    assert sum(len(one.gpu_ids) * (one.end_s - one.start_s) for one in foreseen) == pytest.approx(8 * 400)


def test_what_never_fits_is_not_foreseen() -> None:
    assert forecast(make_plan(a_suite(8)), 4, width_count=1) == ()


def test_jobs() -> None:
    suite = a_suite(8, 8, 16, packing="off", launcher="slurm", launches=2, hardware=Hardware(gpu_count=16))
    jobs = job_trials(suite, make_plan(suite).trials)
    assert [[trial.folder for trial in job] for job in jobs] == [
        ["v0.launch0", "v1.launch0"],
        ["v2.launch0"],
        ["v2.launch1"],
        ["v1.launch1", "v0.launch1"],
    ]
    single = a_suite(8, 8, launcher="slurm", slurm=Slurm(allocation="launch"))
    assert len(job_trials(single, make_plan(single).trials)) == 2
