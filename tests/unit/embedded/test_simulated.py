"""The simulated engine's batch, queue and prefix cache, with steps of a tenth of a millisecond."""

import asyncio
from collections.abc import Sequence
from typing import Literal

import pytest
from msgspec.structs import replace

from specbench.datasets.builtin import every_prompt
from specbench.dialects import Message
from specbench.embedded.arguments import parse
from specbench.embedded.interface import EngineFailed, EngineStep, GenerateRequest, RequestRefused, StepOutput
from specbench.embedded.simulated import NamedDrafter, Simulation, backend_of
from specbench.embedded.simulated_backend import SimulatedBackend
from specbench.suite.rehearsal import Rehearsal

QUICK = Rehearsal(
    base_step_s=0.0001, target_launch_s=0.0, draft_step_s=0.0, draft_launch_s=0.0, prefill_s=0.0001, prefill_token_s=0.0
)
DRAFTER = "drafters/kimi-eagle3"
BASELINE = ("--model-path", "kimi", "--tp-size", "8")


def speculating(word: str = "EAGLE3", draft_tokens: int = 4) -> tuple[str, ...]:
    return (
        *("--speculative-algorithm", word, "--speculative-draft-model-path", DRAFTER, "--speculative-eagle-topk", "1"),
        *("--speculative-num-steps", str(draft_tokens - 1), "--speculative-num-draft-tokens", str(draft_tokens)),
    )


def backend(*flags: str, costs: Rehearsal = QUICK, load_s: float = 0.0, seed: int = 5) -> SimulatedBackend:
    simulation = Simulation(
        rehearsal=replace(costs, load_s=load_s), drafters={DRAFTER: NamedDrafter(name="custom", method="eagle3")}, seed=seed
    )
    return backend_of(parse([*BASELINE, *flags], costs.version), simulation)


class Heard:
    """Implements `interface.EngineLog`."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, bool]] = []
        self.warnings: list[str] = []
        self.steps: list[EngineStep] = []

    def phase(
        self, name: Literal["weights", "kv_cache", "graph_capture", "drafter"], *, done: bool, elapsed_s: float = 0.0
    ) -> None:
        assert elapsed_s >= 0
        self.phases.append((name, done))

    def warning(self, text: str) -> None:
        self.warnings.append(text)

    def step(self, step: EngineStep) -> None:
        self.steps.append(step)


def asked(text: str, max_tokens: int = 24, *, ignore_eos: bool = True) -> GenerateRequest:
    return GenerateRequest(
        id=text, messages=[Message(role="user", content=text)], max_tokens=max_tokens, ignore_eos=ignore_eos
    )


async def answered(engine: SimulatedBackend, request: GenerateRequest) -> list[StepOutput]:
    return [output async for output in engine.generate(request)]


def served(engine: SimulatedBackend, requests: Sequence[GenerateRequest]) -> tuple[list[list[StepOutput]], Heard]:
    """All at once, from start to stop."""
    heard = Heard()

    async def serve() -> list[list[StepOutput]]:
        await engine.start(heard)
        outputs = await asyncio.gather(*(answered(engine, request) for request in requests))
        await engine.stop()
        return outputs

    return asyncio.run(serve()), heard


def one_after_another(engine: SimulatedBackend, requests: Sequence[GenerateRequest]) -> list[list[StepOutput]]:
    async def serve() -> list[list[StepOutput]]:
        await engine.start(Heard())
        outputs = [await answered(engine, request) for request in requests]
        await engine.stop()
        return outputs

    return asyncio.run(serve())


PROMPTS = [asked(prompt.turns[0]) for prompt in every_prompt()[::9]]


def test_what_a_request_gets_does_not_depend_on_its_neighbours() -> None:
    together, _ = served(backend(*speculating()), PROMPTS)
    alone = one_after_another(backend(*speculating()), PROMPTS)
    backwards = one_after_another(backend(*speculating()), PROMPTS[::-1])
    assert together == alone == backwards[::-1]
    assert together != one_after_another(backend(*speculating(), seed=6), PROMPTS)


def test_speculation_changes_the_steps_and_not_the_text() -> None:
    plain, _ = served(backend(), PROMPTS)
    drafted, _ = served(backend(*speculating()), PROMPTS)
    assert [text(outputs) for outputs in plain] == [text(outputs) for outputs in drafted]
    assert all(len(outputs) == 24 for outputs in plain)
    assert sum(map(len, drafted)) < 0.8 * sum(map(len, plain))


def text(outputs: Sequence[StepOutput]) -> str:
    return "".join(output.text for output in outputs)


def test_outputs_of_one_request() -> None:
    (outputs,), _ = served(backend(*speculating()), PROMPTS[:1])
    first, *steps = outputs
    assert (first.new_tokens, first.verify, first.correct_tokens) == (1, False, None)
    assert all(step.verify for step in steps)
    assert all(step.new_tokens == (step.correct_tokens or 0) + 1 for step in steps[:-1])
    assert 1 <= steps[-1].new_tokens <= (steps[-1].correct_tokens or 0) + 1
    assert {step.proposed_tokens for step in steps} == {3}
    assert sum(output.new_tokens for output in outputs) == 24
    assert [output.finish_reason for output in outputs] == [None] * len(steps) + ["length"]
    assert first.prompt_tokens > 10


def test_without_speculation_no_step_verifies() -> None:
    (outputs,), heard = served(backend(), PROMPTS[:1])
    assert [(output.new_tokens, output.verify, output.correct_tokens) for output in outputs] == [(1, False, None)] * 24
    assert {step.verify_count for step in heard.steps} == {0}


def test_the_wrong_word_accepts_nothing_and_nobody_complains() -> None:
    outputs, heard = served(backend(*speculating("EAGLE")), PROMPTS)
    steps = [output for one in outputs for output in one if output.verify]
    assert sum(step.correct_tokens or 0 for step in steps) == 0
    assert len(steps) == 23 * len(PROMPTS)
    assert heard.warnings == []
    assert sum(step.correct_tokens for step in heard.steps) == 0


def test_the_log_hears_the_same_as_the_clients() -> None:
    outputs, heard = served(backend(*speculating(), "--max-running-requests", "4"), PROMPTS)
    steps = [output for one in outputs for output in one if output.verify]
    prefills = [step for step in heard.steps if step.kind == "prefill"]
    decodes = [step for step in heard.steps if step.kind == "decode"]
    assert sum(step.verify_count for step in decodes) == len(steps)
    assert sum(step.correct_tokens for step in decodes) == sum(step.correct_tokens or 0 for step in steps)
    assert sum(step.new_tokens for step in decodes) == 23 * len(PROMPTS)
    assert sum(step.new_requests for step in prefills) == len(PROMPTS)
    assert sum(step.new_tokens for step in prefills) == sum(one[0].prompt_tokens for one in outputs)
    assert max(step.running_requests for step in decodes) == 4
    assert max(step.queue_requests for step in heard.steps) == len(PROMPTS) - 4
    assert all(step.running_requests + step.new_requests <= 4 for step in prefills)
    assert max(step.used_tokens for step in heard.steps) > 0
    assert heard.steps[-1].used_tokens == 0


def test_graphs_replay_up_to_their_largest_batch() -> None:
    def flags(*words: str) -> set[tuple[bool, bool]]:
        _, heard = served(backend(*words), PROMPTS)
        return {(step.running_requests > 2, step.graph) for step in heard.steps if step.kind == "decode"}

    assert flags() == {(True, True)}
    assert flags("--disable-cuda-graph") == {(True, False)}
    assert flags("--cuda-graph-max-bs-decode", "2") == {(True, False)}
    assert flags("--cuda-graph-max-bs-decode", "2", "--max-running-requests", "2") == {(False, True)}


@pytest.mark.parametrize(
    ("flags", "phases"),
    [
        ((), ["weights", "kv_cache", "graph_capture"]),
        (speculating(), ["weights", "kv_cache", "graph_capture", "drafter"]),
        ((*speculating(), "--disable-cuda-graph"), ["weights", "kv_cache", "drafter"]),
        (("--speculative-algorithm", "NGRAM"), ["weights", "kv_cache", "graph_capture"]),
    ],
)
def test_phases(flags: tuple[str, ...], phases: list[str]) -> None:
    _, heard = served(backend(*flags), [])
    assert heard.phases == [(name, done) for name in phases for done in (False, True)]


def test_an_answer_may_end_by_itself() -> None:
    costs = replace(QUICK, eos_ratio=0.1)
    free = [replace(prompt, ignore_eos=False, max_tokens=200) for prompt in PROMPTS]
    outputs, _ = served(backend(*speculating(), costs=costs), free)
    assert [one[-1].finish_reason for one in outputs] == ["stop"] * len(free)
    lengths = [sum(output.new_tokens for output in one) for one in outputs]
    assert len(set(lengths)) > 3
    forced, _ = served(backend(*speculating(), costs=costs), [replace(free[0], ignore_eos=True)])
    assert sum(output.new_tokens for output in forced[0]) == 200


def test_a_request_that_can_never_run_is_refused() -> None:
    with pytest.raises(RequestRefused, match="maximum context length of 64 tokens"):
        served(backend("--context-length", "64"), [asked("Hello", 64)])


def test_cancelled_requests_leave_the_batch_and_the_queue() -> None:
    engine = backend("--max-running-requests", "1")

    async def serve() -> None:
        await engine.start(Heard())
        running, waiting = engine.generate(asked("one", 1000)), engine.generate(asked("two", 1000))
        await anext(running)
        second = asyncio.ensure_future(anext(waiting))
        await asyncio.sleep(0)
        assert (engine.running_requests, engine.queue_requests) == (1, 1)
        await running.aclose()
        await second
        assert (engine.running_requests, engine.queue_requests) == (1, 0)
        await waiting.aclose()
        assert (engine.running_requests, engine.queue_requests) == (0, 0)
        assert len(await answered(engine, asked("three"))) == 24
        await engine.stop()

    asyncio.run(serve())


def test_stopping_aborts_what_runs_and_refuses_what_comes() -> None:
    engine = backend()

    async def serve() -> StepOutput:
        await engine.start(Heard())
        task = asyncio.create_task(answered(engine, asked("one", 100_000)))
        while not engine.running_requests:  # noqa: ASYNC110 (there is no event for it)
            await asyncio.sleep(0)
        await engine.stop()
        await engine.stop()
        with pytest.raises(EngineFailed, match="stopping"):
            await answered(engine, asked("two"))
        return (await task)[-1]

    assert asyncio.run(serve()).finish_reason == "abort"


def test_a_fault_of_the_simulation_is_told() -> None:
    engine = backend()

    class Deaf(Heard):
        def step(self, step: EngineStep) -> None:
            raise KeyError("deaf")

    async def serve() -> EngineFailed:
        await engine.start(Deaf())
        with pytest.raises(EngineFailed, match="deaf"):
            await answered(engine, asked("one"))
        return await engine.failed()

    assert "the simulation failed" in str(asyncio.run(serve()))


def test_a_prompt_asked_again_is_cached_until_the_flush() -> None:
    engine = backend()

    async def serve() -> list[int]:
        await engine.start(Heard())
        first = await answered(engine, PROMPTS[0])
        again = await answered(engine, PROMPTS[0])
        await engine.flush()
        flushed = await answered(engine, PROMPTS[0])
        await engine.stop()
        return [one[0].cached_tokens for one in (first, again, flushed)]

    first, again, flushed = asyncio.run(serve())
    assert first == flushed == 0
    assert again > 10


def test_a_second_turn_finds_the_first_in_the_cache() -> None:
    engine = backend()

    async def serve() -> StepOutput:
        await engine.start(Heard())
        first = await answered(engine, asked("Tell me of the sea.", 40))
        turns = [("user", "Tell me of the sea."), ("assistant", text(first)), ("user", "And of the sky?")]
        messages = [Message(role=role, content=content) for role, content in turns]
        second = await answered(engine, replace(asked("x"), messages=messages))
        await engine.stop()
        return second[0]

    first = asyncio.run(serve())
    assert first.prompt_tokens - first.cached_tokens < 12


def test_without_the_radix_cache_nothing_is_cached() -> None:
    outputs = one_after_another(backend("--disable-radix-cache"), [PROMPTS[0], PROMPTS[0]])
    assert [one[0].cached_tokens for one in outputs] == [0, 0]
