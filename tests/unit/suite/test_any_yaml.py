"""Whatever the file holds, its reader gets a suite or a list of problems, never a traceback."""

import tempfile
from pathlib import Path
from typing import Any, Final

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from specbench.errors import SuiteError
from specbench.suite import Suite, load_suite

WORDS: Final = [
    *("name", "model", "engine", "server", "drafters", "baseline", "variants", "matrix", "workloads", "launches"),
    *("axes", "base", "exclude", "speculation", "method", "drafter", "draft_tokens", "steps", "topk", "ngram"),
    *("cuda_graph", "args", "env", "path", "custom", "eagle3", "prompt_lookup", "plain", "sglang", "jsonl"),
    *("dataset", "concurrency", "tensor_parallel", "hardware", "gpu_count", "rehearsal", "acceptance", "x-a", "<<"),
]
SCALARS: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.sampled_from(["${A}", "${B:-x}", "$${", "${", "{drafter}", "{", "--a b", ""]),
    st.text(max_size=6),
)
VALUES: Final = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=20,
)
GOOD: Final[dict[str, Any]] = {
    "name": "s",
    "model": "m",
    "engine": "sglang",
    "drafters": {"custom": {"path": "d", "method": "eagle3"}},
    "server": {"args": ["--a", 1], "env": {"A": "b"}},
    "workloads": [{"name": "w", "concurrency": [1, 2]}],
    "variants": [{"name": "plain"}, {"name": "a", "speculation": {"drafter": "custom", "draft_tokens": 4, "steps": 3}}],
    "matrix": {
        "axes": {"drafter": ["custom"], "draft_tokens": [4, 8], "cuda_graph": [True]},
        "base": {"speculation": {"topk": 1}},
        "exclude": [{"draft_tokens": 8}],
        "name": "{drafter}-{draft_tokens}-{cuda_graph}",
    },
}


def places(value: Any, keys: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [keys, *(place for key, part in inner for place in places(part, (*keys, key)))]


def changed(value: Any, keys: tuple[Any, ...], new: Any) -> Any:
    if not keys:
        return new
    copy = value.copy()
    copy[keys[0]] = changed(value[keys[0]], keys[1:], new)
    return copy


def attempt(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.yaml"
        path.write_bytes(data)
        found = read(path)
    if isinstance(found, SuiteError):
        last_line = len(data.decode("utf-8", "replace").splitlines()) + 1  # YAML breaks lines at \r, \x85 and \u2028 as well
        assert found.problems
        assert all(0 <= problem.line <= last_line for problem in found.problems)
        assert str(found).encode()


def read(path: Path) -> Suite | SuiteError:
    try:
        return load_suite(path, {"A": "1"}, {"engine": ("sglang",), "dataset": ("builtin", "jsonl")})
    except SuiteError as error:
        return error


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes(data: bytes) -> None:
    attempt(data)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab:-[]{}#&*!|>'\"%@`<, \n\t$?~01.", max_size=60))
def test_any_text(text: str) -> None:
    attempt(text.encode())


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_any_value(value: Any) -> None:
    attempt(yaml.safe_dump(value, allow_unicode=True).encode())


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_a_good_suite_with_one_or_two_parts_replaced(data: st.DataObject) -> None:
    value: Any = GOOD
    for _ in range(data.draw(st.integers(1, 2))):
        value = changed(value, data.draw(st.sampled_from(places(value)[1:] or [()])), data.draw(VALUES))
    attempt(yaml.safe_dump(value, allow_unicode=True).encode())


def test_the_suite_that_is_changed_is_good(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(GOOD))
    assert [variant.name for variant in load_suite(path, {}).variants] == ["plain", "a", "custom-4-graphs"]
