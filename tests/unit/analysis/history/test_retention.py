"""Which runs go: the oldest, never a protected one, never the newest."""

from hypothesis import given
from hypothesis import strategies as st

from specbench.analysis.history.retention import KeptRun, rotation


def runs(*sizes: int) -> list[KeptRun]:
    return [KeptRun(name=f"run{place}", size_bytes=size) for place, size in enumerate(sizes)]


def names(sizes: tuple[int, ...], keep_bytes: int, *protected: str) -> list[str]:
    return [one.name for one in rotation(runs(*sizes), keep_bytes, protected).deleted]


def test_the_oldest_go_until_the_rest_fits() -> None:
    assert names((4, 4, 4, 4), 16) == []
    assert names((4, 4, 4, 4), 15) == ["run0"]
    assert names((4, 4, 4, 4), 8) == ["run0", "run1"]


def test_references_and_the_newest_stay_whatever_they_take() -> None:
    assert names((4, 4, 4, 4), 1, "run0", "run2") == ["run1"]
    assert rotation(runs(4, 4, 4, 4), 1, ("run0", "run2")).left_bytes == 12
    assert names((), 1) == []
    assert names((99,), 1) == []


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(0, 200), st.sets(st.integers(0, 11)))
def test_it_deletes_no_more_than_it_must(sizes: list[int], keep_bytes: int, protected: set[int]) -> None:
    safe = {f"run{place}" for place in protected}
    found = rotation(runs(*sizes), keep_bytes, safe)
    gone = {one.name for one in found.deleted}
    assert not gone & (safe | {f"run{len(sizes) - 1}"})
    assert found.left_bytes + found.freed_bytes == sum(sizes)
    if gone:
        assert found.left_bytes + found.deleted[-1].size_bytes > keep_bytes
    if found.left_bytes > keep_bytes:
        assert {f"run{place}" for place in range(len(sizes) - 1)} <= gone | safe
