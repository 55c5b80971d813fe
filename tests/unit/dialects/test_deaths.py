"""What an engine's last words mean: causes that stand in no captured log, in the engines' own forms."""

import pytest

from specbench.analysis.log_report import LogStudy, study
from specbench.dialects.detect import Engine

SGLANG = "[2026-03-01 10:04:00 TP0] "
HIT = SGLANG + "Scheduler hit an exception: Traceback (most recent call last):"
FRAME = '  File "/opt/sglang/python/sglang/srt/managers/scheduler.py", line 12, in run\n    self.go()'
QUIT = "[2026-03-01 10:04:01] Received sigquit from a child process. It usually means the child failed."
VLLM = "(EngineCore_0 pid=12) ERROR 10-12 10:01:05 [core.py:708] "
VLLM_READY = "(APIServer pid=10) INFO 10-12 10:01:15 [api_server.py:1912] Starting vLLM API server 0 on http://0.0.0.0:8000"
VLLM_UP = "(APIServer pid=10) INFO:     Application startup complete."
VLLM_DIED = "(APIServer pid=10) ERROR 10-12 10:05:01 [core_client.py:564] Engine core proc EngineCore_0 died unexpectedly"
UNKNOWN_CLASS = "(APIServer pid=10)   Value error, Model architectures ['LlamaForCausalLMEagle3'] are not supported for now."


def read(*lines: str, engine: Engine | None = None) -> LogStudy:
    found = study("\n".join(lines).split("\n"), engine)
    assert found is not None
    return found


def code(*lines: str, engine: Engine | None = None) -> str | None:
    cause = read(*lines, engine=engine).cause
    return cause.code if cause else None


@pytest.mark.parametrize(
    ("last_line", "cause"),
    [
        ("torch.AcceleratorError: CUDA error: invalid device ordinal", "too_few_gpus"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "no_gpu"),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "kernel_not_built_for_gpu"),
        ("RuntimeError: CUDA error: device-side assert triggered", "device_assert"),
        ("ValueError: Model architectures ['LlamaForCausalLMEagle3'] are not supported for now.", "architecture_unknown"),
        ("KeyError: 'midlayer.self_attn.q_proj.weight'", "weight_unknown"),
        ("RuntimeError: Cannot find any model weights with `/data/drafter`", "weights_missing"),
        ("OSError: [Errno 28] No space left on device", "disk_full"),
        ("RuntimeError: Decode out of memory. Try to lower your batch size.", "kv_cache_full"),
        ("OSError: Can't load the configuration of 'nobody/nothing'. If you were trying", "model_path_missing"),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376",
            "kernel_too_large",
        ),
        ("KeyError: 'rope_type'", "exception"),
        ("some.module.Strange: nobody knows", "exception"),
    ],
)
def test_sglang_scheduler(last_line: str, cause: str) -> None:
    found = read(HIT, FRAME, last_line, "", QUIT).cause
    assert found is not None
    assert (found.code, found.decisive_line) == (cause, 4)
    assert found.advice or cause == "exception"


def test_traceback_that_nobody_caught_is_a_death() -> None:
    lines = ("Traceback (most recent call last):", FRAME, "ValueError: Port 30000 is not available.  Please choose another")
    assert code(*lines) == "port_in_use"
    assert code(*lines[:2], "ValueError: nobody knows") == "exception"


def test_traceback_of_a_server_that_went_on_is_none() -> None:
    lines = ("Traceback (most recent call last):", FRAME, "ValueError: nobody knows")
    assert code(*lines, "[2026-03-01 10:04:00] The server is fired up and ready to roll!") is None
    assert code(*lines, *[f"{SGLANG}Load weight begin. avail mem={number} GB" for number in range(50)]) is None


def test_collective_timeout_comes_before_the_abort() -> None:
    found = read(
        "[2026-03-01 10:04:00] The server is fired up and ready to roll!",
        "[rank3]:[E301 10:14:00.123456789 ProcessGroupNCCL.cpp:685] [Rank 3] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=7168, Timeout(ms)=600000) ran for 600012 milliseconds",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        QUIT,
    ).cause
    assert found is not None
    assert (found.code, found.decisive_line, found.values["collective"]) == ("nccl_error", 2, "ALLREDUCE")


def test_dead_scheduler_without_its_own_words() -> None:
    lines = ("[2026-03-01 10:05:00] Rank 0 scheduler is dead. Please check if there are relevant logs.",)
    assert code(*lines, "[2026-03-01 10:05:01] Exit code: -9", engine="sglang") == "subprocess_crashed"


@pytest.mark.parametrize(
    ("last_line", "cause"),
    [
        (VLLM + "TimeoutError: RPC call to execute_model timed out.", "engine_hung"),
        (VLLM_DIED + ", shutting down client.", "subprocess_crashed"),
        (VLLM + "ValueError: World size (8) is larger than the number of available GPUs (4) in this node.", "too_few_gpus"),
        (VLLM + "ValueError: There is no module or parameter named 'fc' in LlamaForCausalLM", "weight_unknown"),
        (UNKNOWN_CLASS, "architecture_unknown"),
    ],
)
def test_vllm(last_line: str, cause: str) -> None:
    found = read(VLLM_READY, VLLM_UP, last_line).cause
    assert found is not None
    assert (found.code, found.decisive_line, bool(found.advice)) == (cause, 3, True)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("CUDA error: an illegal memory access was encountered", "gpu_error"),
        ("srv    load_model: the draft model 'd.gguf' is not compatible with the target model 't.gguf'", "vocab_mismatch"),
        ("start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080", "port_in_use"),
    ],
)
def test_llamacpp(line: str, cause: str) -> None:
    assert code("build: 6500 (abc) with cc for x86_64-linux-gnu", line) == cause


def test_llamacpp_translates_between_vocabularies() -> None:
    line = "srv load_model: the draft model 'd' is not compatible with the target model 't'. tokens will be translated"
    assert code("build: 6500 (abc) with cc", line) is None


def test_llamacpp_block_with_two_heads() -> None:
    found = read(
        "slot launch_slot_: id  0 | task 0 | processing task",
        "slot print_timing: id  0 | task 0 | ",
        "prompt eval time =     145.34 ms /    40 tokens (    3.63 ms per token,   275.21 tokens per second)",
        "       eval time =    3448.99 ms /   100 tokens (   34.49 ms per token,    28.99 tokens per second)",
        "      total time =    3594.33 ms /   140 tokens",
        "slot print_timing: id  0 | task 0 | ",
        "draft acceptance rate = 0.60000 (   60 accepted /   100 generated)",
    )
    assert found.pooled_accept_length is not None
    assert found.pooled_accept_length.value == pytest.approx(100 / 40)
