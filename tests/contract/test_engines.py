"""Every engine found obeys the protocol and reads a captured log of its own as it always did.

An engine brings `tests/data/engines/<name>/server.log`; `python tests/contract/test_engines.py NAME` writes its golden
parse, `parse.json`, anew.
"""

import inspect
import json
import sys
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
import pytest

from specbench import engines
from specbench.analysis.cells import decode_samples
from specbench.dialects import ChunkFacts, LogLine, Message
from specbench.engines import Command, Engine, Launch
from specbench.errors import SpecbenchError
from specbench.plan import Slot
from specbench.records import Observation
from specbench.suite import Drafter, Method, Model, Server, Speculation, Variant, Workload

DATA: Final = Path(__file__).parent.parent / "data" / "engines"
NAMES = engines.names()
MEMBERS = [
    name for name, value in vars(Engine).items() if name[0] != "_" and (callable(value) or isinstance(value, property))
]
SLOT = Slot(gpu_ids=(2, 3), port=31234, nccl_port=32234)


def launch(name: str, method: Method | None = None, cuda_graph: bool | None = None) -> Launch:
    drafter = Drafter(path="org/drafter", method=method) if method not in (None, "prompt_lookup") else None
    speculation = Speculation(method=method, drafter="d" if drafter else None, draft_tokens=4) if method else None
    variant = Variant(
        name="v", engine=name, speculation=speculation, cuda_graph=cuda_graph, server=Server(python="nowhere/python")
    )
    return Launch(model=Model(path="org/target"), drafter=drafter, variant=variant, slot=SLOT)


def test_engines_are_found() -> None:
    assert "sglang" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_engine_obeys_the_protocol(name: str) -> None:
    engine = engines.get(name)
    assert engine.title
    for member in MEMBERS:
        assert hasattr(engine, member), f"{name} lacks {member}"
        declared = getattr(Engine, member)
        if not isinstance(declared, property):
            wanted = list(inspect.signature(declared).parameters)[1:]
            assert list(inspect.signature(getattr(engine, member)).parameters)[: len(wanted)] == wanted, member


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", [None, *get_args(Method)])
def test_command_needs_nothing_installed(name: str, method: Method | None) -> None:
    engine = engines.get(name)
    if not engine.launches:
        pytest.skip(f"{name} launches nothing")
    try:
        command = engine.command(launch(name, method))
    except SpecbenchError:
        if method is None:
            raise
        pytest.skip(f"{name} does not claim {method}")
    assert isinstance(command, Command)
    assert all(isinstance(word, str) for word in command.argv)
    assert str(SLOT.port) in " ".join(command.argv)


@pytest.mark.parametrize("name", NAMES)
def test_request_carries_the_workload(name: str) -> None:
    workload = Workload(name="w", max_output_tokens=77, temperature=0.5)
    request = engines.get(name).request((Message(role="user", content="salt"),), workload, "served", None)
    body = json.dumps(request.body)
    assert request.path.startswith("/")
    assert "salt" in body
    assert "77" in body
    assert "0.5" in body
    assert isinstance(engines.get(name).event_reader(workload).read(b'{"choices": []}'), ChunkFacts)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("line", ["", "\n", "\x00", "[2026", "Decode batch", "é" * 5000, "{", "a: b, " * 500])
def test_no_line_raises(name: str, line: str) -> None:
    assert isinstance(engines.get(name).parse_log_line(line), LogLine)


@pytest.mark.parametrize("name", NAMES)
def test_captured_log_parses_as_before(name: str) -> None:
    golden = DATA / name / "parse.json"
    assert golden.is_file(), f"{name} needs tests/data/engines/{name}/server.log and parse.json"
    expected: list[dict[str, Any]] = json.loads(golden.read_text(encoding="utf-8"))
    for number, (found, wanted) in enumerate(zip(parsed(name), expected, strict=True), start=1):
        assert json.loads(json.dumps(found)) == wanted, f"line {number} of {name}'s server.log"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_of_a_captured_log_is_read_back(name: str) -> None:
    engine = engines.get(name)
    lines = (DATA / name / "server.log").read_bytes().decode().removesuffix("\n").split("\n")
    samples = [found.sample for line in lines if (found := engine.parse_log_line(line)).sample is not None]
    stored = [
        msgspec.json.decode(msgspec.json.encode(Observation(at_s=1.0, source="log", name="decode", value=one)))
        for one in samples
    ]
    assert decode_samples([msgspec.convert(one, Observation) for one in stored], (0.0, 2.0)) == tuple(samples)


def parsed(name: str) -> list[dict[str, Any]]:
    """One mapping a line, without the message's text."""
    engine = engines.get(name)
    lines = (DATA / name / "server.log").read_bytes().decode().removesuffix("\n").split("\n")
    return [_bare(msgspec.to_builtins(engine.parse_log_line(line))) for line in lines]


def _bare(line: dict[str, Any]) -> dict[str, Any]:
    """A decode line's values stand in its sample already."""
    dropped = {"text", "value"} if line["sample"] else {"text"}
    return {name: value for name, value in line.items() if name not in dropped and value not in (None, "", {}, ())}


def write(name: str) -> None:
    rows = ",\n".join(json.dumps(row) for row in parsed(name))
    (DATA / name / "parse.json").write_text(f"[\n{rows}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
