"""The rules of the house: direction of imports, size, names, and nothing heavy behind `--help`."""

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import specbench

ROOT: Final = Path(__file__).parent.parent
SOURCE: Final = sorted((ROOT / "specbench").rglob("*.py"))
EVERY: Final = SOURCE + sorted((ROOT / "tests").rglob("*.py"))

FILE_LINES: Final = 300
FUNCTION_LINES: Final = 40
MEDIAN_LINES: Final = 12
BANNED_NAMES: Final = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}
HEAVY: Final = {"pandas", "matplotlib", "scipy", "numpy", "httpx", "rich", "jsonschema", "openvino", "openvino_genai"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def place(path: Path, node: ast.AST | None = None) -> str:
    line = getattr(node, "lineno", None)
    return f"{path.relative_to(ROOT)}:{line}" if line else str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, Function))


def lines_count(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def test_imports_run_downward() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9]\d* kept, 0 broken", done.stdout), done.stdout


def test_files_are_short() -> None:
    counts = {place(path): len(path.read_text(encoding="utf-8").splitlines()) for path in EVERY}
    assert {name: count for name, count in counts.items() if count > FILE_LINES} == {}


def test_functions_are_short() -> None:
    long = {
        f"{place(path, function)} {function.name}": lines_count(function)
        for path in SOURCE
        for function in functions(path)
        if lines_count(function) > FUNCTION_LINES
    }
    assert long == {}


def test_the_median_function_is_about_ten_lines() -> None:
    assert statistics.median(lines_count(each) for path in SOURCE for each in functions(path)) <= MEDIAN_LINES


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether it does nothing with what it caught: no statement but `pass`, `...` or a text."""
    return all(isinstance(step, ast.Pass) or _is_constant(step) for step in handler.body)


def _is_constant(step: ast.stmt) -> bool:
    return isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)


@pytest.mark.parametrize(("body", "is_swallowed"), [("pass", True), ("...", True), ("'why'", True), ("raise", False)])
def test_swallowing_is_seen(body: str, is_swallowed: bool) -> None:
    (attempt,) = ast.parse(f"try:\n    work()\nexcept OSError:\n    {body}\n").body
    assert isinstance(attempt, ast.Try)
    assert swallows(attempt.handlers[0]) is is_swallowed


def test_no_exception_is_swallowed() -> None:
    found = [
        place(path, node)
        for path in EVERY
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and swallows(node)
    ]
    assert found == []


def test_names_say_what_is_inside() -> None:
    named = [(place(path), path.stem) for path in EVERY]
    named += [(place(path), folder) for path in EVERY for folder in path.relative_to(ROOT).parts[:-1]]
    named += [
        (place(path, node), node.name) for path in SOURCE for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)
    ]
    words = {(where, word.lower()) for where, name in named for word in re.findall(r"[A-Z]?[a-z]+", name)}
    assert sorted((where, word) for where, word in words if word in BANNED_NAMES) == []


def documented_rooms() -> set[str]:
    """Names at the start of the indented lines of `specbench.__doc__`."""
    assert specbench.__doc__ is not None
    starts = re.findall(r"^ {4}((?:\w+, )*\w+) +\S", specbench.__doc__, flags=re.MULTILINE)
    return {name for start in starts for name in start.split(", ")}


def test_every_module_of_the_docstring_exists() -> None:
    rooms = documented_rooms()
    assert {"suite", "plan", "engines", "cli"} <= rooms
    package = ROOT / "specbench"
    missing = [room for room in rooms if not (package / room).is_dir() and not (package / f"{room}.py").is_file()]
    assert missing == []


def test_every_module_is_in_the_docstring() -> None:
    present = {path.name.removesuffix(".py") for path in (ROOT / "specbench").iterdir() if path.suffix == ".py"}
    present |= {path.parent.name for path in (ROOT / "specbench").glob("*/__init__.py")}
    present -= {"__init__", "__main__", "units", "errors", "clock"}
    assert present - documented_rooms() == set()


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from specbench.cli.main import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit as leaving:\n"
        "    assert not leaving.code, leaving.code\n"
        "print('LOADED', *sorted(name.partition('.')[0] for name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *shown, loaded = done.stdout.splitlines()
    assert "specbench" in "\n".join(shown)
    assert set(loaded.split()) & HEAVY == set()
