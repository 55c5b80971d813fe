"""Whose log it is, and what reads it."""

from typing import Final

from specbench.dialects.blocks import READ_BYTES, BlockReader
from specbench.dialects.detect import Engine, engine_of

DETECT_BYTES: Final = 1 << 23
"""So much is looked at before an engine must be named."""


def reader_for(engine: Engine) -> BlockReader:
    """Its grammar. Of SGLang's, each line stands for itself, so that several may read one log."""
    if engine == "sglang":
        from specbench.dialects.sglang_log import parse_line

        return BlockReader(parse_line)
    if engine == "vllm":
        from specbench.dialects.vllm_log import parse_line

        return BlockReader(parse_line, learns=False)
    from specbench.dialects.llamacpp_log import LlamaLog

    return BlockReader(LlamaLog().parse_line, learns=False)


def engine_in(text: memoryview, size_bytes: int) -> Engine | None:
    """Whose lines these are; None when no line tells."""
    lines = bytes(text[:size_bytes]).split(b"\n")
    found = (engine_of(line[:READ_BYTES].decode("utf-8", "replace")) for line in lines)
    return next((engine for engine in found if engine is not None), None)
