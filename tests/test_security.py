"""What no line of the program may do: load what runs code, or hand words to a shell."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = sorted((Path(__file__).parent.parent / "specbench").rglob("*.py"))
CODE_LOADERS: Final = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "copyreg",
    "jsonpickle",
}
SHELLS: Final = {"system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell", "spawnlp", "execlp"}
UNSAFE: Final = {"eval", "exec", "read_pickle", "to_pickle", "unsafe_load", "full_load", "compile"}
YAML_LOADERS: Final = {"load", "load_all", "Loader", "FullLoader", "UnsafeLoader", "CLoader"}


def faults(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"imports {one.name}" for one in node.names if one.name.partition(".")[0] in CODE_LOADERS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in CODE_LOADERS:
            yield f"imports {node.module}"
        elif isinstance(node, ast.Attribute):
            yield from _attribute(node)
        elif isinstance(node, ast.Call):
            yield from _call(node)


def _attribute(node: ast.Attribute) -> Iterator[str]:
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    if node.attr in SHELLS and owner in ("os", "subprocess", "asyncio"):
        yield f"uses {owner}.{node.attr}"
    if owner == "yaml" and node.attr in YAML_LOADERS:
        yield f"uses yaml.{node.attr}"


def _call(node: ast.Call) -> Iterator[str]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else name
    if name in UNSAFE or (called in UNSAFE and called not in ("compile", "eval", "exec")):
        yield f"calls {called}"
    for word in node.keywords:
        if word.arg in ("shell", "allow_pickle") and not (
            isinstance(word.value, ast.Constant) and word.value.value is False
        ):
            yield f"calls {called} with {word.arg}"
    literal = next((one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)), "")
    if called in ("import_module", "__import__") and literal.partition(".")[0] in CODE_LOADERS:
        yield f"imports {literal}"


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "import os, pickle.x",
        "from dill import loads",
        "os.system('x')",
        "subprocess.run('x', shell=True)",
        "subprocess.run('x', shell=flag)",
        "yaml.load(text)",
        "numpy.load(path, allow_pickle=True)",
        "eval(text)",
        "pandas.read_pickle(path)",
        "importlib.import_module('pickle')",
        "asyncio.create_subprocess_shell('x')",
    ],
)
def test_what_is_looked_for_is_found(line: str) -> None:
    assert list(faults(ast.parse(line)))


@pytest.mark.parametrize("line", ["re.compile('x')", "subprocess.run(['x'], shell=False)", "yaml.SafeLoader(text)"])
def test_what_is_harmless_is_not(line: str) -> None:
    assert not list(faults(ast.parse(line)))


def test_nothing_loads_code_and_nothing_goes_through_a_shell() -> None:
    found = {path.name: list(faults(ast.parse(path.read_text(encoding="utf-8")))) for path in SOURCE}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_torch_is_never_asked_to_load() -> None:
    """A checkpoint in PyTorch's own format is a pickle; only safetensors, GGUF and JSON are read."""
    assert [path.name for path in SOURCE if "torch.load" in path.read_text(encoding="utf-8")] == []
