"""Makes the tiny models of `suites/vllm-cpu.yaml`, once for each state of this folder. Needs torch and safetensors.

    python -m tests.realengine.make          prints the folder, made or found

In it: `target` (8 layers), `copy` (the same once more), `draft` (2 layers), `eagle3` (trained), `eagle3-untrained`,
`eagle3-wrong-width` (its fc expects a wider target), `eagle3-two-states` (asks for two states where its fc takes three),
`eagle3-no-head` (without lm_head), `prompts.jsonl` (text that none of them was trained on) and `made.json`.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
SOURCES: Final = ("prose.txt", "llama.py", "eagle.py", "train.py", "folders.py", "make.py")
ROOT_VARIABLE: Final = "SPECBENCH_CACHE"
LAYERS, HIDDEN, INNER = 8, 128, 256
DRAFT_LAYERS, DRAFT_HIDDEN, DRAFT_INNER = 2, 96, 192
DRAFT_ROWS: Final = 64
"""The head's own vocabulary: so many of the 256 bytes."""
WIDER: Final = 4 * HIDDEN
"""fc of the head that was made for another target."""
TARGET_STEPS, DRAFT_STEPS, HEAD_STEPS = 450, 500, 300
TWICE: Final = (2, 4, 4)
"""Layers of the head that is handed two states, for one of them is named twice."""
HELD_OUT_RATIO: Final = 0.1
PROMPT_TOKENS: Final = 64
PROMPT_COUNT: Final = 16


def cache_folder() -> Path:
    """As specbench's own: `$SPECBENCH_CACHE`, `$XDG_CACHE_HOME/specbench` or `~/.cache/specbench`."""
    if root := os.environ.get(ROOT_VARIABLE):
        return Path(root).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "specbench"


def models_folder() -> Path:
    """Named by the content of all that decides about the weights."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update((HERE / name).read_bytes())
    return cache_folder() / f"realengine-models-{digest.hexdigest()[:12]}"


def texts() -> tuple[bytes, list[str]]:
    """Text to train on, and the prompts from what is held out: every tenth paragraph."""
    lines = (HERE / "prose.txt").read_text(encoding="ascii").splitlines()
    step = round(1 / HELD_OUT_RATIO)
    kept = [line for index, line in enumerate(lines) if index % step]
    held_out = [line for index, line in enumerate(lines) if index % step == 0 and len(line) >= 2 * PROMPT_TOKENS]
    return ("\n".join(kept) + "\n").encode(), held_out


def make(folder: Path) -> None:
    """Two at a time: the draft model needs nothing of the target."""
    text, held_out = texts()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        draft = pool.submit(make_draft, folder, text)
        pool.submit(make_target, folder, text).result()
        lengths = make_heads(folder, text, held_out)
        draft.result()
    rows = [
        {"id": f"{category}-{place}", "category": category, "prompt": prompt}
        for category, prompts in prompts_of(held_out).items()
        for place, prompt in enumerate(prompts)
    ]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "made.json").write_text(json.dumps(lengths, indent=2) + "\n", encoding="utf-8")


def prompts_of(held_out: list[str]) -> dict[str, list[str]]:
    """`prose`: the beginnings of paragraphs. `copy`: a sentence twice and half of it again, which lookup finds."""
    prose = [line[:PROMPT_TOKENS] for line in held_out[:PROMPT_COUNT]]
    twice = [f"{line[:96]}\n{line[:96]}\n{line[:24]}" for line in held_out[:PROMPT_COUNT]]
    return {"prose": prose, "copy": twice}


def make_target(folder: Path, text: bytes) -> None:
    from tests.realengine import folders, llama, train

    begin_single()
    target = train.train_llama(llama.llama_weights(1, LAYERS, HIDDEN, INNER), text, 11, TARGET_STEPS, noted("target"))
    folders.write_llama(folder / "target", target, INNER)
    shutil.copytree(folder / "target", folder / "copy")


def make_draft(folder: Path, text: bytes) -> None:
    from tests.realengine import folders, llama, train

    begin_single()
    untrained = llama.llama_weights(2, DRAFT_LAYERS, DRAFT_HIDDEN, DRAFT_INNER)
    folders.write_llama(folder / "draft", train.train_llama(untrained, text, 12, DRAFT_STEPS, noted("draft")), DRAFT_INNER)


def make_heads(folder: Path, text: bytes, held_out: list[str]) -> dict[str, float]:
    """Gives the AL that each should have, on held-out text."""
    import torch
    from safetensors.torch import load_file

    from tests.realengine import eagle, folders, train

    begin_single()
    target = load_file(folder / "target" / "model.safetensors")
    ids = train.draft_ids(text, DRAFT_ROWS)
    blank, other = (eagle.head_weights(seed, HIDDEN, INNER, DRAFT_ROWS, 3 * HIDDEN) for seed in (3, 4))
    head = train.train_head(blank, target, text, ids, 13, HEAD_STEPS, noted("eagle3"))
    wide = eagle.head_weights(5, HIDDEN, INNER, DRAFT_ROWS, WIDER)
    headless = {name: one for name, one in head.items() if name != "lm_head.weight"}
    made = {"eagle3": head, "eagle3-untrained": other, "eagle3-wrong-width": wide, "eagle3-no-head": headless}
    for name, weights in made.items():
        folders.write_head(folder / name, weights, INNER, HIDDEN, ids)
    folders.write_head(folder / "eagle3-two-states", head, INNER, HIDDEN, ids, TWICE)
    prompts = torch.tensor([list(line[:PROMPT_TOKENS].encode()) for line in held_out[:PROMPT_COUNT]])
    lengths = {
        name: train.head_accept_length(made[name], target, prompts, ids, 64) for name in ("eagle3", "eagle3-untrained")
    }
    noted("eagle3")(f"AL by our own forward passes, K {train.DEPTH}: {lengths}")
    return lengths


def begin_single() -> None:
    """One thread: two that wait for each other on a busy machine take ten times as long."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)


def noted(name: str) -> Any:
    begun = time.monotonic()
    return lambda text: sys.stderr.write(f"{name} {time.monotonic() - begun:5.0f} s  {text}\n")


def ensure() -> Path:
    """The folder, made if it is not there. A half-made one never gets its name."""
    folder = models_folder()
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".realengine-") as scratch:
        inside = Path(scratch) / "models"
        inside.mkdir()
        make(inside)
        inside.rename(folder)
    return folder


if __name__ == "__main__":
    sys.stdout.write(f"{ensure()}\n")
