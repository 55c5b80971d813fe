"""Makes the GGUF files of `suites/llamacpp.yaml`, once. Needs the openvino extra (`gguf`) and llama.cpp's llama-quantize.

    python -m tests.realengine.gguf_models          prints the folder, made or found

In it: `target.gguf` (SmolLM2-135M in F32), `good.gguf` (the Q4_1 file that it was made of: the same weights in a fifth of
the bytes), `weak.gguf` (F16, a third of its layers left out), and `other.gguf`, a tiny model of random weights with another
vocabulary. 0.8 GB. Where the CPU says that it has AMX and the machine does not let it be used, llama.cpp dies of quantized
weights unless it is started with --no-repack.

Exit codes: 0; 75 when the model could not be downloaded; 1 when llama-quantize is lacking.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from specbench.engines.llamacpp import BINARY, BINARY_VARIABLE
from specbench.errors import SpecbenchError
from specbench.models import cache_folder
from specbench.models.fetch import source_gguf, source_key
from specbench.models.smollm2 import rewrite

RECIPE_VERSION: Final = 3
LACKING: Final = 75
"""As sysexits has it: try again later."""
WIDTH, INNER, HEADS = 64, 128, 2


def quantizer() -> str:
    """Beside the server, or on the PATH. Raises SystemExit with a sentence."""
    server = shutil.which(os.environ.get(BINARY_VARIABLE) or BINARY)
    beside = [str(Path(server).resolve().with_name("llama-quantize"))] if server else []
    for one in (*beside, "llama-quantize"):
        if (found := shutil.which(one)) is not None:
            return found
    raise SystemExit(f"llama-quantize is neither on the PATH nor beside {BINARY_VARIABLE}")


def make(folder: Path) -> None:
    program, source = quantizer(), source_gguf(cache_folder() / "downloads", noted)
    noted("target.gguf, good.gguf, weak.gguf")
    command = (program, "--allow-requantize", str(source), str(folder / "target.gguf"), "F32")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.copyfile(source, folder / "good.gguf")
    rewrite(source, folder / "weak.gguf", f16=True, pruned=True)
    write_other(folder / "other.gguf")


def write_other(path: Path) -> None:
    """One layer that speaks bytes."""
    import gguf
    import numpy

    random = numpy.random.default_rng(0)
    words = [*byte_characters(), "<s>", "</s>"]
    writer: Any = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([1] * 256 + [3, 3])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    shapes = {"token_embd": (len(words), WIDTH), "output": (len(words), WIDTH)}
    shapes |= {f"blk.0.{name}": (WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    shapes |= {"blk.0.ffn_gate": (INNER, WIDTH), "blk.0.ffn_up": (INNER, WIDTH), "blk.0.ffn_down": (WIDTH, INNER)}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.normal(0, 0.05, shape).astype("float32"))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", numpy.ones(WIDTH, "float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def byte_characters() -> list[str]:
    """What stands for each byte; which is of no matter here, but each stands once."""
    return [chr(0x100 + byte) for byte in range(256)]


def noted(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def ensure() -> Path:
    """The folder, made if it is not there. A half-made one never gets its name."""
    folder = cache_folder() / f"realengine-gguf-r{RECIPE_VERSION}-{source_key()}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".realengine-") as scratch:
            inside = Path(scratch) / "models"
            inside.mkdir()
            make(inside)
            inside.rename(folder)
    return folder


def main() -> int:
    """The exit code."""
    try:
        sys.stdout.write(f"{ensure()}\n")
    except SpecbenchError as reason:
        noted(str(reason))
        return LACKING
    return 0


if __name__ == "__main__":
    sys.exit(main())
