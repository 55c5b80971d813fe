"""The closed loop, against a transport that answers in this process."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from msgspec import structs

from specbench import clock, engines
from specbench.datasets import Prompt
from specbench.execution.client import open_client
from specbench.execution.load import Level, Load, Target, take_requests
from specbench.records import RequestRecord
from specbench.suite import Workload

WORKLOAD = Workload(name="w", max_output_tokens=8)
EVENT = b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def prompts(count: int, turn_count: int = 1) -> tuple[Prompt, ...]:
    turns = tuple(f"turn {turn}" for turn in range(turn_count))
    return tuple(Prompt(id=f"p{index}", category="c", turns=turns) for index in range(count))


async def one_event() -> AsyncIterator[bytes]:
    yield EVENT


class Answers:
    """Answers after `delay_s`, and counts how many are in flight."""

    def __init__(self, delay_s: float = 0.01, status_code: int = 200) -> None:
        self.delay_s = delay_s
        self.status_code = status_code
        self.in_flight = self.most_in_flight = 0
        self.bodies: list[Any] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(self.delay_s)
        self.in_flight -= 1
        return httpx.Response(self.status_code, content=one_event())


async def drive(answers: Answers, level: Level, stop_after_s: float | None = None) -> list[RequestRecord]:
    seen: list[RequestRecord] = []
    async with open_client("http://x", httpx.MockTransport(answers)) as client:
        target = Target(engine=engines.get("external"), client=client, served_model="m", version=None, zero_s=clock.now_s())
        task = asyncio.create_task(Load(target, seen.append).drive(level))
        if stop_after_s is not None:
            await asyncio.sleep(stop_after_s)
            task.cancel()
        await asyncio.gather(task, return_exceptions=stop_after_s is not None)
    return seen


def test_the_concurrency_is_held_and_never_exceeded() -> None:
    answers = Answers()
    seen = asyncio.run(drive(answers, Level(workload=WORKLOAD, concurrency=3, prompts=prompts(10))))
    assert answers.most_in_flight == 3
    assert sorted(one.request_index for one in seen) == list(range(10))
    assert {one.prompt_id for one in seen} == {f"p{index}" for index in range(10)}
    assert all(one.error is None and one.concurrency == 3 and not one.warmup for one in seen)


def test_a_request_is_due_when_its_stream_is_free() -> None:
    seen = asyncio.run(drive(Answers(), Level(workload=WORKLOAD, concurrency=1, prompts=prompts(4))))
    for before, after in itertools.pairwise(seen):
        assert 0 <= after.due_s - before.done_s < 0.05
        assert 0 <= after.sent_s - after.due_s < 0.05


def test_turns_follow_each_other_with_the_answers_between() -> None:
    answers = Answers()
    prompt = structs.replace(prompts(1, 3)[0], system="be brief")
    seen = asyncio.run(drive(answers, Level(workload=WORKLOAD, concurrency=4, prompts=(prompt,))))
    assert [one.turn_index for one in seen] == [0, 1, 2]
    assert [message["role"] for message in answers.bodies[2]["messages"]] == [
        "system", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert answers.bodies[2]["messages"][2]["content"] == "hi"


def test_turns_after_a_failed_one_are_recorded_as_failed() -> None:
    answers = Answers(status_code=500)
    seen = asyncio.run(drive(answers, Level(workload=WORKLOAD, concurrency=1, prompts=prompts(1, 3))))
    assert len(answers.bodies) == 1
    assert [(one.request_index, one.turn_index) for one in seen] == [(0, 0), (1, 1), (2, 2)]
    assert seen[2].error == "not sent: turn 0 of this conversation failed"


def test_the_rate_cap_is_kept_and_the_wait_is_nobodys_latency() -> None:
    level = Level(workload=structs.replace(WORKLOAD, rate_cap_rps=20.0), concurrency=4, prompts=prompts(6))
    seen = sorted(asyncio.run(drive(Answers(delay_s=0.001), level)), key=lambda one: one.sent_s)
    assert seen[-1].sent_s - seen[0].sent_s > 5 / 20 * 0.9
    assert all(one.sent_s - one.due_s < 0.04 for one in seen)


def test_a_stopped_load_keeps_what_was_in_flight() -> None:
    level = Level(workload=WORKLOAD, concurrency=2, prompts=prompts(5))
    seen = asyncio.run(drive(Answers(delay_s=5.0), level, stop_after_s=0.2))
    assert [one.error for one in seen] == ["stopped before the answer ended"] * 2


def test_an_open_loop_waits_for_nobody_and_counts_from_due() -> None:
    answers = Answers(delay_s=0.3)
    moments_s = (0.02, 0.04, 0.05, 0.1)
    level = Level(workload=WORKLOAD, concurrency=0, prompts=prompts(4), schedule_s=moments_s)
    seen = sorted(asyncio.run(drive(answers, level)), key=lambda one: one.due_s)
    assert answers.most_in_flight == 4
    begun_s = seen[0].due_s - moments_s[0]
    assert [one.due_s - begun_s for one in seen] == pytest.approx(moments_s)
    assert all(0 <= one.sent_s - one.due_s < 0.05 for one in seen)
    assert {one.concurrency for one in seen} == {0}


def test_a_stopped_open_loop_keeps_what_was_in_flight() -> None:
    level = Level(workload=WORKLOAD, concurrency=0, prompts=prompts(3), schedule_s=(0.0, 0.01, 9.0))
    seen = asyncio.run(drive(Answers(delay_s=5.0), level, stop_after_s=0.3))
    assert [one.error for one in seen] == ["stopped before the answer ended"] * 2


def test_an_error_of_the_sink_is_raised_as_it_is() -> None:
    def full(record: RequestRecord) -> None:
        raise OSError("disk full")

    async def driven() -> None:
        async with open_client("http://x", httpx.MockTransport(Answers())) as client:
            target = Target(engine=engines.get("external"), client=client, served_model="m", version=None, zero_s=0.0)
            await Load(target, full).drive(Level(workload=WORKLOAD, concurrency=2, prompts=prompts(2)))

    with pytest.raises(OSError, match="disk full"):
        asyncio.run(driven())


def test_each_stream_has_a_conversation() -> None:
    assert [len(prompt.turns) for prompt in take_requests(prompts(5, 2), 4, 4)] == [2, 2, 1, 1]
    assert [len(prompt.turns) for prompt in take_requests(prompts(5, 2), 4, 2)] == [2, 2]


@pytest.mark.parametrize(
    ("turn_count", "wanted", "taken"), [(1, 3, [1, 1, 1]), (3, 4, [3, 1]), (2, 100, [2] * 5), (2, 0, [])]
)
def test_requests_are_counted_by_turn(turn_count: int, wanted: int, taken: list[int]) -> None:
    assert [len(prompt.turns) for prompt in take_requests(prompts(5, turn_count), wanted)] == taken
