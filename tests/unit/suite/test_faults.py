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


def blocks() -> list[tuple[str, list[str]]]:
    """Of `faults.txt`: lines added to the good suite, and after `=>` each fault that they are."""
    found = []
    for block in (HERE / "faults.txt").read_text(encoding="utf-8").split("\n\n"):
        lines = block.strip("\n").split("\n")
        expected = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
        found.append(("\n".join(lines[: -len(expected)]) + "\n", expected))
    return found


@pytest.mark.parametrize(("more", "expected"), blocks())
def test_faults(path: Path, more: str, expected: list[str]) -> None:
    assert appended(path, more) == expected


def test_too_many_variants(path: Path) -> None:
    axes = f"{{draft_tokens: {list(range(2, 66))}, tensor_parallel: {list(range(1, 65))}}}"
    assert appended(path, f"matrix: {{axes: {axes}}}\n") == ["1: the axes make 4096 variants; at most 1000 are allowed"]


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
        ("  - {name: b, tensor_parallel: 2, args: [--pp, 4]}\nhardware: {gpu_count: 4}", "1: a server with these args needs "
         "8 GPUs, but hardware.gpu_count is 4"),
        ("  - {name: b, args: [-dp=8]}\nhardware: {gpu_count: 4}", "1: a server with these args needs "
         "8 GPUs, but hardware.gpu_count is 4"),
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
        ("{name: b, concurrency: [1, 2, 1]}", "9: concurrency 1 is listed twice; list it once, or raise 'launches'"),
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
        (b"a: 1\nb: &b\n  <<: *b\n", "2: '<<' takes a mapping or a list of mappings"),
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
