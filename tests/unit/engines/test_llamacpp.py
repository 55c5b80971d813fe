"""The engine `llamacpp`: its command line says how to draft, always."""

from pathlib import Path
from typing import Any

import pytest

from specbench import engines
from specbench.engines import Launch
from specbench.engines.llamacpp import BINARY_VARIABLE, version_of
from specbench.errors import SpecbenchError
from specbench.plan import Slot
from specbench.suite import Drafter, Model, Server, Speculation, Variant

ENGINE = engines.get("llamacpp")


def command(speculation: Speculation | None = None, method: Any = None, **fields: Any) -> tuple[str, ...]:
    drafter = Drafter(path="d.gguf", method=method) if speculation and speculation.drafter else None
    server = Server(args=fields.pop("args", ()))
    variant = Variant(name="v", engine="llamacpp", speculation=speculation, server=server, **fields)
    launch = Launch(model=Model(path="t.gguf"), drafter=drafter, variant=variant, slot=Slot(port=8123))
    return ENGINE.command(launch).argv


def test_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BINARY_VARIABLE, "/opt/llama-server")
    words = command(args=("-np", 4))
    assert words[:3] == ("/opt/llama-server", "-m", "t.gguf")
    assert words[-2:] == ("-np", "4")
    assert "--spec-type" not in words


@pytest.mark.parametrize(
    ("stated", "of_drafter", "word"),
    [(None, None, "draft-simple"), (None, "eagle3", "draft-eagle3"), ("draft_model", None, "draft-simple")],
)
def test_a_drafter_is_never_given_without_its_type(stated: Any, of_drafter: Any, word: str) -> None:
    words = command(Speculation(method=stated, drafter="d", draft_tokens=5), of_drafter)
    place = words.index("--spec-type")
    assert words[place:] == ("--spec-type", word, "--spec-draft-model", "d.gguf", "--spec-draft-n-max", "4")


def test_prompt_lookup_has_no_drafter() -> None:
    assert "--spec-draft-model" not in command(Speculation(method="prompt_lookup", draft_tokens=5))


def test_prompt_lookup_has_lengths_of_its_own() -> None:
    words = command(Speculation(method="prompt_lookup", draft_tokens=5, ngram=3))
    lengths = ("--spec-ngram-simple-size-m", "4", "--spec-ngram-simple-size-n", "3")
    assert words[words.index("--spec-type") :] == ("--spec-type", "ngram-simple", *lengths)
    assert "--spec-ngram-simple-size-n" not in command(Speculation(method="prompt_lookup", draft_tokens=5))


@pytest.mark.parametrize(
    ("speculation", "fields", "words"),
    [
        (Speculation(method="eagle", drafter="d", draft_tokens=4), {}, "does not draft by eagle"),
        (Speculation(drafter="d", draft_tokens=4, topk=2, steps=2), {}, "leave `topk` and `steps` out"),
        (None, {"args": ("--port", 1)}, "sets --port in `args`"),
        (None, {"cuda_graph": True}, "leave `cuda_graph` out"),
    ],
)
def test_what_it_can_not_do_is_a_sentence(speculation: Speculation | None, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecbenchError) as caught:
        command(speculation, **fields)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("version: 5123 (0c1e570)\nbuilt with cc", "b5123"),
        ("version: 0 (unknown)", None),
        ("version: 0.5.0-dev (build 1, commit 0c1e570)\nbuilt with GNU 12.2.0", "0.5.0-dev"),
        ("version: 0.5.0 (build 11434, commit 0c1e570)", "b11434"),
        ("nothing of it", None),
    ],
)
def test_the_version_as_old_and_new_builds_print_it(said: str, version: str | None) -> None:
    assert version_of(said) == version


def test_obstacles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BINARY_VARIABLE, str(tmp_path / "nothing"))
    variant = Variant(name="v", engine="llamacpp", server=Server())
    found = ENGINE.obstacles(Model(path=str(tmp_path / "t.gguf")), None, variant)
    assert len(found) == 2
    assert "set SPECBENCH_LLAMA_SERVER" in found[0]
    assert "takes a GGUF file" in found[1]
    assert ENGINE.version(variant) is None


def test_props_say_how_many_run_at_once() -> None:
    assert ENGINE.resolved({"total_slots": 4, "model_path": "t.gguf", "build_info": "b1-x", "other": 1}) == {
        "max_running_requests": 4,
        "model_path": "t.gguf",
        "version": "b1-x",
    }
