"""Read results of `sglang.bench_serving` (JSON lines) or `vllm bench serve` (JSON): the same questions, in the same words.

Their files hold no chunks and no launches, so nothing is stored: speed-up, break-even and doubts are printed.
Exit codes: 0 read, 2 when a file is missing or no such result.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from specbench.errors import SpecbenchError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the verb's arguments."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="result files; their rows are judged together")
    parser.add_argument("--json", action="store_true", help="strict JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    """The exit code. Raises SpecbenchError for a file that can't be read."""
    from specbench.analysis.imported import judge_rows_of
    from specbench.dialects.bench_rows import rows_of
    from specbench.render import imported

    rows: list[dict[str, Any]] = []
    for name in args.files:
        try:
            rows += [{**row, "file": Path(name).stem} for row in rows_of(Path(name).read_text(encoding="utf-8"))]
        except OSError as error:
            raise SpecbenchError(f"{name}: {error.strerror or error}") from None
        except ValueError as error:
            text = str(error) if str(error).startswith("line ") else "is no text in UTF-8"
            raise SpecbenchError(f"{name}: {text}") from None
    if not rows:
        raise SpecbenchError(f"{', '.join(args.files)}: holds no result")
    found = judge_rows_of(rows)
    if args.json:
        told = {"rows": list(found.rows), "speedup": found.speedup_ratio, "warnings": list(found.warnings)}
        print(json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(imported.render(found), end="")
    return 0
