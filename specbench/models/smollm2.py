"""How the quickstart's three models are made from the one GGUF file.

Run as a module it makes one model in a process of its own, so that a conversion's memory is given back:
`python -m specbench.models.smollm2 RECIPE SOURCE.gguf FOLDER`.
"""

import fcntl
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from specbench.errors import SpecbenchError
from specbench.models import fetch

if TYPE_CHECKING:
    import gguf

Note = Callable[[str], None]

MAKING_TIMEOUT_S = 600.0
KEPT_FRONT_RATIO = 13 / 30
KEPT_BACK_RATIO = 7 / 30
"""The pruned drafter keeps the first 13 and the last 7 of 30 layers. Measured as a drafter for the F16 target with K = 3,
40 tokens, greedy: acceptance length 1.16 to 1.22. With 16 layers it was 1.0, with 30 it is 2.5 to 3.4."""


def make_once(recipe: str, folder: Path, note: Note) -> Path:
    """Makes the model unless somebody else has by the time the lock is ours. Raises SpecbenchError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / ".lock", note):
        if folder.is_dir():
            return folder
        lacking = [name for name in ("openvino_genai", "gguf") if importlib.util.find_spec(name) is None]
        if lacking:
            raise SpecbenchError(
                f"making the model '{recipe}' needs the package {lacking[0]}; "
                "install it with: pip install 'specbench[openvino]'"
            )
        source = fetch.source_gguf(folder.parent.parent / "downloads", note)
        note(f"making the model {recipe} from it, once (about 10 s)")
        _make_whole(recipe, source, folder)
    return folder


def _make_whole(recipe: str, source: Path, folder: Path) -> None:
    """In a folder with another name until it is whole: a half-made one is never found."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
        made = Path(scratch) / "model"
        argv = [sys.executable, "-m", __name__, recipe, str(source), str(made)]
        try:
            ended = subprocess.run(argv, capture_output=True, text=True, timeout=MAKING_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise SpecbenchError(f"making the model '{recipe}' took longer than {MAKING_TIMEOUT_S:.0f} s") from None
        if ended.returncode != 0:
            last = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
            raise SpecbenchError(f"the model '{recipe}' can't be made from {source}: {last}")
        made.rename(folder)


@contextmanager
def _locked(path: Path, note: Note) -> Iterator[None]:
    """The lock goes with the process that holds it, however that ends."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("waiting for another specbench that is making this machine's models")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make(recipe: str, source: Path, folder: Path) -> None:
    """Writes a whole OpenVINO model folder. Raises what gguf and openvino raise, ValueError for weights of a wrong type."""
    import openvino_genai

    folder.mkdir(parents=True)
    rewritten = folder / "model.gguf"
    rewrite(source, rewritten, f16=recipe.endswith("-f16"), pruned=recipe.endswith("-pruned"))
    openvino_genai.LLMPipeline(str(rewritten), "CPU", enable_save_ov_model=True)
    rewritten.unlink()
    types = weight_bytes(folder / "openvino_model.xml")
    if recipe.endswith("-f16") and types.get("f16", 0) < 0.99 * sum(types.values()):
        raise ValueError(f"the weights of the F16 model are not F16: {types}")
    facts = {
        "recipe": recipe,
        "source": source.name,
        "source_sha256": fetch.sha256_of(source),
        "openvino_genai": openvino_genai.__version__,
        "weight_bytes": types,
    }
    (folder / "specbench.json").write_text(json.dumps(facts, indent=2) + "\n")


def rewrite(source: Path, target: Path, *, f16: bool = False, pruned: bool = False) -> None:
    """Copies a GGUF file: weights turned into F16, or layers left out and the rest renumbered, or as it is."""
    import gguf

    reader = gguf.GGUFReader(source)
    architecture = str(reader.fields["general.architecture"].contents())
    block_count = int(reader.fields[f"{architecture}.block_count"].contents())
    kept = kept_blocks(block_count) if pruned else tuple(range(block_count))
    changed = {f"{architecture}.block_count": len(kept)}
    if f16:
        changed["general.file_type"] = int(gguf.LlamaFileType.MOSTLY_F16)
    writer = gguf.GGUFWriter(target, architecture)
    _copy_fields(reader, writer, changed)
    for tensor in reader.tensors:
        name = renumbered(tensor.name, kept)
        if name is not None:
            _add_tensor(writer, name, tensor, f16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def kept_blocks(block_count: int) -> tuple[int, ...]:
    """The layers that the pruned drafter keeps, by their old numbers."""
    front = max(1, round(block_count * KEPT_FRONT_RATIO))
    back = max(1, round(block_count * KEPT_BACK_RATIO))
    return (*range(front), *range(max(front, block_count - back), block_count))


def renumbered(name: str, kept: tuple[int, ...]) -> str | None:
    """A tensor's new name, `blk.23.attn_q.weight` to `blk.13.attn_q.weight`; None when its layer is left out."""
    found = re.fullmatch(r"blk\.(\d+)\.(.+)", name)
    if found is None:
        return name
    block = int(found[1])
    return f"blk.{kept.index(block)}.{found[2]}" if block in kept else None


def _copy_fields(reader: "gguf.GGUFReader", writer: "gguf.GGUFWriter", changed: dict[str, int]) -> None:
    import gguf

    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue  # the writer writes these itself
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, changed.get(field.name, field.contents()), kind, sub_type=inner)


def _add_tensor(writer: "gguf.GGUFWriter", name: str, tensor: "gguf.ReaderTensor", f16: bool) -> None:
    """F32 tensors are the norms; they stay."""
    import gguf
    import numpy

    if f16 and tensor.tensor_type != gguf.GGMLQuantizationType.F32:
        writer.add_tensor(name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float16))
    else:
        writer.add_tensor(name, tensor.data, raw_dtype=tensor.tensor_type)


def weight_bytes(xml: Path) -> dict[str, int]:
    """Bytes of the model's constants by element type, such as `{"f16": 268945408}`, without its index tables."""
    totals: dict[str, int] = {}
    for kind, size in re.findall(r'<data element_type="(\w+)"[^>]*? offset="\d+" size="(\d+)"', xml.read_text()):
        if not kind.startswith("i"):
            totals[kind] = totals.get(kind, 0) + int(size)
    return totals


def main(argv: list[str]) -> None:
    """Leaves nothing behind when it fails."""
    recipe, source, folder = argv
    try:
        make(recipe, Path(source), Path(folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
