"""Checks a case of kind `preflight`, and the pairings of `checkpoints/expect.json`."""

import json
from pathlib import Path
from typing import Any

import yaml

from specbench.analysis import Finding
from specbench.checkpoints import Checkpoint
from specbench.checkpoints.headers import shapes_of
from specbench.preflight import Facts, Load, find


def facts_of(value: dict[str, Any]) -> Facts:
    plan = value.get("plan") or {}
    return Facts(
        engine=value["engine"],
        version=value.get("version"),
        argv=tuple(str(word) for word in value["launch"]),
        env={name: str(word) for name, word in (value.get("env") or {}).items()},
        target=checkpoint_of(value.get("target")),
        draft=checkpoint_of(value.get("draft")),
        load=Load(
            max_concurrency=plan.get("max_concurrency"),
            max_input_tokens=plan.get("max_input_tokens"),
            max_output_tokens=plan.get("max_output_tokens"),
        ),
    )


def checkpoint_of(value: dict[str, Any] | None) -> Checkpoint | None:
    if value is None:
        return None
    tensors = value.get("tensors")
    shapes = None if tensors is None else {name: tuple(shape) for name, shape in tensors.items()}
    return Checkpoint(name=value.get("name", ""), config=value.get("config"), tensors=shapes)


def check_preflight(case: dict[str, Any]) -> None:
    expected = case["expect"]
    known = {"findings", "forbidden_codes", "silent", "effective"}
    assert set(expected) <= known, f"no check for {sorted(set(expected) - known)}"
    facts = facts_of(yaml.safe_load("\n".join(case["lines"])))
    found = find(facts)
    check_findings(found, expected["findings"])
    assert set(expected.get("forbidden_codes", ())) & {one.code for one in found} == set()
    if expected.get("silent"):
        assert found == ()
    for name, value in expected.get("effective", {}).items():
        assert (name, facts.effective_draft_tokens) == ("num_draft_tokens", value)


def check_findings(found: tuple[Finding, ...], expected: list[dict[str, Any]]) -> None:
    for wanted in expected:
        same = [one for one in found if one.code == wanted["code"]]
        assert same, f"{wanted['code']} is not among {[one.code for one in found]}"
        assert same[0].severity == wanted["severity"]
        said = " ".join((same[0].message, same[0].evidence, same[0].remedy))
        for word in wanted.get("mentions", ()):
            assert word in said


def pairing_facts(folder: Path, pairing: dict[str, Any]) -> Facts:
    draft, algorithm = pairing["draft"], pairing["algorithm"]
    argv = ["--model-path", pairing["target"], "--speculative-algorithm", algorithm]
    argv += ["--speculative-draft-model-path", draft] if draft else []
    argv += ["--context-length", str(pairing["context_length"])] if "context_length" in pairing else []
    return Facts(
        engine=pairing["engine"],
        version=pairing["version"],
        argv=tuple(argv),
        env=pairing.get("env", {}),
        target=stored(folder / pairing["target"]),
        draft=stored(folder / draft) if draft else None,
    )


def stored(folder: Path) -> Checkpoint:
    config, header = (json.loads((folder / name).read_text()) for name in ("config.json", "safetensors_header.json"))
    return Checkpoint(name=folder.name, config=config, tensors=shapes_of(header))


def check_pairing(folder: Path, pairing: dict[str, Any]) -> None:
    found = find(pairing_facts(folder, pairing))
    check_findings(found, pairing["findings"])
    if not pairing["findings"]:
        assert found == ()


def pairing_name(pairing: dict[str, Any]) -> str:
    return f"{pairing['target']}+{pairing['draft']}+{pairing['algorithm']}"


def pairings(path: Path) -> list[dict[str, Any]]:
    """None where the folder has no checkpoints."""
    return list(json.loads(path.read_text())["pairings"]) if path.is_file() else []
