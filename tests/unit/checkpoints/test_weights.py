"""A drafter's values, read from files that are made here."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy
import pytest

from specbench.checkpoints import weights
from specbench.checkpoints.weights import Weights, read_weights
from specbench.preflight import Facts
from specbench.preflight.checks import get


def written(folder: Path, **tensors: tuple[str, Any]) -> Path:
    """safetensors: `name=(dtype, array)`; a double underscore is a dot."""
    header, data = {}, b""
    for name, (kind, array) in tensors.items():
        raw = array.tobytes()
        header[name.replace("__", ".")] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder


def normal(deviation: float = 0.004, mean: float = 0.0) -> Any:
    return numpy.random.default_rng(1).normal(mean, deviation, (64, 192))


def halved(array: Any) -> Any:
    """BF16: the upper half of an F32."""
    return (array.astype("<f4").view("<u4") >> 16).astype("<u2")


def said(folder: Path) -> dict[str, tuple[str, str]]:
    facts = Facts(engine="sglang", draft_weights=read_weights(folder))
    return {one.code: (one.severity, one.message) for one in get("weights")(facts)}


@pytest.mark.parametrize(
    ("kind", "array"), [("F32", normal().astype("<f4")), ("F16", normal().astype("<f2")), ("BF16", halved(normal()))]
)
def test_healthy_values_are_said_to_be_so(kind: str, array: Any, tmp_path: Path) -> None:
    (one,) = read_weights(written(tmp_path, fc__weight=(kind, array)))
    assert (one.name, one.count, one.bad_count) == ("fc.weight", 64 * 192, 0)
    assert one.mean == pytest.approx(0, abs=2e-4)
    assert one.deviation == pytest.approx(0.004, rel=0.05)
    severity, message = said(tmp_path)["weights_healthy"]
    assert severity == "note"
    assert "mean ≈ 0, deviation 0.004" in message


@pytest.mark.parametrize(
    ("array", "code", "severity"),
    [
        (numpy.zeros((8, 8), "<f4"), "weights_zero", "error"),
        (numpy.full((8, 8), 0.5, "<f4"), "weights_constant", "error"),
        (numpy.array([1.0, numpy.nan, numpy.inf, 2.0], "<f4"), "weights_not_finite", "error"),
        (numpy.full(4, numpy.nan, "<f4"), "weights_not_finite", "error"),
        (normal(5.0).astype("<f4"), "weights_unusual", "warning"),
        (normal(0.004, 1.0).astype("<f4"), "weights_unusual", "warning"),
    ],
)
def test_what_is_wrong_is_told(array: Any, code: str, severity: str, tmp_path: Path) -> None:
    found = said(written(tmp_path, model__lm_head__weight=("F32", array)))
    assert {name: one[0] for name, one in found.items()} == {code: severity}


def test_pieces_give_what_the_whole_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = read_weights(written(tmp_path, fc__weight=("F32", normal().astype("<f4"))))
    monkeypatch.setattr(weights, "PIECE_COUNT", 1000)
    (pieces,) = read_weights(tmp_path)
    assert pieces.deviation == pytest.approx(whole.deviation)
    assert (pieces.low, pieces.high, pieces.count) == (whole.low, whole.high, whole.count)


def test_other_tensors_are_not_read(tmp_path: Path) -> None:
    assert (
        read_weights(written(tmp_path, midlayer__fc__weight=("F32", numpy.zeros(4, "<f4")), d2t=("I64", numpy.zeros(4))))
        == ()
    )


def test_what_can_not_be_read_is_unknown(tmp_path: Path) -> None:
    (one,) = read_weights(written(tmp_path, fc__weight=("F8_E4M3", numpy.zeros(4, "u1"))))
    assert one.unknown == "values of type F8_E4M3 are not read"
    path = tmp_path / "model.safetensors"
    good = written(tmp_path, fc__weight=("F32", normal().astype("<f4")))
    path.write_bytes(path.read_bytes()[:5000])
    (one,) = read_weights(good)
    assert one.unknown.startswith("its values are not where the header says")
    path.write_bytes(struct.pack("<Q", 18) + b'{"fc.weight": [1]}')
    assert [one.unknown for one in read_weights(tmp_path)] == ["its entry in the header is no object"]
    path.write_bytes(b"abc")
    assert read_weights(tmp_path) == (
        Weights(name="", file="model.safetensors", unknown="no header that can be read (error)"),
    )
    assert said(tmp_path) == {}
