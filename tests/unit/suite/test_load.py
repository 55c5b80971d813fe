"""From a good file to a resolved suite."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from specbench.suite import Server, Suite, load_suite

HEAD = """\
name: s
model: m
engine: sglang
drafters:
  custom: d/custom
  other: {path: d/other, method: eagle3, revision: abc}
workloads:
  - name: chat
variants:
  - name: plain
"""


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def read(text: str, **environ: str) -> Suite:
        path = tmp_path / "suite.yaml"
        path.write_text(text)
        return load_suite(path, environ)

    return read


def names(suite: Suite) -> list[str]:
    return [variant.name for variant in suite.variants]


def test_defaults(load: Any, tmp_path: Path) -> None:
    suite = load(HEAD)
    assert suite.path == str(tmp_path / "suite.yaml")
    assert (suite.model.path, suite.baseline, suite.launches, suite.sources) == ("m", "plain", 1, ())
    assert suite.drafters["custom"].path == "d/custom"
    assert suite.drafters["other"].method == "eagle3"
    assert suite.variant("plain").engine == "sglang"
    assert suite.variant("plain").server == Server()
    with pytest.raises(KeyError):
        suite.variant("other")


def test_a_variant_overrides_the_common_server(load: Any) -> None:
    suite = load(
        HEAD
        + """\
  - name: own
    engine: external
    args: [--b, 2]
    env: {B: 20, C: 30}
    tensor_parallel: 2
    stop_grace_s: 1
    url: http://localhost:1
server:
  args: [--a, 0.85]
  env: {A: 1, B: 2}
  tensor_parallel: 8
  host: 0.0.0.0
"""
    )
    own = suite.variant("own")
    assert own.engine == "external"
    assert own.server.args == ("--a", 0.85, "--b", 2)
    assert own.server.env == {"A": 1, "B": 20, "C": 30}
    assert (own.server.tensor_parallel, own.server.host, own.server.stop_grace_s) == (2, "0.0.0.0", 1.0)
    assert own.server.url == "http://localhost:1"
    assert suite.variant("plain").server.args == ("--a", 0.85)
    assert suite.variant("plain").server.env == {"A": 1, "B": 2}


def test_method_and_steps_are_written_out(load: Any) -> None:
    suite = load(HEAD + "  - {name: a, speculation: {drafter: other, draft_tokens: 4}}\n")
    speculation = suite.variant("a").speculation
    assert (speculation.method, speculation.steps, speculation.topk) == ("eagle3", 3, 1)


def test_the_silent_bug_can_be_asked_for(load: Any) -> None:
    """`eagle` with a drafter that says eagle3: what SGLang accepts without a word must load here too."""
    suite = load(HEAD + "  - {name: a, speculation: {method: eagle, drafter: other, draft_tokens: 4}}\n")
    assert suite.variant("a").speculation.method == "eagle"
    assert suite.drafter_of(suite.variant("a")).method == "eagle3"


@pytest.mark.parametrize(
    ("speculation", "steps"),
    [
        ("{method: eagle, drafter: custom, draft_tokens: 64, topk: 8, steps: 5}", 5),
        ("{method: prompt_lookup, draft_tokens: 8, ngram: 3}", None),
        ("{method: mtp, draft_tokens: 4, steps: 3}", 3),
        ("{method: dflash, drafter: custom, draft_tokens: 16}", None),
    ],
)
def test_methods_that_load(load: Any, speculation: str, steps: int | None) -> None:
    assert load(f"{HEAD}  - {{name: a, speculation: {speculation}}}\n").variant("a").speculation.steps == steps


def test_matrix_follows_the_named_and_the_first_axis_changes_slowest(load: Any) -> None:
    suite = load(
        HEAD
        + """\
matrix:
  axes:
    drafter: [custom, other]
    draft_tokens: [4, 8]
    cuda_graph: [true, false]
  base:
    tensor_parallel: 8
    speculation: {method: eagle3}
  exclude:
    - {drafter: other, cuda_graph: false}
    - {draft_tokens: 8, cuda_graph: false}
"""
    )
    assert names(suite) == [
        "plain",
        "custom-d4-graphs",
        "custom-d4-eager",
        "custom-d8-graphs",
        "other-d4-graphs",
        "other-d8-graphs",
    ]
    eager = suite.variant("custom-d4-eager")
    assert (eager.cuda_graph, eager.server.tensor_parallel, eager.speculation.steps) == (False, 8, 3)


def test_matrix_names(load: Any) -> None:
    axes = "{axes: {topk: [2], steps: [3], method: [eagle], tensor_parallel: [4], engine: [x]}"
    base = "base: {speculation: {drafter: custom, draft_tokens: 6}}"
    assert names(load(f"{HEAD}matrix: {axes}, {base}}}\n"))[1:] == ["k2-s3-eagle-tp4-x"]
    named = "name: 'n{steps}.{topk}'"
    assert names(load(f"{HEAD}matrix: {axes}, {base}, {named}}}\n"))[1:] == ["n3.2"]


def test_a_matrix_over_servers_alone_does_not_speculate(load: Any) -> None:
    suite = load(HEAD + "matrix: {axes: {cuda_graph: [true, false]}}\n")
    assert [variant.speculation for variant in suite.variants] == [None, None, None]


def test_baseline_is_the_first_without_speculation(load: Any) -> None:
    text = HEAD.replace("- name: plain", "- {name: a, speculation: {drafter: other, draft_tokens: 4}}")
    assert load(text + "  - name: b\n  - name: c\n").baseline == "b"
    assert load(text + "  - name: b\n  - name: c\nbaseline: c\n").baseline == "c"


def test_anchors_merges_and_free_keys(load: Any) -> None:
    suite = load(
        HEAD
        + """\
  - &spec
    name: a
    speculation: &how {drafter: other, draft_tokens: 4}
  - <<: *spec
    name: b
  - <<: [{cuda_graph: false}, *spec]
    name: c
    speculation: {<<: *how, draft_tokens: 8}
x-notes: {anything: [goes, here]}
"""
    )
    assert suite.variant("b").speculation == suite.variant("a").speculation
    assert suite.variant("c").speculation.draft_tokens == 8
    assert suite.variant("c").cuda_graph is False


def test_variables(load: Any) -> None:
    text = HEAD.replace("d/custom", "${HERE}/c-${KIND:-none}").replace("model: m", "model: '${EMPTY:-a:-b}$$5'")
    more = "launches: ${TIMES:-3}\nserver: {env: {A: '${TIMES:-3}', B: \"${ZIP}\", C: $HOME}}\n"
    suite = load(text + more, HERE="/data", ZIP="0123", EMPTY="")
    assert suite.drafters["custom"].path == "/data/c-none"
    assert suite.model.path == "a:-b$5"
    assert suite.launches == 3
    assert suite.variant("plain").server.env == {"A": "3", "B": "0123", "C": "$HOME"}
    assert suite.sources == ("EMPTY", "HERE", "KIND", "TIMES", "ZIP")


@pytest.mark.parametrize("word", ["0123", "1_000", "12:30:00", "1e3", "2026-01-01", "0x1f", "+1", "1.50"])
def test_a_variable_reaches_the_server_as_it_was_exported(load: Any, word: str) -> None:
    suite = load(HEAD + "server:\n  args:\n    - ${WORD}\n", WORD=word)
    assert [str(one) for one in suite.variant("plain").server.args] == [word]


@pytest.mark.parametrize("word", ["0123", "12:30:00", "2026-01-01", "0x1f", "1:2.5"])
def test_what_yaml_would_turn_into_another_number_stays_text(load: Any, word: str) -> None:
    assert load(f"{HEAD}server: {{args: [a, {word}]}}\n").variant("plain").server.args == ("a", word)


def test_a_resolved_suite_survives_json(load: Any) -> None:
    suite = load(HEAD + "  - {name: a, speculation: {drafter: other, draft_tokens: 4}}\n")
    assert msgspec.json.decode(msgspec.json.encode(suite), type=Suite) == suite
