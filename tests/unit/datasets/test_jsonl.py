"""A user's own prompts: every form a line may have, and one sentence for every way to get it wrong."""

from pathlib import Path

import pytest

from specbench.datasets import Prompt, jsonl
from specbench.errors import SpecbenchError
from specbench.suite import Workload


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "mine.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def complaint(path: Path) -> str:
    with pytest.raises(SpecbenchError) as caught:
        jsonl.read_prompts(path)
    return str(caught.value)


def test_all_forms(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '{"prompt": "One"}\n'
        "\n"
        '{"id": 81, "category": "code", "turns": ["Two", "Three"], "system": "Be brief."}\r\n'
        '{"id": "x", "answer": "ignored", "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"},'
        ' {"role": "assistant", "content": "A"}, {"role": "user", "content": "R"}]}',
    )
    assert jsonl.read_prompts(path) == (
        Prompt(id="mine-1", category="mine", turns=("One",)),
        Prompt(id="81", category="code", turns=("Two", "Three"), system="Be brief."),
        Prompt(id="x", category="mine", turns=("Q", "R"), system="S"),
    )


def test_a_byte_order_mark_and_a_line_separator_inside_a_text(tmp_path: Path) -> None:
    path = written(tmp_path, b'\xef\xbb\xbf{"prompt": "a\xe2\x80\xa8b"}\n')
    assert jsonl.read_prompts(path)[0].turns == ("a\u2028b",)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "is not JSON ("),
        ("[" * 100_000, "is not JSON ("),
        ('"text"', 'is not a JSON object; it should be like {"prompt": "…"}'),
        ('{"promt": "a"}', "has none of `prompt`, `turns`, `messages`; is `promt` meant?"),
        ("{}", "has none of `prompt`, `turns`, `messages`"),
        ('{"prompt": "a", "turns": ["b"]}', "has `prompt` and `turns`; it should have one of them"),
        ('{"prompt": 3}', "`prompt` should be a text that isn't empty"),
        ('{"prompt": " "}', "`prompt` should be a text that isn't empty"),
        ('{"turns": []}', "`turns` should be a list of texts, at least one"),
        ('{"turns": "a"}', "`turns` should be a list of texts, at least one"),
        ('{"turns": ["a", null]}', "`turns` should be a text that isn't empty"),
        ('{"id": true, "prompt": "a"}', "`id` should be a text that isn't empty"),
        ('{"category": 1, "prompt": "a"}', "`category` should be a text that isn't empty"),
        ('{"messages": {}}', '`messages` should be a list of {"role": …, "content": …}'),
        ('{"messages": []}', "`messages` has no message of the user"),
        ('{"messages": ["a"]}', "each of `messages` should have a `role` out of system, user, assistant and a `content`"),
        (
            '{"messages": [{"role": "tool", "content": "a"}]}',
            "each of `messages` should have a `role` out of system, user, assistant and a `content`",
        ),
        ('{"messages": [{"role": "user", "content": [1]}]}', "`content` should be a text that isn't empty"),
        (
            '{"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}',
            "in `messages` user and assistant should take turns, the user first",
        ),
        (
            '{"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]}',
            "`messages` may have one message of the system, and it comes first",
        ),
        (
            '{"system": "s", "messages": [{"role": "system", "content": "t"}, {"role": "user", "content": "a"}]}',
            "has a `system` and a message of the system; it should have one of them",
        ),
    ],
)
def test_a_bad_line(tmp_path: Path, line: str, sentence: str) -> None:
    path = written(tmp_path, f'{{"prompt": "good"}}\n{line}\n')
    assert complaint(path).startswith(f"{path}:2: {sentence}")


def test_two_bad_lines_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, '{}\n{"prompt": "a"}\n[]\n3\n')
    assert complaint(path) == f"{path}:1: has none of `prompt`, `turns`, `messages` (2 more bad lines)"


def test_ids_must_differ(tmp_path: Path) -> None:
    path = written(tmp_path, '{"id": "mine-2", "prompt": "a"}\n{"prompt": "b"}\n')
    assert complaint(path) == f"{path}:2: the id 'mine-2' is taken by a line above; ids must be different"


def test_a_byte_that_is_not_utf8(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"prompt": "a"}\n{"prompt": "caf\xe9"}\n')
    assert complaint(path) == f"{path}:2: is not UTF-8 text; save the file as UTF-8"


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    assert complaint(path) == f'{path}: the file holds no prompt; each line should be like {{"prompt": "…"}}'


def test_a_missing_file_a_folder_and_an_impossible_name(tmp_path: Path) -> None:
    assert complaint(tmp_path / "gone.jsonl").endswith("there is no such file; `path` should name a JSONL file of prompts")
    assert complaint(tmp_path).endswith("is not a file; `path` should name a JSONL file of prompts")
    assert complaint(tmp_path / "a\0b").startswith(f"{tmp_path}/a\0b: ")


def test_a_file_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LIMIT_BYTES", 2**20)
    path = written(tmp_path, b" " * (2**20 + 1))
    assert complaint(path) == f"{path}: is 1 MiB; a file of prompts may have 1 MiB"


def test_a_workload_without_a_path() -> None:
    with pytest.raises(SpecbenchError, match=r"^workload 'w': dataset 'jsonl' needs `path`"):
        jsonl.DATASET.prompts(Workload(name="w", dataset="jsonl"), seed=0, count=1)
