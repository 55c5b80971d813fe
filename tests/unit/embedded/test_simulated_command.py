"""What the simulated server makes of its command line, its environment and its prompts."""

import json

import msgspec
import pytest

from specbench.datasets.builtin import every_prompt
from specbench.dialects import Message
from specbench.embedded import simulated
from specbench.embedded.arguments import parse
from specbench.embedded.interface import EngineFacts, GenerateRequest
from specbench.embedded.simulated import NamedDrafter, Simulation, backend_of, simulation_of
from specbench.embedded.simulated_request import PrefixCache
from specbench.embedded.simulated_text import category_of
from specbench.suite.rehearsal import Rehearsal

BASELINE = ("--model-path", "kimi", "--tp-size", "8")
COSTS = Rehearsal(base_step_s=0.02, version="0.5.9")


def facts_of(*flags: str) -> EngineFacts:
    return backend_of(parse([*BASELINE, *flags], COSTS.version), Simulation(rehearsal=COSTS)).facts


def asked(text: str) -> GenerateRequest:
    return GenerateRequest(id=text, messages=[Message(role="user", content=text)], max_tokens=1)


def test_the_prefix_cache_keeps_the_newest() -> None:
    cache = PrefixCache()
    for index in range(600):
        cache.keep(f"text number {index:04} with some words")
    assert cache.cached_tokens("text number 0000 with some words and more") == 0
    assert cache.cached_tokens("text number 0599 with some words and more") == 8


def test_categories() -> None:
    for prompt in every_prompt():
        for turn in prompt.turns:
            assert category_of(asked(turn)) == prompt.category
            assert category_of(GenerateRequest(id="raw", prompt_text=f"{turn}\n\nmore", max_tokens=1)) == prompt.category
    assert category_of(asked("Write a Python function that adds.")) == "code"
    assert category_of(asked("Good morning!")) == "chat"


def test_facts() -> None:
    steps = ("--speculative-num-steps", "7", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "8")
    facts = facts_of(
        "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "d", *steps, "--disable-cuda-graph"
    )
    assert (facts.simulated, facts.dialect_version, facts.algorithm) == (True, "0.5.9", "EAGLE3")
    assert (facts.draft_tokens, facts.steps, facts.topk) == (8, 7, 1)
    assert (facts.has_drafter, facts.graphs) == (True, False)
    assert facts.resolved["speculative_num_draft_tokens"] == 8
    plain = facts_of("--context-length", "8192", "--max-running-requests", "3")
    assert (plain.algorithm, plain.has_drafter, plain.graphs) == (None, False, True)
    assert (plain.context_length, plain.max_running_requests) == (8192, 3)
    assert facts_of().context_length == COSTS.context_length
    assert facts_of("--speculative-algorithm", "NGRAM").has_drafter is False


def test_the_environment_tells_the_model() -> None:
    told = {"rehearsal": msgspec.to_builtins(COSTS), "drafters": {"p": {"name": "n", "method": None}}, "seed": 4}
    simulation = simulation_of({"SPECBENCH_SIMULATION": json.dumps(told)})
    assert simulation == Simulation(rehearsal=COSTS, drafters={"p": NamedDrafter(name="n")}, seed=4)
    assert simulation_of({}) == Simulation()


@pytest.mark.parametrize("told", ["{", '{"rehearsal": {"base_step_s": 0}}', '{"rehearsal": {"base_step": 1}}'])
def test_a_bad_model_is_one_sentence(told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SPECBENCH_SIMULATION", told)
    assert simulated.main(BASELINE) == 2
    assert capsys.readouterr().err.startswith("SPECBENCH_SIMULATION can't be read: ")
