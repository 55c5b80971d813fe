"""The simulated engine's numbers, from the pure model: no clock, no server. SIMULATED figures throughout."""

import json
import random
from functools import cache
from pathlib import Path

import pytest

from specbench.datasets.builtin import every_prompt
from specbench.embedded.cost_model import CostModel, Drafting, Draws, drafter_kind
from specbench.suite import load_suite
from specbench.suite.rehearsal import Acceptance, Rehearsal

KIMI = load_suite(str(Path(__file__).parents[3] / "suites" / "kimi.yaml"), {})
CATEGORIES = ("chat", "code", "math")
LONG_TOKENS = 512
SEEDS = range(4)


def eagle3(drafter: str, draft_tokens: int = 4, algorithm: str = "EAGLE3") -> Drafting:
    return Drafting(
        algorithm=algorithm, draft_tokens=draft_tokens, steps=draft_tokens - 1, topk=1, drafter=drafter, kind="eagle3"
    )


@cache
def accept_length(
    drafting: Drafting,
    categories: tuple[str, ...] = CATEGORIES,
    answer_tokens: int = LONG_TOKENS,
    seeds: range | tuple[int, ...] = SEEDS,
) -> float:
    """Pooled over the built-in prompts of these categories, each answered to the end."""
    model, correct, verify = CostModel(KIMI.rehearsal, drafting), 0, 0
    for seed in seeds:
        for prompt in every_prompt():
            if prompt.category in categories:
                draws, position = Draws(seed, prompt.turns[0]), 1
                while position < answer_tokens:
                    accepted = draws.accepted(position, model.chances(prompt.category))
                    correct, verify, position = correct + accepted, verify + 1, position + accepted + 1
    return 1 + correct / verify


def per_user_tps(drafting: Drafting | None, batch: int = 1, *, graph: bool) -> float:
    tokens = accept_length(drafting) if drafting else 1.0
    return tokens / CostModel(KIMI.rehearsal, drafting).decode_s(batch, graph=graph)


def test_the_users_history() -> None:
    assert per_user_tps(None, graph=True) == pytest.approx(90, abs=1)
    assert accept_length(eagle3("custom")) == pytest.approx(2.1, abs=0.03)
    assert CostModel(KIMI.rehearsal, eagle3("custom")).decode_s(1, graph=False) == pytest.approx(0.037, abs=0.0005)
    assert per_user_tps(eagle3("custom"), graph=False) == pytest.approx(57, abs=1)
    assert per_user_tps(eagle3("aq-medai"), graph=False) == pytest.approx(50.5, abs=1)


@pytest.mark.parametrize("answer_tokens", [32, 128, 512])
def test_acceptance_does_not_depend_on_the_answers_length(answer_tokens: int) -> None:
    assert accept_length(eagle3("custom"), answer_tokens=answer_tokens) == pytest.approx(2.1, abs=0.06)


def test_with_graphs_the_custom_drafter_wins_alone_and_loses_its_edge_in_a_crowd() -> None:
    def speedup(batch: int) -> float:
        return per_user_tps(eagle3("custom"), batch, graph=True) / per_user_tps(None, batch, graph=True)

    assert speedup(1) == pytest.approx(1.3, abs=0.05)
    assert 1.0 < speedup(8) < speedup(1)
    assert 0.8 < speedup(32) < 1.0


def test_without_graphs_it_loses_against_the_baseline_with_them() -> None:
    assert per_user_tps(eagle3("custom"), graph=False) < 0.7 * per_user_tps(None, graph=True)
    assert per_user_tps(eagle3("custom"), graph=False) > per_user_tps(None, graph=False)


def test_longer_drafts_accept_a_little_more_and_cost_more() -> None:
    for name in ("custom", "aq-medai"):
        lengths = [accept_length(eagle3(name, count), seeds=(0,)) for count in (4, 8, 16)]
        speeds = [per_user_tps(eagle3(name, count), graph=True) for count in (4, 8, 16)]
        assert lengths[0] < lengths[1] <= lengths[2] < lengths[0] + 0.4
        assert speeds[0] > speeds[1] > speeds[2]


def test_code_is_accepted_best_and_chat_least() -> None:
    for name in ("custom", "aq-medai"):
        chat, maths, code = (accept_length(eagle3(name), (category,)) for category in ("chat", "math", "code"))
        assert chat < maths < code
    assert accept_length(eagle3("aq-medai")) < accept_length(eagle3("custom"))


@pytest.mark.parametrize("word", ["EAGLE", "NEXTN"])
@pytest.mark.parametrize("draft_tokens", [4, 16])
def test_an_eagle3_drafter_under_the_wrong_word_accepts_nothing(word: str, draft_tokens: int) -> None:
    drafting = eagle3("custom", draft_tokens, word)
    assert accept_length(drafting, seeds=(0,)) == 1.0
    right = CostModel(KIMI.rehearsal, eagle3("custom", draft_tokens))
    assert CostModel(KIMI.rehearsal, drafting).decode_s(1, graph=True) == right.decode_s(1, graph=True)


def test_another_drafter_under_eagle_works() -> None:
    drafting = Drafting(algorithm="EAGLE", draft_tokens=4, steps=3, drafter="custom", kind="other")
    assert accept_length(drafting, seeds=(0,)) > 1.8


def test_draws_are_the_prompts_own() -> None:
    chances = (0.6, 0.5, 0.4)
    alone = [Draws(7, "a prompt").accepted(position, chances) for position in range(50)]
    mixed, other = Draws(7, "a prompt"), Draws(7, "another prompt")
    order = list(range(50))
    random.Random(1).shuffle(order)
    seen = {position: (mixed.accepted(position, chances), other.accepted(position, chances)) for position in order}
    assert [seen[position][0] for position in range(50)] == alone
    assert [seen[position][1] for position in range(50)] != alone
    assert [Draws(8, "a prompt").accepted(position, chances) for position in range(50)] != alone


def test_draws_follow_the_chain_rule() -> None:
    chances, draws, count = (0.7, 0.5, 0.9), Draws(0, "prompt"), 20_000
    outcomes = [draws.accepted(4 * step, chances) for step in range(count)]
    shares = [sum(outcome >= position for outcome in outcomes) / count for position in (1, 2, 3)]
    assert shares == pytest.approx([0.7, 0.35, 0.315], abs=0.012)


def test_words_are_the_prompts_own_and_a_longer_answer_begins_with_the_shorter() -> None:
    words = Draws(1, "prompt").words(200)
    assert words[:64] == Draws(1, "prompt").words(64)
    assert words != Draws(2, "prompt").words(200)
    assert len(words) == 200
    assert all(len(word.split()) == 1 for word in words)
    text = "".join(words)
    assert text[0].isupper()
    assert text.count(".") > 10


def test_an_answer_ends_by_itself_as_often_as_told() -> None:
    lengths = [Draws(seed, "prompt").answer_length(10_000, 0.02) for seed in range(2000)]
    assert sum(lengths) / len(lengths) == pytest.approx(50, rel=0.06)
    assert Draws(0, "prompt").answer_length(32, 0.0) == 33
    assert Draws(0, "prompt").answer_length(32, 1.0) == 1


def test_a_step_costs_more_for_each_thing_that_costs() -> None:
    costs = Rehearsal()
    plain, drafted = CostModel(costs, None), CostModel(costs, eagle3("x"))
    assert plain.decode_s(1, graph=True) == costs.base_step_s
    assert plain.decode_s(1, graph=False) == pytest.approx(costs.base_step_s + costs.target_launch_s)
    assert plain.decode_s(11, graph=True) == pytest.approx(costs.base_step_s * (1 + 10 * costs.batch_slope_ratio))
    without_graph_s = drafted.decode_s(1, graph=False) - drafted.decode_s(1, graph=True)
    assert without_graph_s == pytest.approx(costs.target_launch_s + 3 * costs.draft_launch_s)
    assert plain.verify_growth(32) == 1.0
    assert 1 < drafted.verify_growth(1) < drafted.verify_growth(8) < drafted.verify_growth(32)
    assert plain.prefill_s(0) == costs.prefill_s
    assert plain.prefill_s(1000) == pytest.approx(costs.prefill_s + 1000 * costs.prefill_token_s)


def test_prompt_lookup_has_no_drafter_and_copies_well() -> None:
    lookup = Drafting(algorithm="NGRAM", draft_tokens=8, steps=1, topk=10)
    model = CostModel(Rehearsal(), lookup)
    eager_s, graph_s = model.decode_s(1, graph=False), model.decode_s(1, graph=True)
    assert eager_s - graph_s == pytest.approx(Rehearsal().target_launch_s)
    assert accept_length(lookup, ("copy",)) > 2.5
    assert accept_length(lookup, ("chat",)) < 1.5


def test_chances_of_later_positions() -> None:
    acceptance = Acceptance(first_ratio={"code": 0.8}, other_ratio=0.5, decay_ratio=0.9)
    assert acceptance.chances("code", 3) == pytest.approx((0.8, 0.72, 0.648))
    assert acceptance.chances("anything", 1) == (0.5,)
    assert Acceptance(second_ratio=0.7, decay_ratio=1.0).chances("x", 3) == (0.6, 0.7, 0.7)


def test_branches_raise_the_chances() -> None:
    chain = CostModel(Rehearsal(), eagle3("x", 4))
    tree = CostModel(Rehearsal(), Drafting(algorithm="EAGLE3", draft_tokens=13, steps=3, topk=4, kind="eagle3"))
    assert len(tree.chances("code")) == len(chain.chances("code")) == 3
    assert all(wide > narrow for wide, narrow in zip(tree.chances("code"), chain.chances("code"), strict=True))


@pytest.mark.parametrize(
    ("architectures", "kind"),
    [
        (["LlamaForCausalLMEagle3"], "eagle3"),
        (["Eagle3DeepseekV2ForCausalLM"], "eagle3"),
        (["LlamaForCausalLMEagle"], "other"),
    ],
)
def test_a_config_says_what_a_drafter_is(tmp_path: Path, architectures: list[str], kind: str) -> None:
    folder = tmp_path / "my-eagle3"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"architectures": architectures}))
    assert drafter_kind(str(folder), "eagle3") == kind


@pytest.mark.parametrize("config", ["{", "[]", '{"architectures": null}', '{"architectures": [{}]}'])
def test_a_config_that_says_nothing_leaves_it_to_the_name(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config)
    assert drafter_kind(str(tmp_path), "eagle3") == "eagle3"
    assert drafter_kind(str(tmp_path), "eagle") == "other"


def test_without_a_config_the_suite_or_the_name_says_it() -> None:
    assert drafter_kind("AQ-MedAI/Kimi-K25-eagle3", None) == "eagle3"
    assert drafter_kind("/nowhere/kimi_EAGLE-3", "eagle") == "eagle3"
    assert drafter_kind("/nowhere/drafter", "eagle3") == "eagle3"
    assert drafter_kind("/nowhere/drafter", "eagle") == "other"
    assert drafter_kind(None, None) == "other"
