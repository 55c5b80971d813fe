"""Every kind of mistake in a suite file: its line and its words."""

from pathlib import Path
from typing import Final

import pytest

from specbench.errors import SuiteError
from specbench.suite import load_suite

KNOWN: Final = {"engine": ("external", "openvino", "sglang"), "dataset": ("builtin", "jsonl")}
HERE: Final = Path(__file__).parent

GOOD: Final = """\
name: s
model: m
engine: sglang
drafters:
  custom: d/custom
  other: {path: d/other, method: eagle3}
workloads:
  - name: chat
variants:
  - name: plain
"""
LINES: Final = GOOD.count("\n")


def faults(path: Path, text: str | bytes, environ: dict[str, str] | None = None) -> list[str]:
    """`line: message` of each problem."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SuiteError) as caught:
        load_suite(path, environ or {}, KNOWN)
    assert {problem.path for problem in caught.value.problems} == {str(path)}
    return [f"{problem.line}: {problem.message}" for problem in caught.value.problems]


def appended(path: Path, more: str, environ: dict[str, str] | None = None) -> list[str]:
    """The faults of the good suite with lines added; their numbers count from the first added line."""
    found = [one.partition(": ") for one in faults(path, GOOD + more, environ)]
    return [f"{int(line) - LINES}: {message}" for line, _, message in found]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "suite.yaml"


STRUCTURE: Final = {
    "seeed: 1": "1: unknown key 'seeed'; did you mean 'seed'?",
    "zzz: 1": "1: unknown key 'zzz'; there are: name, model, engine, server, drafters, baseline, variants, matrix, "
    "workloads, launches, seed, hardware, expected, warmup, rehearsal",
    "launches: many": "1: 'launches' must be a whole number, not the text 'many'",
    "launches: 2.0": "1: 'launches' must be a whole number, not 2.0",
    "launches: 0": "1: 'launches' must be at least 1, not 0",
    "launches: 5000": "1: 'launches' must be at most 1000, not 5000",
    "launches: 99999999999999999999": "1: '99999999999999999999' is not a number that can be used; the largest is 2^53",
    "expected: {startup_s: .nan}": "1: '.nan' is not a number that can be used; the largest is 2^53",
    "expected: {startup_s: -1}": "1: 'startup_s' must be more than 0, not -1",
    "hardware:": "1: 'hardware' must be a mapping, not empty",
    "server: {args: --foo}": "1: 'args' must be a list, not the text '--foo'",
    "server: {args: [on]}": "1: entry 1 of 'args' must be text or a number, not true; put quotes around it",
    "server:\n  env:\n    A-B: 1": "3: 'A-B' is no environment variable's name: letters, digits and _ only, not beginning "
    "with a digit",
    "server: {host: ''}": "1: 'host' is empty",
    "server: {python: 3}": "1: 'python' must be text, not 3; put quotes around it",
    "launches: 1\nlaunches: 2": "2: key 'launches' is given twice; first on line 11",
    "? [a]\n: 1": "1: a key must be plain text",
    "seed: !!python/object:os.system x": "1: tag '!!python/object:os.system' is not allowed",
    "matrix: {axes: {}}": "1: 'axes' is empty; give at least one key",
    "matrix: {axes: {topk: []}}": "1: 'topk' is empty; give at least one entry",
    "matrix: {axes: {cuda_graph: [true, true]}}": "1: 'cuda_graph' holds the same entry twice",
    "matrix: {axes: {topk: 8}}": "1: 'topk' must be a list, not 8; write [8]",
    "matrix: {}": "1: key 'axes' is missing in 'matrix'",
}


@pytest.mark.parametrize("more", STRUCTURE)
def test_wrong_shape(path: Path, more: str) -> None:
    assert appended(path, more + "\n") == [STRUCTURE[more]]


VARIANTS: Final = {
    "- {}": "1: key 'name' is missing in entry 2 of 'variants'",
    "- name: a b": "1: 'name': 'a b' is no name: letters, digits and . _ + - only, beginning with a letter or digit, "
    "80 at most",
    '- name: "a\\n"': "1: 'name': 'a\\n' is no name: letters, digits and . _ + - only, beginning with a letter or digit, "
    "80 at most",
    "- name: plain": "1: variant name 'plain' is used twice; first on line 10",
    "- {name: a, engine: sgland}": "1: engine 'sgland' does not exist; did you mean 'sglang'?",
    "- {name: a, engine: x}": "1: engine 'x' does not exist; there are: external, openvino, sglang",
    "- {name: a, args: [--a b]}": "1: '--a b' would reach the server as one word; write two: --a, 'b'",
    "- name: a\n    speculation:\n      draft_tokens: 4": "2: no method: give 'method' here or on the drafter",
    "- name: a\n    speculation:\n      drafter: custom\n      draft_tokens: 4": "2: no method: give 'method' here or on the "
    "drafter",
    "- name: a\n    speculation:\n      drafter: other": "2: key 'draft_tokens' is missing in 'speculation'",
    "- {name: a, speculation: {draft_tokens: 1, drafter: other}}": "1: 'draft_tokens' must be at least 2, not 1",
    "- {name: a, speculation: {draft_tokens: 4, drafter: othr}}": "1: drafter 'othr' is not under 'drafters'; did you mean "
    "'other'?",
    "- {name: a, speculation: {draft_tokens: 4, drafter: zz}}": "1: drafter 'zz' is not under 'drafters'; there are: custom, "
    "other",
    "- {name: a, speculation: {draft_tokens: 4, drafter: custom, method: eagl}}": "1: 'method' must be one of dflash, "
    "draft_model, eagle, eagle3, mtp, prompt_lookup, not the text 'eagl'; did you mean 'eagle'?",
    "- {name: a, speculation: {draft_tokens: 4, method: eagle3}}": "1: method eagle3 needs a 'drafter'",
    "- {name: a, speculation: {draft_tokens: 4, method: draft_model}}": "1: method draft_model needs a 'drafter'",
    "- {name: a, speculation: {draft_tokens: 4, method: prompt_lookup, drafter: custom}}": "1: prompt_lookup drafts from the "
    "prompt itself: remove 'drafter'",
    "- {name: a, speculation: {draft_tokens: 4, method: prompt_lookup, steps: 3}}": "1: 'steps' has no meaning with "
    "prompt_lookup: remove it",
    "- {name: a, speculation: {draft_tokens: 4, drafter: other, ngram: 3}}": "1: 'ngram' belongs to prompt_lookup, not to "
    "eagle3",
    "- name: a\n    speculation:\n      drafter: other\n      draft_tokens: 8\n      steps: 3": "4: draft_tokens 8 with steps 3 "
    "and topk 1: the server would silently verify 4 tokens (steps + 1); write draft_tokens: 4, or steps: 7",
    "- {name: a, speculation: {draft_tokens: 8, drafter: other, topk: 4}}": "1: key 'steps' is missing: with topk 4 "
    "draft_tokens does not imply it",
}


@pytest.mark.parametrize("more", VARIANTS)
def test_wrong_variant(path: Path, more: str) -> None:
    assert appended(path, f"  {more}\n") == [VARIANTS[more]]


MATRIX: Final = {
    "matrix: {axes: {drafter: [oter], draft_tokens: [4]}}": "1: drafter 'oter' is not under 'drafters'; did you mean 'other'?",
    "matrix:\n  axes: {drafter: [other], draft_tokens: [4]}\n  exclude:\n    - {draft_tokens: 5}": "4: this excludes nothing: "
    "no combination has draft_tokens: 5",
    "matrix:\n  axes: {cuda_graph: [true]}\n  exclude:\n    - {steps: 5}": "4: the matrix has no axis 'steps'; there are: "
    "cuda_graph",
    "matrix:\n  axes: {cuda_graph: [true]}\n  exclude:\n    - {cuda_graph: true}": "3: the matrix excludes every variant that "
    "it makes",
    "matrix:\n  axes: {cuda_graph: [true]}\n  exclude:\n    - {}": "4: entry 1 of 'exclude' is empty; give at least one key",
    "matrix:\n  name: x\n  axes: {cuda_graph: [true, false]}": "2: variant name 'x' is used twice; the matrix's name must "
    "mention every axis",
    "matrix:\n  name: '{cuda_grap}'\n  axes: {cuda_graph: [true]}": "2: the template may hold the matrix's axes only, not "
    "{cuda_grap}; did you mean 'cuda_graph'?",
    "matrix:\n  name: '{cuda_graph'\n  axes: {cuda_graph: [true]}": "2: '{cuda_graph' is no template: expected '}' before end "
    "of string",
    "matrix:\n  name: 'a {cuda_graph}'\n  axes: {cuda_graph: [true]}": "2: the matrix would call a variant 'a graphs', which is "
    "no name: letters, digits and . _ + - only, 80 at most",
    "matrix: {axes: {drafters: [custom]}}": "1: unknown key 'drafters'; did you mean 'drafter'?",
    "matrix: {axes: {drafter: [other]}, base: {speculation: {draft_token: 4}}}": "1: key 'draft_tokens' is missing in "
    "'speculation'",
    f"matrix: {{axes: {{draft_tokens: {list(range(2, 66))}, tensor_parallel: {list(range(1, 65))}}}}}": "1: the axes make 4096 "
    "variants; at most 1000 are allowed",
}


@pytest.mark.parametrize("more", MATRIX)
def test_wrong_matrix(path: Path, more: str) -> None:
    assert MATRIX[more] in appended(path, more + "\n")


def test_a_faulty_axis_is_the_only_complaint(path: Path) -> None:
    more = "matrix:\n  name: '{topk}-{cuda_graph}'\n  axes: {topk: [0, 2], cuda_graph: [true]}\n  exclude: [{topk: 1}]\n"
    assert [one for one in appended(path, more) if "topk" in one and "steps" not in one] == [
        "3: entry 1 of 'topk' must be at least 1, not 0"
    ]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("baseline: plan", "1: baseline 'plan' is no variant; did you mean 'plain'?"),
        (
            "  - {name: b, speculation: {draft_tokens: 4, drafter: other}}\nbaseline: b",
            "2: baseline 'b' speculates; name a variant without; there are: plain",
        ),
        ("  - {name: b, tensor_parallel: 8}\nhardware: {gpu_count: 4}", "1: tensor_parallel 8 needs as many GPUs, but "
         "hardware.gpu_count is 4"),
    ],
)  # fmt: skip
def test_wrong_reference(path: Path, more: str, expected: str) -> None:
    assert appended(path, more + "\n") == [expected]


def test_no_engine_anywhere(path: Path) -> None:
    assert faults(path, GOOD.replace("engine: sglang", "seed: 1")) == [
        "10: no engine: give 'engine' here or at the top of the file"
    ]


def test_no_variant_without_speculation(path: Path) -> None:
    text = GOOD.replace("- name: plain", "- {name: a, speculation: {draft_tokens: 4, drafter: other}}")
    assert faults(path, text) == ["1: no variant is without speculation: add one, such as '- name: baseline'"]


def test_no_variants(path: Path) -> None:
    assert faults(path, GOOD.replace("variants:\n  - name: plain\n", "")) == [
        "1: no variants: give 'variants', 'matrix' or both"
    ]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("{name: chat}", "9: workload name 'chat' is used twice; first on line 8"),
        ("{name: b, dataset: builtn}", "9: dataset 'builtn' does not exist; did you mean 'builtin'?"),
        ("{name: b, dataset: jsonl}", "9: dataset jsonl needs 'path', the file to read"),
        ("{name: b, path: x}", "9: 'path' has no meaning with the built-in prompts; write dataset: jsonl"),
        ("{name: b, concurrency: 8}", "9: 'concurrency' must be a list, not 8; write [8]"),
        ("{name: b, concurrency: [1, 0]}", "9: entry 2 of 'concurrency' must be at least 1, not 0"),
        ("{name: b, api: chatt}", "9: 'api' must be one of chat, generate, not the text 'chatt'; did you mean 'chat'?"),
    ],
)
def test_wrong_workload(path: Path, workload: str, expected: str) -> None:
    assert faults(path, GOOD.replace("variants:", f"  - {workload}\nvariants:")) == [expected]


VARIABLES: Final = {
    "${NOWHERE}/x": "environment variable NOWHERE is not set; export it or write ${NOWHERE:-folder}",
    "${EMPTY}/x": "environment variable EMPTY is empty; export it or write ${EMPTY:-folder}",
    "a${b": "'${' begins a variable: write ${NAME} or ${NAME:-default}, and $$ for a dollar sign",
    "${A B}": "'${' begins a variable: write ${NAME} or ${NAME:-default}, and $$ for a dollar sign",
}


@pytest.mark.parametrize("text", VARIABLES)
def test_wrong_variable(path: Path, text: str) -> None:
    assert appended(path, f"baseline: plain\nserver:\n  log: {text}\n", {"EMPTY": ""}) == [f"3: {VARIABLES[text]}"]


def test_an_unset_variable_hides_no_other_mistake_and_makes_none(path: Path) -> None:
    assert appended(path, "launches: ${TIMES}\nseeed: 1\n") == [
        "1: environment variable TIMES is not set; export it or write ${TIMES:-folder}",
        "2: unknown key 'seeed'; did you mean 'seed'?",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "1: the file is empty; a suite has keys such as name, model, variants"),
        (b"- a\n", "1: the file holds no mapping; a suite has keys such as name, model, variants"),
        (b"a: 1\nb: \xff\n", "2: byte 0xff is not UTF-8 text"),
        (b"a: 1\nb: \x07\n", "2: character U+0007 is not allowed in YAML"),
        (b"a: 1\n\tb: 2\n", "2: a tab can't begin a token in YAML; indent with spaces"),
        (b"a: 1\n---\nb: 1\n", "2: a suite file is one YAML document; remove the second '---'"),
        (b"a: 1\nb: {c: ${D}}\n", "2: not valid YAML: expected ',' or '}', but got '{'; text that holds ${…} needs "
         "quotes inside { } and [ ]"),
        (b"a: 1\nb: *c\n", "2: not valid YAML: found undefined alias 'c'"),
        (b"a: " + b"[" * 40 + b"]" * 40, "1: nested deeper than 32 levels"),
        (b"a: &a [*a]\n", "1: an alias holds itself, or nests deeper than 32 levels"),
        (b"a: 1\nb: &b\n  <<: *b\n", "3: '<<' takes a mapping or a list of mappings"),
        (b"x" * ((1 << 20) + 1), "0: a suite file has at most 1024 KiB"),
    ],
)  # fmt: skip
def test_no_suite_at_all(path: Path, text: bytes, expected: str) -> None:
    assert expected in faults(path, text)


def test_an_alias_bomb_is_refused(path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    found = faults(path, "\n".join(lines))
    assert len(found) == 1
    assert found[0].endswith("with its aliases the file has more than 50000 values")


def test_a_merge_bomb_is_refused(path: Path) -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)]
    assert faults(path, "\n".join(lines))[0].endswith("with its aliases the file has more than 50000 values")


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "kimi.yaml").write_text(GOOD)
    with pytest.raises(SuiteError, match=r"kimmi\.yaml: no such file; did you mean '.*kimi\.yaml'\?$"):
        load_suite(tmp_path / "kimmi.yaml", {})
    with pytest.raises(SuiteError, match="the suite can't be read: is a directory"):
        load_suite(tmp_path, {})


def test_a_mistake_in_an_anchor_is_told_once_and_where_it_stands(path: Path) -> None:
    more = "  - {name: a, speculation: *s}\n  - {name: b, speculation: *s}\n"
    text = "x-common: &s {drafter: othr, draft_tokens: 4}\n" + GOOD + more
    assert faults(path, text) == ["1: drafter 'othr' is not under 'drafters'; did you mean 'other'?"]


def test_all_at_once(path: Path) -> None:
    """The wording of a whole list of problems is kept in a file, for people to read."""
    found = faults(path, (HERE / "bad.yaml").read_bytes())
    assert "\n".join(found) + "\n" == (HERE / "bad.txt").read_text(encoding="utf-8")
