"""llama.cpp's other lines: start-up, what it says when it goes on without speculation, and why it died."""

import re
import shlex
import signal
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from specbench.dialects import DeathCause, LineKind
from specbench.dialects.messages import Event


class Shape(NamedTuple):
    """A message known by its beginning, or by what it holds. `sentence` is set for faults."""

    kind: LineKind
    name: str
    pattern: re.Pattern[str]
    sentence: str = ""
    advice: str = ""


def _shape(kind: LineKind, name: str, pattern: str, sentence: str = "", advice: str = "") -> Shape:
    return Shape(kind, name, re.compile(pattern), sentence, advice)


SAME_VOCABULARY = "use a drafter made for this target's tokenizer"
SHAPES = (
    _shape(
        "ready",
        "ready",
        r"(?:srv +llama_server|main): (?:listening on|server is listening on) |.{0,20}HTTP server is listening",
    ),
    _shape("phase", "weights", r"(?:srv +)?load_model: loading model '"),
    _shape(
        "phase",
        "drafter",
        r"(?:srv +)?(?:load_model|common_speculative_init_result): loading draft model '(?P<drafter>[^']*)'",
    ),
    _shape("phase", "slots", r"(?:srv +)?load_model: initializing(?: slots)?, n_slots = (?P<slots>\d{1,6})"),
    _shape("phase", "loaded", r"(?:srv +llama_server|main): model loaded"),
    _shape(
        "warning",
        "vocab_mismatch",
        r".*(?:target and draft vocabs are not compatible|draft model vocab (?:type )?must match"
        r"|vocab(?:s|ularies)? .{0,30}not compatible)",
        "the drafter has another vocabulary than the target, so the server goes on without speculation",
        SAME_VOCABULARY,
    ),
    _shape(
        "warning",
        "drafter_is_not_eagle3",
        r".*draft model is not eagle3(?: \(expected (?P<expected_layers>\d+) extract layers, got (?P<layers>\d+)\))?",
        "an EAGLE-3 drafter was asked for and the given one is none, so the server goes on without speculation",
        "give an EAGLE-3 drafter, or use --spec-type draft-simple for a plain draft model",
    ),
    _shape(
        "warning",
        "speculation_failed",
        r".*failed to (?:initialize|create|init) (?:the )?speculative",
        "speculation could not be set up, so the server goes on without it",
    ),
    _shape(
        "warning",
        "synthetic_acceptance",
        r".*synthetic speculative acceptance is enabled",
        "acceptance is faked (--spec-synth-len or --spec-synth-rates): the output is not valid",
        "remove the flag; keep such a run only to measure the break-even",
    ),
    _shape(
        "fatal",
        "out_of_memory",
        r".*(?:out of memory|failed to allocate .*buffer)",
        "the memory did not suffice",
        "lower -c, -np or -ngl",
    ),
    _shape(
        "fatal",
        "model_path_missing",
        r".*(?:failed to open GGUF file|gguf_init_from_file: failed to open)",
        "a model's file does not exist",
        "check the paths of the model and of the drafter",
    ),
    _shape(
        "fatal",
        "draft_load_failed",
        r".*failed to load draft model",
        "the drafter could not be loaded",
        "check the drafter's file",
    ),
    _shape(
        "fatal",
        "model_load_failed",
        r".*(?:failed to load model|error loading model)",
        "the model could not be loaded",
        "check the model's file",
    ),
    _shape(
        "fatal",
        "port_in_use",
        r".*(?:couldn't bind|could not bind|[Aa]ddress already in use)",
        "its port is held by another process",
        "choose another --port",
    ),
    _shape(
        "fatal",
        "bad_flag",
        r"error: (?:invalid argument|unknown argument|the argument|.*(?:has been )?removed)",
        "the server does not take one of its flags",
        "flags differ between builds; --draft-max and --draft-min are gone, see --spec-draft-n-max",
    ),
    _shape(
        "fatal",
        "gpu_error",
        r"(?:CUDA|ROCm|HIP|MUSA|SYCL) error: |ggml_vulkan: .*(?:DeviceLost|error)",
        "a GPU kernel failed",
        "run once with -ngl 0 or --flash-attn off, and look at the driver's log (dmesg)",
    ),
    _shape(
        "fatal",
        "vocab_mismatch",
        r".*the draft model '[^']*' is not compatible with the target model '[^']*'$",
        "the drafter has another vocabulary than the target, and this build refuses it",
        SAME_VOCABULARY,
    ),
    _shape("fatal", "assertion", r".*GGML_ASSERT\(", "an assertion failed inside the engine"),
    _shape("known", "command", r"# +\S*llama-[\w-]+ "),
    _shape("known", "command", r"\S*llama-(?:server|speculative|cli)[\w-]* -"),
    _shape("known", "build", r"(?:build|version)(?:_info)?: +b?(?P<build>\d{3,6})\b"),
    _shape("noise", "draft_header", r"(?:draft|target):$"),
)


def event(text: str) -> Event | None:
    """None when no shape fits: it may be anything."""
    if not text:
        return Event("noise", "blank", {})
    for shape in SHAPES:
        found = shape.pattern.match(text)
        if found is not None:
            values: dict[str, Any] = {name: int(w) if w.isdigit() else w for name, w in found.groupdict().items() if w}
            if shape.name == "command":
                values.update(command_facts(words_of(text)))
            return Event(shape.kind, shape.name, values)
    return None


def words_of(text: str) -> list[str]:
    """A command line as it stands in a log."""
    try:
        return shlex.split(text.lstrip("# "))
    except ValueError:
        return text.split()


def command_facts(words: Sequence[str]) -> dict[str, Any]:
    """`spec_type`, `drafter`, `k` of a command line, as far as it states them."""
    names = {"-md": "drafter", "--model-draft": "drafter", "--spec-draft-model": "drafter", "--spec-type": "spec_type"}
    names |= {"--spec-draft-n-max": "k", "--draft-max": "k", "--draft": "k", "--draft-n": "k"}
    names["--spec-ngram-simple-size-m"] = "k"
    values: dict[str, Any] = {}
    for word, after in zip(words, [*words[1:], ""], strict=True):
        flag, equals, attached = word.partition("=")
        value = attached if equals else after
        if flag in names and value and not (names[flag] == "k" and not value.isdigit()):
            values[names[flag]] = int(value) if names[flag] == "k" else value
        if flag in ("--spec-synth-len", "--spec-synth-rates"):
            values["synthetic"] = True
    return values


def diagnose(lines: Iterable[str], exit_code: int | None = None) -> DeathCause:
    """The first line that names a cause. Never raises."""
    from specbench.dialects.llamacpp_log import strip

    for number, line in enumerate(lines, start=1):
        found = cause(number, strip(line)[0])
        if found is not None:
            return found
    if exit_code is not None and exit_code < 0:
        return DeathCause(code="unknown", sentence=f"{signal_name(exit_code)} ended the server, and its log names no cause")
    code = "" if exit_code is None else f" (exit code {exit_code})"
    return DeathCause(code="unknown", sentence=f"the log names no cause, only consequences{code}")


def signal_name(exit_code: int) -> str:
    """Of a negative exit code."""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def cause(number: int, text: str) -> DeathCause | None:
    """The cause that a line names. `number` is 1-based."""
    for shape in SHAPES:
        if shape.kind == "fatal" and (found := shape.pattern.match(text)) is not None:
            return DeathCause(
                code=shape.name,
                sentence=f"{shape.sentence} ({text[:200]})",
                decisive_line=number,
                values={name: word for name, word in found.groupdict().items() if word},
                advice=shape.advice,
            )
    return None


def sentence_of(code: str) -> tuple[str, str]:
    """What a warning means, and what to do."""
    return next(((one.sentence, one.advice) for one in SHAPES if one.name == code), ("", ""))
