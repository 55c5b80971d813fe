"""Prometheus' text: what is kept, and what the counters say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbench.dialects.metrics import accept_length_between, gauged_accept_length, parse_metrics

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
    assert accept_length_between({}, after) == pytest.approx(1 + 150 / 120)
    before = {'vllm:spec_decode_num_drafts_total{engine="0"}': 60.0, "vllm:spec_decode_num_accepted_tokens_total": 60.0}
    assert accept_length_between(before, after) == pytest.approx(1 + 90 / 60)
    assert accept_length_between(after, after) is None
    assert accept_length_between({}, {}) is None


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
