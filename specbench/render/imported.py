"""Rows of other benchmarks as a table."""

from typing import Any, Final

from specbench.analysis.imported import Imported
from specbench.render import words

COLUMNS: Final = ("run", "streams", "tok/s", "speed-up", "AL", "needs AL", "TTFT ms", "TPOT ms", "verdict")
WIDTHS: Final = (22, 9, 10, 9, 6, 9, 9, 9, 0)
WARNINGS: Final = {
    "failed_requests": "some requests failed: the rows did not do the same work",
    "token_counts_disagree": "the server and the tool's tokenizer count different numbers of output tokens",
}
MISLEADING: Final = {
    "itl_is_per_chunk": "ITL in these files is the gap between chunks, not the time a token takes: read TPOT",
    "stream_buffered": "answers came in one piece: TTFT is the whole answer's time",
}


def render(found: Imported) -> str:
    """Ends with a line break."""
    lines = ["".join(_cell(text, width) for text, width in zip(COLUMNS, WIDTHS, strict=True)).rstrip()]
    lines += [_line(row, place) for place, row in enumerate(found.rows, 1)]
    codes = dict.fromkeys(code for row in found.rows for code in row["doubts"])
    notes = [WARNINGS[one] for one in found.warnings] + [text for code, text in MISLEADING.items() if code in codes]
    lines += ["", *(f"warning: {text}" for text in notes)] if notes else []
    return "\n".join(lines) + "\n"


def _line(row: dict[str, Any], place: int) -> str:
    name = words.clean(str(row.get("tag") or row.get("file") or row.get("model") or f"row {place}"))
    cells = (
        name if len(name) <= 20 else name[:19] + "…",
        words.clean(str(row.get("max_concurrency") or words.NOTHING)),
        words.rate(row.get("output_throughput_tps")),
        words.length(row["speedup"]),
        words.length(row.get("accept_length")),
        words.length(row["break_even_accept_length"]),
        words.rate(row.get("median_ttft_ms")),
        words.rate(row.get("median_tpot_ms")),
        words.verdict(row["verdict"]),
    )
    return "".join(_cell(text, width) for text, width in zip(cells, WIDTHS, strict=True)).rstrip()


def _cell(text: str, width: int) -> str:
    return f"{text:<{width}}" if width in (22, 0) else f"{text:>{width - 2}}  "
