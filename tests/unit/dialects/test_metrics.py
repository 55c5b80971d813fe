"""Prometheus' text: what is kept, and what the counters say."""

from hypothesis import given
from hypothesis import strategies as st

from specbench.dialects.metrics import (
    Counted,
    counted_between,
    counts_speculation,
    gauged_accept_length,
    parse_metrics,
)

TEXT = """\
# HELP vllm:spec_decode_num_drafts_total Number of drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 20.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 150 1795962849000
vllm:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 90
sglang:spec_accept_length{tp_rank="0"} 2.5
python_gc_objects_collected_total{generation="0"} 1
sglang:spec_accept_rate NaN
half a li"""


def test_only_what_concerns_speculation_is_kept() -> None:
    found = parse_metrics(TEXT)
    assert len(found) == 5
    assert found['vllm:spec_decode_num_drafts_total{engine="1",model_name="m"}'] == 20
    assert not any("python" in name or "rate" in name for name in found)


def test_counters_are_read_by_their_difference_over_all_labels() -> None:
    after = parse_metrics(TEXT)
    assert drafts_and_accepted({}, after) == (120, 150)
    before = {'vllm:spec_decode_num_drafts_total{engine="0"}': 60.0, "vllm:spec_decode_num_accepted_tokens_total": 60.0}
    assert drafts_and_accepted(before, after) == (60, 90)
    assert drafts_and_accepted(after, after) == (0, 0)
    assert counted_between({}, {}) is None


def drafts_and_accepted(before: dict[str, float], after: dict[str, float]) -> tuple[int, int]:
    found = counted_between(before, after)
    assert found is not None
    return found.draft_count, found.accepted_tokens


def test_a_gauge_counts_only_when_all_ranks_agree() -> None:
    assert gauged_accept_length(parse_metrics(TEXT)) == 2.5
    assert (
        gauged_accept_length({'sglang:spec_accept_length{tp_rank="0"}': 2.0, 'sglang:spec_accept_length{tp_rank="1"}': 3.0})
        is None
    )
    assert gauged_accept_length({"sglang:spec_accept_length": 0.0}) is None


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert all(value == value for value in parse_metrics(text).values())


def vllm(
    engine: int, drafts: int, accepted: int, proposed: int, output: int, positions: tuple[int, ...]
) -> dict[str, float]:
    where = f'engine="{engine}",model_name="m"'
    found = {
        f"vllm:spec_decode_num_drafts_total{{{where}}}": float(drafts),
        f"vllm:spec_decode_num_accepted_tokens_total{{{where}}}": float(accepted),
        f"vllm:spec_decode_num_draft_tokens_total{{{where}}}": float(proposed),
        f"vllm:generation_tokens_total{{{where}}}": float(output),
        f"vllm:spec_decode_num_drafts_created{{{where}}}": 1.7e9,
    }
    for place, value in enumerate(positions):
        found[f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{{where},position="{place}"}}'] = float(value)
    return found


def test_counters_by_position_and_engine_add_up() -> None:
    before = vllm(0, 10, 5, 30, 20, (3, 1, 1)) | vllm(1, 0, 0, 0, 0, (0, 0, 0))
    after = vllm(0, 30, 25, 90, 70, (13, 7, 5)) | vllm(1, 10, 10, 30, 21, (6, 4, 0))
    counted = counted_between(before, after)
    assert counted == Counted(
        draft_count=30, accepted_tokens=30, proposed_tokens=90, output_tokens=71, position_tokens=(16, 10, 4)
    )
    assert counted is not None
    assert sum(counted.position_tokens) == counted.accepted_tokens


def test_counters_that_fell_or_are_not_there_say_nothing() -> None:
    after = vllm(0, 30, 25, 90, 70, (13, 7, 5))
    assert counted_between(vllm(0, 31, 25, 90, 70, (13, 7, 5)), after) is None
    assert counted_between(after, {}) is None
    assert counted_between({}, {"vllm:generation_tokens_total": 5.0}) is None
    assert counts_speculation({"vllm:generation_tokens_total": 5.0})
    assert not counts_speculation({"sglang:generation_tokens_total": 5.0})
