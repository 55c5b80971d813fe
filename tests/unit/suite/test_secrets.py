"""What is hidden, wherever it stands; and what must stay."""

import json
from collections.abc import Mapping

import pytest

from specbench.suite import Drafter, Model, Server, Suite, Variant, Workload
from specbench.suite.secrets import HIDDEN, Secrets, api_key_of, secrets_of

PLANTED = "pl4nted-Value"


def suite(server: Server, **fields: object) -> Suite:
    whole: dict[str, object] = {
        "name": "s",
        "path": "s.yaml",
        "model": Model(path="m"),
        "variants": (Variant(name="plain", engine="sglang", server=server),),
        "baseline": "plain",
        "workloads": (Workload(name="chat"),),
    }
    return Suite(**{**whole, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("server", "environ"),
    [
        (Server(env={"HF_TOKEN": PLANTED}), {}),
        (Server(env={"db_password": PLANTED}), {}),
        (Server(args=("--api-key", PLANTED)), {}),
        (Server(args=(f"--admin-api-key={PLANTED}", 0.5)), {}),
        (Server(args=("--proxy", f"https://ann:{PLANTED}@host:1/x")), {}),
        (Server(env={"INDEX": f"https://{PLANTED}@host/simple"}), {}),
        (Server(), {"OPENAI_API_KEY": PLANTED}),
        (Server(), {"PLAIN_NAME": PLANTED, "SPECBENCH_SECRETS": "OTHER, PLAIN_NAME"}),
    ],
)
def test_a_known_value_is_hidden_everywhere(server: Server, environ: Mapping[str, str]) -> None:
    secrets = secrets_of(suite(server), environ)
    assert secrets.clean(f"it says {PLANTED}!") == f"it says {HIDDEN}!"
    assert secrets.spoken(f"{PLANTED}{PLANTED}") == HIDDEN * 2
    assert PLANTED not in json.dumps(secrets.tree({"a": [{"b": PLANTED}], "args": ["--x", PLANTED]}))


def test_names_listed_in_the_suite() -> None:
    secrets = secrets_of(suite(Server(env={"MINE": PLANTED}), secrets=("MINE",)), {})
    assert secrets.env({"MINE": PLANTED, "N": 1}) == {"MINE": HIDDEN, "N": "1"}
    assert secrets.clean(PLANTED) == HIDDEN


@pytest.mark.parametrize("value", ['quo"te\\pl4nted', "späce pl4nted", "a/b?c=d pl4nted"])
def test_a_value_is_found_in_every_spelling(value: str) -> None:
    secrets = Secrets([value])
    for text in (json.dumps({"k": value}), json.dumps({"k": value}, ensure_ascii=False), repr(value)):
        assert "pl4nted" not in secrets.clean(text), text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET https://ann:pw@host/x failed", "GET https://(hidden)@host/x failed"),
        ("http://h/v1?api_key=abc&n=1", "http://h/v1?api_key=(hidden)&n=1"),
        ("Authorization: Bearer abc.DEF-123456", "Authorization: Bearer (hidden)"),
        ("token hf_abcdefghijklmnopqrst used", "token (hidden) used"),
        ("ServerArgs(api_key='x1', port=1)", "ServerArgs(api_key='(hidden)', port=1)"),
        ("run --api-key sk now", "run --api-key (hidden) now"),
        ("write two: --api-key, 'sk'", "write two: --api-key, '(hidden)'"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, shown: str) -> None:
    assert Secrets().clean(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "eos_token='</s>', pad_token: '<pad>'",
        "max_total_num_tokens=5, --max-total-tokens 5 --speculative-token-map m",
        "http://127.0.0.1:30000/v1/models and mail@host",
        "the bearer certificates",
        "#running-req: 8, #token: 9216, token usage: 0.02",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert Secrets().clean(text) == text


def test_structures() -> None:
    secrets = Secrets()
    argv = ["--api-key", "sk-x", "--admin-api-key=sk-y", "--max-total-tokens", "5"]
    assert secrets.argv(argv) == ("--api-key", HIDDEN, f"--admin-api-key={HIDDEN}", "--max-total-tokens", "5")
    tree = {"variants": [{"server": {"env": {"HF_TOKEN": "x", "N": 1}, "args": ["--api-key", "x", 0.5]}}], "seed": 3}
    hidden = {"variants": [{"server": {"env": {"HF_TOKEN": HIDDEN, "N": "1"}, "args": ["--api-key", HIDDEN, "0.5"]}}]}
    assert secrets.tree(tree) == {**hidden, "seed": 3}
    assert secrets.tree({"api_key": "x", "pad_token": "x", "n": None}) == {"api_key": HIDDEN, "pad_token": "x", "n": None}


def test_a_part_of_a_name_is_no_secret() -> None:
    """Or the run's folders and rows could not be told any more."""
    server = Server(env={"A_KEY": "custom-drafter", "B_KEY": "plain"})
    assert secrets_of(suite(server, drafters={"custom-drafter": Drafter(path="d")}), {}).clean("custom-drafter") != HIDDEN


def test_a_suite_stays_a_suite() -> None:
    one = suite(Server(env={"HF_TOKEN": PLANTED, "N": 1}, args=("--api-key", PLANTED), host="0.0.0.0"))
    hidden = secrets_of(one, {}).record(one)
    assert (hidden.name, hidden.variants[0].server.host) == ("s", "0.0.0.0")
    assert hidden.variants[0].server.args == ("--api-key", HIDDEN)
    assert hidden.variants[0].server.env == {"HF_TOKEN": HIDDEN, "N": "1"}


@pytest.mark.parametrize(
    ("engine", "server", "environ", "key"),
    [
        ("sglang", Server(), {}, None),
        ("sglang", Server(args=("--api-key", "a", "--api-key=b")), {}, "b"),
        ("sglang", Server(args=("--api_key", "a,b")), {}, "a,b"),
        ("llamacpp", Server(args=("--api-key", "a,b")), {}, "a"),
        ("sglang", Server(args=("--api-key",)), {}, None),
        ("external", Server(), {"VLLM_API_KEY": "c"}, "c"),
        ("llamacpp", Server(env={"LLAMA_API_KEY": "d"}), {"LLAMA_API_KEY": "c"}, "d"),
    ],
)
def test_the_key_that_clients_send(engine: str, server: Server, environ: Mapping[str, str], key: str | None) -> None:
    assert api_key_of(Variant(name="v", engine=engine, server=server), environ) == key
