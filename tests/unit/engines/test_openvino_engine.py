"""What the engine `openvino` asks for, launches and refuses; nothing is started here."""

import sys
from pathlib import Path

import pytest
from msgspec import structs

from specbench import engines, models
from specbench.engines import Launch
from specbench.errors import SpecbenchError
from specbench.models import fetch
from specbench.plan import Slot
from specbench.suite import Drafter, Method, Model, Server, Speculation, Variant

ENGINE = engines.get("openvino")
MODEL = Model(path="specbench:smollm2-135m-f16")
GOOD = Drafter(path="specbench:smollm2-135m-q4")
PLAIN = Server()


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECBENCH_CACHE", str(tmp_path))
    monkeypatch.delenv(fetch.OWN_FILE, raising=False)


def variant(
    *,
    method: Method | None = None,
    draft_tokens: int = 0,
    steps: int | None = None,
    topk: int = 1,
    ngram: int | None = None,
    cuda_graph: bool | None = None,
    server: Server = PLAIN,
) -> Variant:
    """Without `draft_tokens` a baseline."""
    speculation = None
    if draft_tokens:
        speculation = Speculation(method=method, draft_tokens=draft_tokens, steps=steps, topk=topk, ngram=ngram)
    return Variant(name="v", engine="openvino", speculation=speculation, cuda_graph=cuda_graph, server=server)


def argv(one: Variant, drafter: Drafter | None = None) -> tuple[str, ...]:
    return ENGINE.command(Launch(model=MODEL, drafter=drafter, variant=one, slot=Slot(port=4711))).argv


def test_command_works_before_the_models_are_made(tmp_path: Path) -> None:
    target = str(models.folder_of(MODEL.path))
    assert argv(variant()) == (
        *(sys.executable, "-m", "specbench.embedded.openvino"),
        *(
            "--model-path",
            target,
            "--host",
            "127.0.0.1",
            "--port",
            "4711",
            "--enable-metrics",
            "--decode-log-interval",
            "10",
        ),
    )
    assert list(tmp_path.iterdir()) == []


def test_draft_model_and_prompt_lookup_in_sglangs_words() -> None:
    assert argv(variant(draft_tokens=4), GOOD)[12:] == (
        *("--speculative-algorithm", "STANDALONE"),
        *("--speculative-draft-model-path", str(models.folder_of(GOOD.path))),
        *("--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4"),
    )
    assert argv(variant(draft_tokens=6, ngram=2))[12:] == (
        *("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "6"),
        *("--speculative-ngram-max-trie-depth", "2"),
    )


def test_arguments_pass_through_last_and_environment_as_text() -> None:
    server = Server(args=("--max-running-requests", 4), env={"ONEDNN_VERBOSE": 0}, python="/opt/py")
    command = ENGINE.command(Launch(model=MODEL, drafter=None, variant=variant(server=server), slot=Slot()))
    assert command.argv[0] == "/opt/py"
    assert command.argv[-2:] == ("--max-running-requests", "4")
    assert command.env == {"ONEDNN_VERBOSE": "0"}


def test_rehearsal_is_the_same_command_for_the_simulated_engine() -> None:
    launch = Launch(model=MODEL, drafter=GOOD, variant=variant(draft_tokens=4), slot=Slot(port=1))
    real, simulated = ENGINE.command(launch).argv, ENGINE.rehearsal(launch).argv
    assert simulated[:3] == (sys.executable, "-m", "specbench.embedded.simulated")
    assert simulated[3:] == real[3:]


@pytest.mark.parametrize(
    ("one", "drafter", "sentence"),
    [
        (variant(method="eagle3", draft_tokens=4), GOOD, "drafts by draft_model or prompt_lookup, not by eagle3"),
        (variant(method="draft_model", draft_tokens=4), None, "draft_model needs a `drafter`"),
        (variant(method="prompt_lookup", draft_tokens=4), GOOD, "prompt_lookup takes no drafter"),
        (variant(draft_tokens=8, steps=3, topk=4), GOOD, r"drafts in a chain; leave `topk` and `steps` out \(1 and 7\)"),
        (variant(cuda_graph=True), None, "has no CUDA graphs"),
        (variant(server=Server(tensor_parallel=2)), None, "tensor_parallel must be 1"),
        (variant(server=Server(args=("--port=1",))), None, "ports and host are given out by specbench"),
    ],
)
def test_what_it_can_not_do_is_refused_in_a_sentence(one: Variant, drafter: Drafter | None, sentence: str) -> None:
    with pytest.raises(SpecbenchError, match=sentence):
        argv(one, drafter)
    assert len([found for found in ENGINE.obstacles(MODEL, drafter, one) if found.startswith("variant 'v'")]) == 1


def test_lacking_folders_are_obstacles(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    found = ENGINE.obstacles(Model(path=str(tmp_path / "no")), Drafter(path=str(empty)), variant(draft_tokens=4))
    assert (
        f"the model {tmp_path}/no does not exist; the engine openvino takes a local folder or a `specbench:` model" in found
    )
    assert f"the drafter {empty} is no OpenVINO model: it holds no openvino_model.xml" in found


def test_lacking_extra_is_an_obstacle_with_its_remedy(tmp_path: Path) -> None:
    bare = variant(server=Server(python=str(tmp_path / "python")))
    assert ENGINE.version(bare) is None
    remedy = f"OpenVINO GenAI is not installed for {tmp_path}/python; install it with: pip install 'specbench[openvino]'"
    assert remedy in ENGINE.obstacles(MODEL, None, bare)


def test_one_core_is_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    assert "OpenVINO GenAI needs 2 CPU cores; this process may use one only" in ENGINE.obstacles(MODEL, None, variant())


def test_obstacles_make_nothing(tmp_path: Path) -> None:
    ENGINE.obstacles(MODEL, GOOD, variant(draft_tokens=4))
    assert list(tmp_path.iterdir()) == []


def test_prepare_makes_target_and_drafter(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(models, "ensure", lambda path, note: made.append(path))
    assert isinstance(ENGINE, engines.Prepares)
    ENGINE.prepare(MODEL, GOOD, lambda text: None)
    ENGINE.prepare(MODEL, None, lambda text: None)
    assert made == [MODEL.path, GOOD.path, MODEL.path]


def test_death_is_told_in_the_servers_own_words() -> None:
    line = "[2026-11-29 16:00:00] OpenVINO failed: its process (pid 7) ended by signal SIGKILL"
    assert ENGINE.death_cause(["something", line], 1) == "OpenVINO failed: its process (pid 7) ended by signal SIGKILL"
    assert ENGINE.death_cause(["something"], 3) == "the server ended with exit code 3; its log names no cause"


def test_generate_and_chat_requests() -> None:
    from specbench.dialects import Message
    from specbench.suite import Workload

    load = Workload(name="w", max_output_tokens=9, ignore_eos=True)
    chat = ENGINE.request([Message(role="user", content="hi")], load, "m", "2026.4.1.0")
    assert chat.path == "/v1/chat/completions"
    assert chat.body["max_tokens"] == 9
    assert chat.body["return_spec_tokens_details"] is True
    raw = ENGINE.request([Message(role="user", content="hi")], structs.replace(load, api="generate"), "m", None)
    assert (raw.path, raw.body["text"]) == ("/generate", "hi")


def test_there_is_no_graph_among_the_resolved_arguments() -> None:
    info = {"speculative_num_draft_tokens": 4, "disable_cuda_graph": True, "max_running_requests": 16, "something": 1}
    assert ENGINE.resolved(info) == {"draft_tokens": 4, "max_running_requests": 16}
