"""What the grammars of all engines have in common: what a message is, and what the message of a death means."""

import re
from typing import Any, Final, NamedTuple

from specbench.dialects import LineKind

EXCEPTION: Final = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Timeout|Exit)\b(?::|$)")
"""The last line of a Python traceback."""


class Event(NamedTuple):
    """What a message is, without its prefixes."""

    kind: LineKind
    name: str
    value: dict[str, Any]


class Cause(NamedTuple):
    """A message and what it means. Groups of the pattern become values."""

    code: str
    pattern: re.Pattern[str]
    sentence: str
    advice: str
    order: int
    """0: a cause. 1: often a consequence of another rank's death. 2: only a consequence."""


def cause(code: str, pattern: str, sentence: str, advice: str = "", order: int = 0) -> Cause:
    """`pattern` is searched in the message."""
    return Cause(code, re.compile(pattern), sentence, advice, order)


WIDTH_MISMATCH: Final = cause(
    "aux_layer_width_mismatch",
    r"mat1 and mat2 shapes cannot be multiplied "
    r"\((?P<rows>\d+)x(?P<width>\d+) and (?P<expected_width>\d+)x(?P<out_width>\d+)\)",
    "the drafter's first layer takes another width than the target hands over",
    "the drafter was trained for another target or another count of auxiliary layers; compare its config.json "
    "(target_hidden_size, eagle_aux_hidden_state_layer_ids) with the target's",
)
"""PyTorch's own words, whichever engine runs it."""

SHARED_CAUSES: Final = (
    cause(
        "too_few_gpus",
        r"invalid device ordinal|World size \((?P<wanted_gpus>\d+)\) is larger than the number of available GPUs"
        r" \((?P<seen_gpus>\d+)\)",
        "fewer GPUs are in sight than the server asks for",
        "lower the tensor parallel size, or look at CUDA_VISIBLE_DEVICES and nvidia-smi",
    ),
    cause(
        "no_gpu",
        r"Found no NVIDIA driver|No CUDA GPUs are available|Failed to infer device type",
        "no GPU is in sight",
        "look at nvidia-smi, CUDA_VISIBLE_DEVICES and the container's GPU option (docker run --gpus all)",
    ),
    cause(
        "kernel_not_built_for_gpu",
        r"no kernel image is available for execution",
        "a kernel was not built for this kind of GPU",
        "install builds of PyTorch and of the engine's kernels that know this GPU",
    ),
    cause(
        "device_assert",
        r"device-side assert triggered",
        "a GPU kernel met an index out of its range, such as a token id outside of a vocabulary",
        "compare the vocabularies of target and drafter (d2t); CUDA_LAUNCH_BLOCKING=1 shows which kernel it was",
    ),
    cause(
        "illegal_memory_access",
        r"illegal memory access",
        "a GPU kernel touched memory that is not its own",
        "run once with CUDA_LAUNCH_BLOCKING=1 to see which kernel; try CUDA graphs off, or another attention backend",
    ),
    cause(
        "kernel_too_large",
        r"OutOfResources: out of resource: (?P<resource>[\w ]+), Required: (?P<wanted>\d+), Hardware limit: (?P<limit>\d+)",
        "a Triton kernel wants more of the GPU than it has",
        "use another attention backend, or fewer draft tokens or branches a step",
    ),
    cause(
        "architecture_unknown",
        r"Model architectures (?P<architectures>\[[^\]]*\]) are not supported",
        "this version does not know the model's class",
        "use a newer version; a drafter's class stands under `architectures` in its config.json",
    ),
    cause(
        "weight_unknown",
        r"KeyError: '(?P<weight>[\w.]+\.(?:weight|bias|weight_scale\w*))'"
        r"|There is no module or parameter named '(?P<parameter>[\w.]+)' in",
        "the checkpoint holds a weight that its model's class does not know",
        "a drafter was loaded as another kind than it is: compare `architectures` in its config.json, and the method",
    ),
    cause(
        "weights_missing",
        r"Cannot find any model weights with `(?P<folder>[^`]+)`",
        "a model's folder holds no weights",
        "look for *.safetensors there: a download may be incomplete, or hold pointers of Git LFS only",
    ),
    cause(
        "remote_code_refused",
        r"contains custom code which must be executed|execute the .{1,40} file in that repo",
        "the model brings code of its own, and it was not allowed to run",
        "add --trust-remote-code if you trust it",
    ),
    cause(
        "repository_refused",
        r"access a gated repo|GatedRepoError|401 Client Error",
        "the model's repository wants a login that has been granted access",
        "ask for access on its page, and set HF_TOKEN",
    ),
    cause("disk_full", r"\[Errno 28\]|No space left on device", "a disk is full", "free space there (df -h), or /dev/shm"),
)
"""Words of PyTorch, Triton, transformers and the system, whichever engine runs them."""

COLLECTIVE_TIMEOUT: Final = cause(
    "nccl_error",
    r"Watchdog caught collective operation timeout: WorkNCCL\((?:.*?OpType=(?P<collective>\w+))?",
    "a rank waited too long for the others in a collective operation (NCCL): one of them hung or died",
    "look at what the other ranks did last; NCCL_DEBUG=INFO tells more",
    1,
)

RENAMED: Final = dict.fromkeys(("other_port", "asked_port"), "port") | dict.fromkeys(
    ("file", "repository", "folder", "source"), "path"
)


def tidy(values: dict[str, Any]) -> dict[str, Any]:
    """One name for what several spellings of a message carry."""
    return {RENAMED.get(name, name): value for name, value in values.items()}
