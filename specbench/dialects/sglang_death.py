"""Why an SGLang server died: the first cause in its log, not the last line."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from specbench.dialects import DeathCause
from specbench.dialects.lines import strip
from specbench.dialects.messages import EXCEPTION, Cause, tidy
from specbench.dialects.sglang_args import argument_facts, launch_facts
from specbench.dialects.sglang_causes import CAUSES, FAULT
from specbench.dialects.sglang_events import event, server_args
from specbench.dialects.sglang_log import ECHO
from specbench.dialects.sglang_version import graph_max_bs_flag

CAPTURE_BEGIN = re.compile(r"Capture .*graph begin|Capturing batches")
CAPTURE_END = re.compile(r"Capture .*graph end")
CAPTURE_FAILED = re.compile(r"Capture .*graph failed")
BUCKET = re.compile(r"\(bs=(\d{1,7})\b.*?\| *(\d{1,7})/(\d{1,7}) ")
GPU_USE = re.compile(
    r"total capacity of (?P<total_gib>[\d.]+) GiB of which (?P<free_gib>[\d.]+) (?P<unit>[GM])iB is free"
    r"(?:.*?this process has (?P<own_gib>[\d.]+) (?P<own_unit>[GM])iB)?"
)
LAST_LINES = 40
HELD_BY_OTHERS_RATIO = 0.2
"""More of the card than this in other hands: that is the cause, not our own appetite."""
DRAFTER_ONLY = ("hot_token_id", "fc", "d2t", "midlayer")
"""Attributes that only an EAGLE-3 drafter has; asked of a target's class, the target was loaded as the drafter."""
QUALIFIED = re.compile(r"[a-z_]\w*(?:\.\w+)*\.[A-Z]\w*: ")
"""An exception by its module and class, behind a traceback; not every class is called an error."""
STAGES = {"weights": "while loading weights", "kv_cache": "while allocating the KV cache", "serving": "while serving"}


class _Context(NamedTuple):
    """What the log said before the decisive line."""

    stage: str
    bucket: tuple[int, int, int] | None
    """Batch size, index and count of the graph being captured."""
    loads: tuple[dict[str, Any], ...]
    """Values of each `Load weight end`, in order."""
    arguments: dict[str, Any]


def started(lines: Sequence[str]) -> bool:
    """Whether the log says that requests are welcome."""
    return any((found := event(strip(line).message)) is not None and found.kind == "ready" for line in lines)


def ends_in_traceback(lines: Sequence[str]) -> bool:
    """Whether an exception is among the last lines, and nobody caught it: a traceback stands before."""
    index = _first_exception(lines)
    return index is not None and len(lines) - index <= LAST_LINES


def diagnose(
    lines: Sequence[str], exit_code: int | None = None, argv: Sequence[str] = (), version: str | None = None
) -> DeathCause:
    """The cause, from the log; `argv` and `version` sharpen it. Never raises."""
    found = min(_candidates(lines), key=lambda one: (one[1].order, one[0]), default=None)
    if found is not None:
        index, cause, values = found
        context = _context(lines[: index + 1])
        return _refine(index, cause, values, context, argv, version, lines)
    index_exception = _first_exception(lines)
    if index_exception is None:
        return _unknown(exit_code)
    text = strip(lines[index_exception]).message
    return DeathCause(code="exception", sentence=f"it died of {text[:300]}", decisive_line=index_exception + 1)


def _candidates(lines: Sequence[str]) -> Iterator[tuple[int, Cause, dict[str, Any]]]:
    for index, line in enumerate(lines):
        text = strip(line).message
        if not FAULT.match(text) or ECHO.match(text):
            continue
        for cause in CAUSES:
            found = cause.pattern.search(text)
            if found is not None:
                yield index, cause, {name: _number(word) for name, word in found.groupdict().items() if word}
                break


def _first_exception(lines: Sequence[str]) -> int | None:
    """Index of the first traceback's last line."""
    inside = False
    for index, line in enumerate(lines):
        text = strip(line).message
        inside = inside or "Traceback (most recent call last)" in text
        if inside and not line[:1].isspace() and (EXCEPTION.match(text) or QUALIFIED.match(text)):
            return index
    return None


def _context(lines: Sequence[str]) -> _Context:
    stage, bucket, arguments = "start", None, {}
    loads: list[dict[str, Any]] = []
    for line in lines:
        text = strip(line).message
        progress = BUCKET.search(text) if "Capturing" in text else None
        if progress:
            bucket = (int(progress.group(1)), int(progress.group(2)), int(progress.group(3)))
        stage = _stage(text, stage)
        if text.startswith("Load weight end"):
            known = event(text)
            loads.append(known.value if known else {})
        elif text.startswith("server_args="):
            arguments = dict(server_args(text))
    return _Context(stage, bucket, tuple(loads), arguments)


def _stage(text: str, before: str) -> str:
    if CAPTURE_FAILED.search(text) or CAPTURE_BEGIN.match(text):
        return "graph_capture"
    if CAPTURE_END.match(text) or text.startswith("Load weight end"):
        return "kv_cache"
    if text.startswith("Load weight begin"):
        return "weights"
    return "serving" if text.startswith("The server is fired up") else before


def _refine(
    index: int,
    cause: Cause,
    values: dict[str, Any],
    context: _Context,
    argv: Sequence[str],
    version: str | None,
    lines: Sequence[str],
) -> DeathCause:
    """The cause with what the context adds to it."""
    if cause.code == "out_of_memory":
        return _out_of_memory(index, context, version, strip(lines[index]).message)
    code, sentence, advice = cause.code, cause.sentence, cause.advice
    if code == "no_such_attribute" and _target_as_drafter(values, context, argv):
        code = "draft_path_missing"
        sentence = "no drafter is given, so the target was loaded a second time as its own drafter"
        advice = "add --speculative-draft-model-path (in a suite: `drafter`)"
        if len(context.loads) > 1 and "used_gb" in context.loads[1]:
            values = {**values, "second_load_gb": context.loads[1]["used_gb"]}
    if code == "path_missing" and _is_drafter(values, context, argv):
        code, sentence, advice = (
            "draft_path_missing",
            "the drafter's folder or repository does not exist",
            "check `drafters`",
        )
    elif code == "path_missing":
        code = "model_path_missing"
    detail = "" if code == "draft_path_missing" else f" ({strip(lines[index]).message[:200]})"
    return DeathCause(code=code, sentence=sentence + detail, decisive_line=index + 1, values=tidy(values), advice=advice)


def _out_of_memory(index: int, context: _Context, version: str | None, text: str) -> DeathCause:
    use = _gpu_use(text)
    held_gib = use.get("held_by_others_gib", 0.0)
    if held_gib > HELD_BY_OTHERS_RATIO * use.get("total_gib", float("inf")):
        return DeathCause(
            code="gpu_memory_not_free",
            sentence=f"other processes hold {held_gib:g} of the GPU's {use['total_gib']:g} GiB",
            decisive_line=index + 1,
            values=use,
            advice="free the GPUs (nvidia-smi shows who holds them), or choose others",
        )
    if context.stage != "graph_capture":
        where = STAGES.get(context.stage, "at start-up")
        code = f"out_of_memory_{context.stage}" if context.stage in STAGES else "out_of_memory"
        return DeathCause(
            code=code,
            sentence=f"the GPU ran out of memory {where}",
            decisive_line=index + 1,
            values=use,
            advice="lower --mem-fraction-static or --max-running-requests, or spread the model over more GPUs (--tp-size)",
        )
    sentence, values = "the GPU ran out of memory while capturing CUDA graphs", dict(use)
    if context.bucket:
        size, done, total = context.bucket
        sentence += f" (batch size {size}, {done} of {total} done)"
        values.update(bs=size, bucket=done, buckets=total)
    advice = f"lower {graph_max_bs_flag(version)} (fewer and smaller graphs) or --mem-fraction-static"
    return DeathCause(
        code="out_of_memory_graph_capture", sentence=sentence, decisive_line=index + 1, values=values, advice=advice
    )


def _gpu_use(text: str) -> dict[str, float]:
    """What torch says of the card, in GiB; empty when it says nothing."""
    found = GPU_USE.search(text)
    if found is None:
        return {}
    total_gib = float(found["total_gib"])
    free_gib = float(found["free_gib"]) / (1024 if found["unit"] == "M" else 1)
    use = {"total_gib": total_gib, "free_gib": round(free_gib, 3)}
    if found["own_gib"]:
        own_gib = float(found["own_gib"]) / (1024 if found["own_unit"] == "M" else 1)
        use.update(own_gib=round(own_gib, 3), held_by_others_gib=round(max(0.0, total_gib - free_gib - own_gib), 2))
    return use


def _target_as_drafter(values: dict[str, Any], context: _Context, argv: Sequence[str]) -> bool:
    """No draft path on the command line, or the same class loaded twice with the same weights."""
    if values.get("attribute") not in DRAFTER_ONLY:
        return False
    if _draft_path(argv, context):
        return False
    kinds = [load.get("type") for load in context.loads]
    return bool(argv) or (len(kinds) > 1 and kinds[0] == kinds[1] == values.get("model"))


def _is_drafter(values: dict[str, Any], context: _Context, argv: Sequence[str]) -> bool:
    """Whether the missing path is the drafter's."""
    drafter = _draft_path(argv, context)
    paths = [str(value).strip("'\"") for value in values.values()]
    return bool(drafter) and any(PurePath(drafter) in (PurePath(path), *PurePath(path).parents) for path in paths)


def _draft_path(argv: Sequence[str], context: _Context) -> str:
    return launch_facts(argv).draft_path or argument_facts(context.arguments).draft_path or ""


def _unknown(exit_code: int | None) -> DeathCause:
    return DeathCause(code="unknown", sentence=f"the log names no cause, only consequences ({_ending(exit_code)})")


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "how it ended is not known"
    if exit_code in (-9, 137):
        return "ended by SIGKILL: by SGLang itself after a fault, by the system for want of memory, or by a person"
    if exit_code < 0:
        return f"ended by signal {-exit_code}"
    return "ended by itself with exit code 0" if exit_code == 0 else f"exit code {exit_code}"


def _number(word: str) -> float | int | str:
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        return word
