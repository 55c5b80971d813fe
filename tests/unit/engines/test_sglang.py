"""SGLang's command lines, obstacles and resolved arguments."""

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from specbench.dialects import Message
from specbench.dialects.sglang_http import ChatReader, GenerateReader
from specbench.engines import Launch
from specbench.engines import sglang as module
from specbench.engines.sglang import ENGINE
from specbench.errors import SpecbenchError
from specbench.models import looks_local
from specbench.plan import Slot
from specbench.suite import Drafter, Method, Model, Server, Speculation, Variant, Workload

MODEL = Model(path="moonshotai/Kimi-K2.5")
EAGLE3 = Drafter(path="org/drafter", method="eagle3")
SLOT = Slot(gpu_ids=(0, 1), port=30123, nccl_port=31123)


def launch(
    speculation: Speculation | None = None,
    *,
    drafter: Drafter | None = None,
    args: tuple[str | int | float, ...] = (),
    version: str | None = None,
    cuda_graph: bool | None = None,
    env: dict[str, str | int | float] | None = None,
) -> Launch:
    server = Server(python="/venv/bin/python", tensor_parallel=2, args=args, env=env or {})
    variant = Variant(name="v", engine="sglang", speculation=speculation, cuda_graph=cuda_graph, server=server)
    return Launch(model=MODEL, drafter=drafter, variant=variant, slot=SLOT, version=version)


def words(one: Launch) -> str:
    return " ".join(ENGINE.command(one).argv)


def test_baseline() -> None:
    command = ENGINE.command(launch(args=("--trust-remote-code", "--mem-fraction-static", 0.8)))
    assert command.argv == (
        *("/venv/bin/python", "-m", "sglang.launch_server", "--model-path", "moonshotai/Kimi-K2.5", "--tp-size", "2"),
        *("--host", "127.0.0.1", "--port", "30123", "--nccl-port", "31123"),
        *("--trust-remote-code", "--mem-fraction-static", "0.8"),
    )
    assert command.env == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert "SGLANG_SIMULATE_ACC_LEN" in command.unset


def test_a_version_without_the_flag_chooses_its_own_nccl_port() -> None:
    assert "--nccl-port" not in words(launch(version="0.4.8"))
    assert "--nccl-port 31123" in words(launch(version="0.4.9"))


def test_eagle3_states_all_three_numbers() -> None:
    line = words(launch(Speculation(drafter="d", draft_tokens=8), drafter=EAGLE3))
    assert (
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path org/drafter "
        "--speculative-num-steps 7 --speculative-eagle-topk 1 --speculative-num-draft-tokens 8"
    ) in line


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("eagle", "--speculative-algorithm EAGLE --speculative-draft"),
        ("mtp", "--speculative-algorithm NEXTN"),
        ("draft_model", "--speculative-algorithm STANDALONE"),
        ("dflash", "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"),
    ],
)
def test_methods(method: Method, expected: str) -> None:
    assert expected in words(launch(Speculation(method=method, drafter="d", draft_tokens=4), drafter=EAGLE3))


def test_the_variants_method_wins_over_the_drafters() -> None:
    assert "--speculative-algorithm EAGLE " in words(launch(Speculation(method="eagle", draft_tokens=4), drafter=EAGLE3))
    with pytest.raises(SpecbenchError, match="names no method"):
        ENGINE.command(launch(Speculation(draft_tokens=4)))


@pytest.mark.parametrize(
    ("version", "flag"),
    [("0.5.9", "--speculative-ngram-max-match-window-size 5"), (None, "--speculative-ngram-max-trie-depth 5")],
)
def test_prompt_lookup(version: str | None, flag: str) -> None:
    line = words(launch(Speculation(method="prompt_lookup", draft_tokens=6, ngram=5), version=version))
    assert line.endswith(
        f"--speculative-algorithm NGRAM --speculative-num-draft-tokens 6 --speculative-ngram-max-bfs-breadth 1 {flag}"
    )


@pytest.mark.parametrize(
    ("version", "cuda_graph", "expected"),
    [
        ("0.5.9", False, ["--disable-cuda-graph"]),
        (None, False, ["--disable-cuda-graph"]),
        ("0.5.23", False, ["--cuda-graph-backend-decode=disabled", "--cuda-graph-backend-prefill=disabled"]),
        ("0.5.23", True, []),
        ("0.5.23", None, []),
    ],
)
def test_graph_flags(version: str | None, cuda_graph: bool | None, expected: list[str]) -> None:
    argv = ENGINE.command(launch(version=version, cuda_graph=cuda_graph)).argv
    assert [word for word in argv if "graph" in word] == expected


@pytest.mark.parametrize(
    ("args", "gone"),
    [
        (("--speculative-algorithm", "EAGLE"), "EAGLE3"),
        (("--speculative-num-steps=2",), "--speculative-num-steps 3"),
        (("--tensor-parallel-size", 4), "--tp-size"),
        (("--speculative-draft-model", "/other"), "org/drafter"),
        (("--disable-cuda-graph",), "--cuda-graph-backend"),
        (("--cuda-graph-backend-decode", "full"), "--cuda-graph-backend-decode=disabled"),
    ],
)
def test_the_word_in_args_wins(args: tuple[str | int, ...], gone: str) -> None:
    speculation = Speculation(drafter="d", draft_tokens=4)
    line = words(launch(speculation, drafter=EAGLE3, args=args, version="0.5.23", cuda_graph=False))
    assert gone not in line
    assert line.endswith(" ".join(str(word) for word in args))


def test_environment() -> None:
    command = ENGINE.command(launch(env={"SGLANG_LOG_MS": 1, "SGLANG_SIMULATE_ACC_LEN": 2.5}))
    assert command.env["SGLANG_LOG_MS"] == "1"
    assert "SGLANG_SIMULATE_ACC_LEN" not in command.unset  # the suite says so itself


def test_rehearsal_takes_the_same_words() -> None:
    one = launch(Speculation(drafter="d", draft_tokens=4), drafter=EAGLE3)
    real, simulated = ENGINE.command(one), ENGINE.rehearsal(one)
    assert simulated.argv[:3] == (sys.executable, "-m", "specbench.embedded.simulated")
    assert simulated.argv[3:] == real.argv[3:]
    assert simulated.env == real.env


def test_obstacles(tmp_path: Path) -> None:
    server = Server(python=str(tmp_path / "python"), args=("--port", 1))
    variant = Variant(name="v", engine="sglang", server=server)
    found = ENGINE.obstacles(Model(path=str(tmp_path / "model")), Drafter(path="./drafter"), variant)
    assert [one.partition(" ")[0] for one in found] == ["the", "the", "the", "variant"]
    assert str(tmp_path / "python") in found[0]
    assert str(tmp_path / "model") in found[1]
    assert "./drafter" in found[2]
    assert "--port" in found[3]


def test_sglang_missing_from_its_interpreter(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    variant = Variant(name="v", engine="sglang", server=Server(python=str(python)))
    assert ENGINE.version(variant) is None
    assert ENGINE.obstacles(MODEL, None, variant) == (
        f"SGLang is not installed for {python}; install it there or set `python:` in the suite",
    )


def test_the_version_comes_from_its_interpreter(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 0.5.23\n")
    python.chmod(0o755)
    variant = Variant(name="v", engine="sglang", server=Server(python=str(python)))
    assert ENGINE.version(variant) == "0.5.23"
    assert ENGINE.obstacles(MODEL, EAGLE3, variant) == ()


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/m", True), ("./m", True), ("~/m", True), ("a/b/c", True), ("org/name", False), ("gpt2", False), ("here/m", True)],
)
def test_looks_local(path: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert looks_local(path) == expected


@pytest.mark.parametrize("api", ["chat", "generate"])
def test_reader_matches_the_request(api: Any) -> None:
    workload = Workload(name="w", api=api)
    path = ENGINE.request((Message(role="user", content="x"),), workload, "m", None).path
    reader = ENGINE.event_reader(workload)
    assert isinstance(reader, ChatReader if path == "/v1/chat/completions" else GenerateReader)


ARGUMENTS: dict[str, Any] = {
    "speculative_num_draft_tokens": 4,
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "max_running_requests": 48,
    "disable_cuda_graph": False,
    "attention_backend": None,
}


@pytest.mark.parametrize(
    "info",
    [
        {**ARGUMENTS, "version": "0.5.23", "internal_states": [{"effective_max_running_requests_per_dp": 48}]},
        {"version": "0.4.6.post5", "internal_states": [ARGUMENTS, ARGUMENTS]},
        ARGUMENTS,
    ],
)
def test_resolved_in_all_shapes(info: dict[str, Any]) -> None:
    resolved = ENGINE.resolved(info)
    wanted = {"draft_tokens": 4, "steps": 3, "topk": 1, "max_running_requests": 48, "cuda_graph": True}
    assert wanted.items() <= resolved.items()
    assert "attention_backend" not in resolved


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"disable_cuda_graph": True}, False),
        ({"cuda_graph_config": {"decode": {"backend": "disabled"}}}, False),
        ({"cuda_graph_backend_decode": "full"}, True),
        ({}, None),
    ],
)
def test_resolved_graphs(info: dict[str, Any], expected: bool | None) -> None:
    assert ENGINE.resolved(info).get("cuda_graph") == expected


def test_death_cause_is_one_sentence_with_advice() -> None:
    lines = ["ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use"]
    assert "port" in ENGINE.death_cause(lines, 1)
    assert "--port" in ENGINE.death_cause(lines, 1)
    assert "no cause" in ENGINE.death_cause([], -9)


def test_ready_line() -> None:
    assert ENGINE.ready_line(ENGINE.parse_log_line("[2026-11-01 09:59:00] The server is fired up and ready to roll!"))
    assert not ENGINE.ready_line(ENGINE.parse_log_line("INFO:     Uvicorn running on http://127.0.0.1:30000"))
    assert module.ENGINE.title == "SGLang"


def test_a_rank_of_several_nodes() -> None:
    slot = structs.replace(SLOT, nodes=("n1", "n2"), init_address="10.0.0.1:31124")
    one = structs.replace(launch(), slot=slot, node_index=1)
    assert "--nnodes 2 --node-rank 1 --dist-init-addr 10.0.0.1:31124" in words(one)
    assert "--nnodes" not in words(launch())
