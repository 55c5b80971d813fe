"""What a suite's parts mean to one another. Judges whatever is well-formed, so that all faults show at once."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from specbench.suite.document import Document, Given, Keys, quoted, suggestion
from specbench.suite.scaling import gpus_needed
from specbench.suite.sketch import Sketch, Sketches
from specbench.suite.types import NAME_PATTERN

NEEDS_DRAFTER: Final = ("eagle", "eagle3", "draft_model", "dflash")
"""`mtp` drafts with layers of the target and may name a drafter; `prompt_lookup` has none."""
DRAFTS_IN_STEPS: Final = ("eagle", "eagle3", "mtp", "draft_model")
CLOSED_LOOP_KEYS: Final = {
    "concurrency": "an open loop holds no number of streams; remove it",
    "request_count": "write it under 'arrival'",
    "rate_cap_rps": "its rate is the cap; remove it",
}
"""Of a workload, and what is to be done about them in an open loop."""
NEED_PATH: Final = ("jsonl", "sharegpt", "speed_bench")
"""Datasets that nothing is fetched for."""
TWO_WORDS: Final = re.compile(r"--?[A-Za-z][\w-]*\s+\S.*", re.DOTALL)


def check_meaning(document: Document, sketches: Sketches, known: Mapping[str, Collection[str]]) -> None:
    """`known` holds the names that exist outside the file: `engine`, `dataset`. A kind left out is not checked."""
    for sketch in sketches.found:
        _check_engine(document, sketch, known.get("engine"))
        _check_server(document, sketch)
        if sketch.speculation is not None:
            _check_speculation(document, sketch, sketch.speculation)
    _check_args(document, ("server", "args"))
    _check_args(document, ("matrix", "base", "args"))
    _check_workloads(document, known.get("dataset"))
    _check_rehearsal(document, sketches)
    _check_names(document, sketches.found)
    if sketches.complete:
        _check_baseline(document, sketches.found)


def drafter_method(document: Document, drafter: Any) -> Any:
    """The method that a drafter states, if any."""
    return document.get("drafters", drafter, "method") if isinstance(drafter, str) else None


def _check_engine(document: Document, sketch: Sketch, known: Collection[str] | None) -> None:
    engine = sketch.fields.get("engine") or document.fields().get("engine")
    if engine is None:
        if document.sound((*sketch.keys, "engine")) and document.sound(("engine",)):
            document.complain((*sketch.keys, "engine"), "no engine: give 'engine' here or at the top of the file")
    elif known is not None and engine.value not in known:
        document.complain(engine.keys, f"engine {quoted(engine.value)} does not exist{suggestion(engine.value, known)}")


def _check_server(document: Document, sketch: Sketch) -> None:
    _check_args(document, (*sketch.keys, "args"))
    parallel = sketch.fields.get("tensor_parallel") or document.fields("server").get("tensor_parallel")
    gpu_count = document.get("hardware", "gpu_count")
    if parallel and gpu_count and parallel.value > gpu_count:
        document.complain(
            parallel.keys, f"tensor_parallel {parallel.value} needs as many GPUs, but hardware.gpu_count is {gpu_count}"
        )
    elif gpu_count:
        _check_width(document, sketch, parallel.value if parallel else 1, gpu_count)


def _check_width(document: Document, sketch: Sketch, tensor_parallel: int, gpu_count: int) -> None:
    """What `args` make of it."""
    args = sketch.fields.get("args")
    needed = gpus_needed(tensor_parallel, (*(document.get("server", "args") or ()), *(args.value if args else ())))
    if needed > gpu_count:
        keys = args.keys if args else ("server", "args")
        document.complain(keys, f"a server with these args needs {needed} GPUs, but hardware.gpu_count is {gpu_count}")


def _check_args(document: Document, keys: Keys) -> None:
    for index, word in enumerate(document.get(*keys) or ()):
        if isinstance(word, str) and TWO_WORDS.fullmatch(word) and document.sound((*keys, index)):
            flag, rest = word.split(None, 1)
            document.complain(
                (*keys, index), f"{quoted(word)} would reach the server as one word; write two: {flag}, {quoted(rest)}"
            )


def _check_speculation(document: Document, sketch: Sketch, given: dict[str, Given]) -> None:
    keys = sketch.speculation_keys
    drafter = given.get("drafter")
    drafters = document.value.get("drafters") or {}
    if drafter and document.sound(("drafters",)) and drafter.value not in drafters:
        listed = suggestion(drafter.value, drafters) or "; there are none"
        document.complain(drafter.keys, f"drafter {quoted(drafter.value)} is not under 'drafters'{listed}")
    stated = given["method"].value if "method" in given else None
    method = stated or drafter_method(document, drafter.value if drafter else None)
    if method is None:
        _check_method_lacking(document, keys, drafter)
    elif method == "prompt_lookup" and drafter:
        document.complain(drafter.keys, "prompt_lookup drafts from the prompt itself: remove 'drafter'")
    elif method in NEEDS_DRAFTER and not drafter and document.sound((*keys, "drafter")):
        document.complain((*keys, "drafter"), f"method {method} needs a 'drafter'")
    _check_lengths(document, keys, given, method)


def _check_method_lacking(document: Document, keys: Keys, drafter: Given | None) -> None:
    """A drafter's checkpoint may tell it later. Silent where the method or the drafter has been complained about already."""
    if drafter is None and all(document.sound((*keys, name)) for name in ("method", "drafter")):
        document.complain((*keys, "method"), "no method: give 'method' here, or name a 'drafter' that has one")


def _check_lengths(document: Document, keys: Keys, given: dict[str, Given], method: Any) -> None:
    tokens, steps, topk, ngram = (given.get(key) for key in ("draft_tokens", "steps", "topk", "ngram"))
    if tokens is None and document.sound((*keys, "draft_tokens")):
        document.complain((*keys, "draft_tokens"), "key 'draft_tokens' is missing in 'speculation'")
    synthetic = given.get("synthetic_length")
    if synthetic and tokens and synthetic.value > tokens.value:
        document.complain(
            synthetic.keys,
            f"synthetic_length {synthetic.value:g} is more than draft_tokens {tokens.value} allow; write at most that",
        )
    if ngram and method not in (None, "prompt_lookup"):
        document.complain(ngram.keys, f"'ngram' belongs to prompt_lookup, not to {method}")
    if steps and method == "prompt_lookup":
        document.complain(steps.keys, "'steps' has no meaning with prompt_lookup: remove it")
    if method not in DRAFTS_IN_STEPS or not document.sound((*keys, "topk")):
        return
    branches = topk.value if topk else 1
    if steps is None and branches > 1 and document.sound((*keys, "steps")):
        document.complain((*keys, "steps"), f"key 'steps' is missing: with topk {branches} draft_tokens does not imply it")
    if tokens and steps and branches == 1 and tokens.value != steps.value + 1:
        document.complain(
            tokens.keys,
            f"draft_tokens {tokens.value} with steps {steps.value} and topk 1: the server would silently verify "
            f"{steps.value + 1} tokens (steps + 1); write draft_tokens: {steps.value + 1}, or steps: {tokens.value - 1}",
        )


def _check_rehearsal(document: Document, sketches: Sketches) -> None:
    drafters = document.value.get("drafters") or {}
    for name, given in document.fields("rehearsal", "acceptance").items():
        if document.sound(("drafters",)) and name not in drafters:
            listed = suggestion(name, drafters) or "; there are none"
            document.complain(given.keys, f"drafter {quoted(name)} is not under 'drafters'{listed}")
    variants = [one.name.value for one in sketches.found if one.name]
    for name, given in document.fields("rehearsal", "faults").items():
        if sketches.complete and name not in variants:
            document.complain(given.keys, f"{quoted(name)} is no variant{suggestion(name, variants)}")


def _check_workloads(document: Document, known: Collection[str] | None) -> None:
    seen: dict[str, Keys] = {}
    for index in range(len(document.get("workloads") or ())):
        fields = document.fields("workloads", index)
        if name := fields.get("name"):
            _check_unique(document, "workload", name, seen)
        dataset, path = fields.get("dataset"), fields.get("path")
        if dataset and known is not None and dataset.value not in known:
            document.complain(
                dataset.keys, f"dataset {quoted(dataset.value)} does not exist{suggestion(dataset.value, known)}"
            )
        _check_dataset(document, index, dataset, path)
        _check_streams(document, fields.get("concurrency"))
        _check_arrival(document, index)
        _check_saturate(document, index)


def _check_streams(document: Document, given: Given | None) -> None:
    """A level is known by its workload and its streams: twice the same would be taken for one."""
    streams = given.value if given and isinstance(given.value, list) else []
    for place, count in enumerate(streams):
        if given is not None and count in streams[:place]:
            document.complain(
                (*given.keys, place), f"concurrency {count} is listed twice; list it once, or raise 'launches'"
            )


def _check_dataset(document: Document, index: int, dataset: Given | None, path: Given | None) -> None:
    if dataset and dataset.value in NEED_PATH and document.sound(("workloads", index, "path")) and not path:
        document.complain(dataset.keys, f"dataset {dataset.value} needs 'path', the file to read")
    if path and (dataset is None or dataset.value == "builtin"):
        document.complain(path.keys, "'path' has no meaning with the built-in prompts; write dataset: jsonl")
    if path and dataset and dataset.value == "random":
        document.complain(path.keys, "'path' has no meaning with random words: remove it")
    fields = document.fields("workloads", index)
    if "categories" in fields and dataset and dataset.value == "random":
        document.complain(fields["categories"].keys, "'categories' has no meaning with random words: remove it")
    if "prompt_word_count" in fields and (dataset is None or dataset.value != "random"):
        document.complain(fields["prompt_word_count"].keys, "'prompt_word_count' belongs to dataset: random")
    if "thinking" in fields and "api" in fields and fields["api"].value == "generate":
        document.complain(fields["thinking"].keys, "'thinking' has no meaning with api: generate, which applies no template")


def _check_saturate(document: Document, index: int) -> None:
    keys: Keys = ("workloads", index)
    fields, arrival = document.fields(*keys), document.fields(*keys, "arrival")
    if "slo" in fields and fields["slo"].value == {}:
        document.complain((*keys, "slo"), "'slo' states nothing: give 'ttft_s', 'tpot_s' or both")
    if "saturate" not in fields:
        return
    if "slo" not in fields and document.sound((*keys, "slo")):
        document.complain((*keys, "saturate"), "'saturate' needs an 'slo': goodput is what keeps it")
    if "trace" in arrival:
        document.complain((*keys, "saturate"), "'saturate' multiplies a rate; a trace has none")
        return
    wanted, other = ("max_rate_rps", "max_streams_count") if "arrival" in fields else ("max_streams_count", "max_rate_rps")
    given = document.fields(*keys, "saturate")
    if other in given:
        loop = "an open loop" if "arrival" in fields else "a closed loop"
        document.complain(given[other].keys, f"{quoted(other)} has no meaning in {loop}; write '{wanted}'")
    elif wanted not in given and document.sound((*keys, "saturate", wanted)):
        document.complain((*keys, "saturate"), f"'saturate' needs '{wanted}', its last level")
    elif wanted in given:
        _check_last_level(document, given[wanted], arrival.get("rate_rps") or fields.get("concurrency"))


def _check_last_level(document: Document, last: Given, first: Given | None) -> None:
    start = first.value if first else 1
    start = start[-1] if isinstance(start, list) and start else start
    if isinstance(start, int | float) and isinstance(last.value, int | float) and last.value <= start:
        document.complain(last.keys, f"{quoted(str(last.keys[-1]))} {last.value:g} is not above the first level, {start:g}")


def _check_arrival(document: Document, index: int) -> None:
    keys: Keys = ("workloads", index, "arrival")
    if document.get(*keys) is None:
        return
    given, around = document.fields(*keys), document.fields("workloads", index)
    for name, why in CLOSED_LOOP_KEYS.items():
        if name in around:
            document.complain(around[name].keys, f"{quoted(name)} has no meaning with 'arrival': {why}")
    if "trace" in given:
        for name in ("rate_rps", "process", "burstiness", "duration_s"):
            if name in given:
                document.complain(
                    given[name].keys, f"{quoted(name)} has no meaning with 'trace', which says when; remove it"
                )
    else:
        _check_rate(document, keys, given)


def _check_rate(document: Document, keys: Keys, given: dict[str, Given]) -> None:
    lengths = [name for name in ("duration_s", "request_count") if name in given or not document.sound((*keys, name))]
    if "rate_rps" not in given and document.sound((*keys, "rate_rps")):
        document.complain(keys, "'arrival' needs 'rate_rps', or 'trace', a file with times")
    elif len(lengths) != 1:
        only = "has both 'duration_s' and 'request_count': give one" if lengths else "needs 'duration_s' or 'request_count'"
        document.complain(keys, f"'arrival' {only}")
    process = given["process"].value if "process" in given else "poisson"
    if "burstiness" in given and process != "gamma":
        document.complain(given["burstiness"].keys, "'burstiness' belongs to process: gamma")


def _check_names(document: Document, found: tuple[Sketch, ...]) -> None:
    seen: dict[str, Keys] = {}
    for name in [sketch.name for sketch in found if sketch.name]:
        if re.search(NAME_PATTERN, name.value):
            _check_unique(document, "variant", name, seen)
        else:
            document.complain(
                name.keys,
                f"the matrix would call a variant {quoted(name.value)}, which is no name: letters, digits and "
                ". _ + - only, 80 at most",
            )


def _check_unique(document: Document, noun: str, name: Given, seen: dict[str, Keys]) -> None:
    if name.value not in seen:
        seen[name.value] = name.keys
        return
    first = seen[name.value]
    hint = "; the matrix's name must mention every axis" if first == name.keys else f"; first on line {document.line(first)}"
    document.complain(name.keys, f"{noun} name {quoted(name.value)} is used twice{hint}")


def _check_baseline(document: Document, found: tuple[Sketch, ...]) -> None:
    plain = [one.name.value for one in found if one.name and one.speculation is None]
    named = document.fields().get("baseline")
    if not document.sound(("baseline",)):
        return
    if not found:
        if not any(keys[:1] in (("variants",), ("matrix",)) for keys in document.faulty):
            document.complain((), "no variants: give 'variants', 'matrix' or both")
    elif named is None:
        if not plain and all(document.sound(one.speculation_keys) for one in found):
            document.complain(("baseline",), "no variant is without speculation: add one, such as '- name: baseline'")
    elif named.value not in [one.name.value for one in found if one.name]:
        document.complain(named.keys, f"baseline {quoted(named.value)} is no variant{suggestion(named.value, plain)}")
    elif named.value not in plain:
        document.complain(
            named.keys, f"baseline {quoted(named.value)} speculates; name a variant without{suggestion('', plain)}"
        )
