"""What stands before a server's own message: colours, log collectors, containers, clocks, ranks."""

import json
import re
from typing import NamedTuple

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # the real thing
    r"|\^\[\[[0-9;]*[A-Za-z]"  # caret notation, as `cat -v` and some collectors write it
    r"|\[(?:\d{1,3}(?:;\d{1,3})*)m"  # the escape byte was dropped on the way
)
SEAM = "\x1f"
"""Left where an escape stood between two digits, so that `w3` and `2026` do not become one number."""

DAY = r"\d{4}-\d\d-\d\d"
CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"

OWN_STAMP = re.compile(rf"\[(?P<ts>{DAY} {CLOCK})(?P<ranks>(?: [A-Z][A-Z_]*\d+)*)\](?: |$)")
"""SGLang's root format; also where one process writes into another's line."""

COLLECTORS = (
    re.compile(rf"\[(?P<ts>{DAY}T{CLOCK}{ZONE})\](?: |$)"),
    re.compile(rf"(?P<ts>{DAY}T{CLOCK}{ZONE}) (?:stdout|stderr) [FP](?: |$)"),  # Kubernetes CRI
    re.compile(rf"(?P<ts>{DAY}T{CLOCK}{ZONE}) \S+ [\w./@-]+(?:\[\d+\])?: "),  # journald, short-iso
    re.compile(rf"(?P<ts>[A-Z][a-z]{{2}} [ \d]\d {CLOCK}) \S+ [\w./@-]+(?:\[\d+\])?: "),  # journald, short
    re.compile(rf"<\d{{1,3}}>1 (?P<ts>{DAY}T{CLOCK}{ZONE}) \S+ \S+ \S+ \S+ (?:-|\[[^\]]*\]) "),  # RFC 5424
    re.compile(rf"(?P<ts>{DAY}T{CLOCK}{ZONE})(?:[ \t]+|$)"),  # docker logs -t, tracing formatters
    re.compile(rf"[A-Za-z][\w.-]*?{SEAM}?(?={DAY}T{CLOCK})"),  # a worker's name directly before the time
    re.compile(r"[A-Za-z0-9][\w./-]* *\| "),  # docker compose
    re.compile(r"\((?:[\w.:/-]+ )?pid=\d+(?:, [\w-]+=[^,()]*)*\) "),  # Ray
    re.compile(r"\[pod/[^\]\s]+\] "),  # kubectl logs --prefix
    re.compile(r"\[(?:rank|default)\d+\]: ?"),  # torchrun
    re.compile(r"\[\d+,\d+\]<std(?:out|err)>: ?"),  # mpirun --tag-output
    re.compile(r"\d{1,5}: "),  # srun --label
    re.compile(r"\{[\w-]+=[^{}\t]*\}\t"),  # Loki's labels
)
"""What is written before a line by those who gather it."""
PREFIXES = (
    OWN_STAMP,
    *COLLECTORS,
    re.compile(r" *(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL) +(?=\S)"),
    re.compile(r"sglang(?:[.:]+\w+)*: "),  # a formatter that names the logger
    re.compile(r"\[\w[\w./-]*\.py:\d+\] "),
)
WRAPPED = ("log", "MESSAGE", "message", "msg", "textPayload")
"""Where docker, journald, fluent-bit and others keep the line in their JSON."""
REPEATED = re.compile(r" \[repeated \d+x across cluster\](?: \(Ray deduplicates .*)?$")
"""Ray's word for other workers that wrote the same."""
CUT_STAMP = re.compile(r"\[\d{1,4}(?:-[\d :.A-Z_-]{0,60})?$")
"""A line that ends inside its own stamp."""


ANY_PREFIX = re.compile(rf"[^'\"=({{\[]{{1,80}}?(?=\[{DAY} {CLOCK}(?: [A-Z][A-Z_]*\d+)*\] (?:Decode|Prefill) batch)")
"""Whatever a collector writes before a batch line's own stamp (`srun --label`, stern, a host's name), without the marks
that stand before a prompt's text."""


class Stripped(NamedTuple):
    """A line without what stands before the message."""

    message: str
    ts: str | None
    """The innermost clock, as printed."""
    rank: dict[str, int] | None
    stamped: bool
    """A server's own `[time ranks]` was found."""


def strip(line: str) -> Stripped:
    """Takes prefixes off the front until none is left."""
    rest = bare(line)
    ts: str | None = None
    rank: dict[str, int] | None = None
    stamped = False
    while rest and (found := _prefix(rest)) is not None:
        groups = found.groupdict()
        ts = groups.get("ts") or ts
        if "ranks" in groups:
            rank, stamped = ranks_of(groups["ranks"]), True
        rest = rest[found.end() :]
    return Stripped(rest.replace(SEAM, " ").strip(), ts, rank, stamped)


def bare(line: str) -> str:
    """Out of a collector's JSON, without colours, and without what a progress bar overwrote or Ray added."""
    text = _unwrapped(line).rstrip("\r\n").rpartition("\r")[2]
    return _without_escapes(REPEATED.sub("", text) if text.find("[repeated ") > 0 else text)


def uncollected(line: str) -> str:
    """The server's line as it wrote it, with its own clock."""
    rest = bare(line)
    while (found := next((one for pattern in COLLECTORS if (one := pattern.match(rest)) and one.end()), None)) is not None:
        rest = rest[found.end() :]
    return rest.replace(SEAM, " ")


def _unwrapped(line: str) -> str:
    """The line in a collector's JSON (`{"log":"…\\n","stream":…}`); any other line as it is."""
    if line[:1] != "{":
        return line
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return line
    found = next((fields[name] for name in WRAPPED if name in fields), line)
    if isinstance(found, list):  # journald's form of text with colours
        found = bytes(one for one in found if isinstance(one, int) and 0 <= one < 256).decode("utf-8", "replace")
    return found if isinstance(found, str) else line


def ranks_of(text: str) -> dict[str, int] | None:
    """` DP1 TP1` to `{"dp": 1, "tp": 1}`, in any order; None when nothing is printed."""
    pairs = re.findall(r"([A-Z][A-Z_]*)(\d{1,6})\b", text)
    return {name.lower(): int(number) for name, number in pairs} or None


def _prefix(rest: str) -> re.Match[str] | None:
    """The first prefix that matches something at the front."""
    for pattern in PREFIXES:
        found = pattern.match(rest)
        if found is not None and found.end():
            return found
    return ANY_PREFIX.match(rest) if " batch" in rest and rest[:1] != "[" else None


def _without_escapes(line: str) -> str:
    if "[" not in line:
        return line
    return ESCAPES.sub(_seam, line)


def _seam(found: re.Match[str]) -> str:
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    digits = "0123456789.-%"
    return SEAM if before and after and before in digits and after in digits else ""
