"""How launches share the machine's GPUs or a cluster's nodes, and what one server needs of them."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

Packing = Literal["off", "on", "control"]
Launcher = Literal["local", "slurm"]
Word = Annotated[str, Meta(min_length=1)]
TIME_PATTERN: Final = r"^(\d+-)?\d+(:\d{1,2}){0,2}$(?!\n)"

SIZES: Final = {
    "tensor": ("--tp-size", "--tp", "--tensor-parallel-size", "-tp"),
    "pipeline": ("--pp-size", "--pp", "--pipeline-parallel-size", "-pp"),
    "data": ("--dp-size", "--dp", "--data-parallel-size", "-dp"),
    "prefill": ("--prefill-context-parallel-size", "-pcp"),
}
"""Flags of SGLang and vLLM, by what they split."""
DATA_INSIDE: Final = ("--enable-dp-attention",)
"""With these SGLang's data-parallel ranks share the tensor-parallel ones' GPUs."""


class Slurm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a job asks of Slurm. The nodes see this folder and this Python under the same paths."""

    partition: Annotated[Word | None, Meta(description="`--partition`")] = None
    account: Annotated[Word | None, Meta(description="`--account`")] = None
    qos: Annotated[Word | None, Meta(description="`--qos`")] = None
    constraint: Annotated[Word | None, Meta(description="`--constraint`")] = None
    time_limit: Annotated[
        Annotated[str, Meta(pattern=TIME_PATTERN)] | None,
        Meta(description="`--time`, of one job, such as 4:00:00"),
    ] = None
    node_gpu_count: Annotated[int, Meta(ge=1, le=64, description="GPUs of one node; a wider server spans nodes")] = 8
    allocation: Annotated[
        Literal["block", "launch"],
        Meta(description="`block`: a job holds the arms of one block, which so share hardware; `launch`: one launch a job"),
    ] = "block"
    args: Annotated[
        tuple[Word, ...],
        Meta(description="Further words for sbatch, as they are: --mem=0, --container-image=…, --container-mounts=…"),
    ] = ()


def gpus_needed(tensor_parallel: int, args: Sequence[str | int | float]) -> int:
    """GPUs of one server: tensor × pipeline × data parallel, and vLLM's context parallel, where `args` may state each;
    `args` go before the field."""
    words = [_plain(str(word)) for word in args]
    sizes = {kind: _stated(words, flags) for kind, flags in SIZES.items()}
    data = 1 if any(word in DATA_INSIDE for word in words) else sizes["data"] or 1
    return (sizes["tensor"] or tensor_parallel) * (sizes["pipeline"] or 1) * (sizes["prefill"] or 1) * data


def _plain(word: str) -> str:
    """vLLM takes `--tensor_parallel_size` too."""
    flag, is_joined, value = word.partition("=")
    return (flag.replace("_", "-") if flag.startswith("--") else flag) + is_joined + value


def _stated(words: Sequence[str], flags: Sequence[str]) -> int | None:
    """The last one counts, as in argparse. None where there is none, or it is no number."""
    return next(reversed([*_values(words, flags)]), None)


def _values(words: Sequence[str], flags: Sequence[str]) -> Iterator[int]:
    for place, word in enumerate(words):
        flag, is_joined, value = word.partition("=")
        if flag in flags:
            value = value if is_joined else "".join(words[place + 1 : place + 2])
            if re.fullmatch(r"[1-9]\d{0,3}", value):
                yield int(value)
