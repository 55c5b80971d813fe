"""The published sets, from files of their shapes and from a hub of our own."""

import http.server
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specbench import datasets
from specbench.errors import SpecbenchError
from specbench.suite import Workload
from tests.unit.hub_bed import serving

QUESTION: dict[str, Any] = {"question_id": 81, "category": "writing", "turns": ["One?", "Two?"]}
ROWS: dict[str, list[dict[str, Any]]] = {
    "mt_bench": [QUESTION, {"prompt_id": 82, "category": "math", "prompt": ["A", "B"]}],
    "spec_bench": [QUESTION, {"question_id": 170, "category": "translation", "turns": ["A"]}],
    "speed_bench": [QUESTION, {"question_id": "x1", "category": "rag", "turns": ["A"]}],
    "gsm8k": [{"question": "1+1?", "answer": "2"}, {"question": "2+2?", "answer": "4"}],
    "humaneval": [{"task_id": "HumanEval/0", "prompt": "def a():"}, {"task_id": "HumanEval/1", "prompt": "def b():"}],
    "math500": [
        {"unique_id": "t/1.json", "subject": "Algebra", "problem": "x?"},
        {"unique_id": "t/2.json", "subject": "Geometry", "problem": "y?"},
    ],
    "sharegpt": [
        {"id": "a", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes?"}]},
        {"id": "b", "conversations": [{"from": "gpt", "value": "no word of the user's"}]},
        {"id": "b", "conversations": [{"from": "human", "value": "Go"}, {"from": "human", "value": "on"}]},
    ],
}


def workload(name: str, path: Path | None) -> Workload:
    return Workload(name="w", dataset=name, path=str(path) if path else None)


@pytest.mark.parametrize("name", ROWS)
def test_a_copy_on_this_machine_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS[name]))
    prompts = datasets.get(name).prompts(workload(name, path), 1, 2)
    assert len({one.id for one in prompts}) == 2
    assert all(turn for one in prompts for turn in one.turns)
    path.write_text(json.dumps(ROWS[name], indent=1))
    assert set(datasets.get(name).prompts(workload(name, path), 1, 2)) == set(prompts)


def test_both_turns_of_mt_bench_are_sent_and_its_categories_alternate(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    rows = [QUESTION | {"question_id": f"{kind}{number}", "category": kind} for kind in "ab" for number in range(9)]
    path.write_text("\n".join(map(json.dumps, rows)))
    prompts = datasets.get("mt_bench").prompts(workload("mt_bench", path), 3, 4)
    assert [one.category for one in prompts] == ["a", "b", "a", "b"]
    assert prompts[0].turns == ("One?", "Two?")


def test_parquet(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "test.parquet"
    pandas.DataFrame([row | {"question_id": str(row["question_id"])} for row in ROWS["speed_bench"]]).to_parquet(path)
    prompts = datasets.get("speed_bench").prompts(workload("speed_bench", path), 1, 2)
    assert {one.turns for one in prompts} == {("One?", "Two?"), ("A",)}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("gsm8k", '{"question": "ok"}\n{"q": 1}', ":2: is no row of this dataset: lacks 'question'"),
        ("gsm8k", '{"question": " "}', ":1: is no row of this dataset: `question` should be a text"),
        ("mt_bench", '{"category": "a", "turns": "one"}', "`turns` should be a list of texts"),
        ("sharegpt", '{"conversations": [1]}', ":1: is no row of this dataset"),
        ("gsm8k", "garbage", ":1: is not JSON"),
        ("gsm8k", "[1]", ":1: is not a JSON object"),
        ("gsm8k", "", "holds no prompt"),
        ("gsm8k", None, "can't be read: no such file"),
    ],
)
def test_what_is_no_such_set_is_one_sentence(name: str, text: str | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SpecbenchError) as caught:
        datasets.get(name).prompts(workload(name, path), 1, 1)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broken_parquet_file_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "f.parquet"
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(SpecbenchError, match="no parquet file that can be read"):
        datasets.get("gsm8k").prompts(workload("gsm8k", path), 1, 1)


class Hub(http.server.BaseHTTPRequestHandler):
    """Enough of the hub for one file: its commit, its etag, its bytes."""

    body = "\n".join(json.dumps(row) for row in ROWS["math500"]).encode()

    def do_HEAD(self) -> None:
        self.answer(b"")

    def do_GET(self) -> None:
        self.answer(self.body)

    def answer(self, body: bytes) -> None:
        known = self.path == "/datasets/HuggingFaceH4/MATH-500/resolve/main/test.jsonl"
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(self.body)))
        self.send_header("ETag", '"0123456789abcdef0123456789abcdef01234567"')
        self.send_header("X-Repo-Commit", "c" * 40)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub() -> Iterator[str]:
    with serving(Hub) as url:
        yield url


ASK = """
import sys
from specbench import datasets
from specbench.errors import SpecbenchError
from specbench.suite import Workload
one = Workload(name="w", dataset=sys.argv[1])
try:
    source = datasets.get(one.dataset)
    print([prompt.id for prompt in source.prompts(one, 1, 2)], source.source(one)["commit"])
except SpecbenchError as error:
    print(error)
"""


def asked(name: str, endpoint: str, home: Path, **more: str) -> str:
    """In a process of its own: the library reads its settings when it is imported."""
    environ = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"} | more
    command = [sys.executable, "-c", ASK, name]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_set_comes_from_the_hub_and_then_from_its_cache(hub: str, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    found = asked("math500", hub, tmp_path)
    assert "'t/1.json'" in found
    assert "c" * 40 in found
    assert asked("math500", "http://127.0.0.1:9", tmp_path, HF_HUB_OFFLINE="1") == found


def test_a_set_that_the_hub_does_not_give_is_one_sentence(hub: str, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    said = asked("gsm8k", hub, tmp_path)
    assert said.startswith("dataset 'gsm8k': openai/gsm8k can't be fetched from the hub")
    assert said.count("\n") == 1


def test_random_words_are_seeded_and_share_no_prefix() -> None:
    one = Workload(name="w", dataset="random", prompt_word_count=40)
    prompts = datasets.get("random").prompts(one, 7, 5)
    assert prompts == datasets.get("random").prompts(one, 7, 5)
    assert all(len(prompt.turns[0].split()) == 40 for prompt in prompts)
    assert len({prompt.turns[0][:40] for prompt in prompts}) == 5
