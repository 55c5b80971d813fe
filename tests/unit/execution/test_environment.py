"""What the run ran on, and what must never be stored."""

from specbench.execution.environment import (
    environment,
    text_without_secrets,
    tree_without_secrets,
    without_secrets,
    words_without_secrets,
)
from specbench.suite import Model, Server, Suite, Variant, Workload


def test_every_null_has_its_reason() -> None:
    found = environment()
    reasons = found.pop("reasons")
    assert found["cpu_count"] >= 1
    assert found["memory_bytes"] > 2**20
    assert {name for name, value in found.items() if value is None} == set(reasons)
    assert all(reasons.values())


def test_secrets_are_hidden() -> None:
    env = {"HF_TOKEN": "hf_x", "OPENAI_API_KEY": "sk-x", "TOKENIZERS_PARALLELISM": "true", "db_password": "p"}
    assert without_secrets(env) == {
        "HF_TOKEN": "(hidden)",
        "OPENAI_API_KEY": "(hidden)",
        "TOKENIZERS_PARALLELISM": "true",
        "db_password": "(hidden)",
    }
    argv = ["--api-key", "sk-x", "--admin-api-key=sk-y", "--max-total-tokens", "5", "--speculative-token-map", "m"]
    hidden = ("--api-key", "(hidden)", "--admin-api-key=(hidden)", "--max-total-tokens", "5", "--speculative-token-map", "m")
    assert words_without_secrets(argv) == hidden


def test_secrets_are_hidden_inside_a_suite() -> None:
    suite = {"variants": [{"server": {"env": {"HF_TOKEN": "x", "N": 1}, "args": ["--api-key", "x", 0.5]}}], "seed": 3}
    assert tree_without_secrets(suite) == {
        "variants": [{"server": {"env": {"HF_TOKEN": "(hidden)", "N": "1"}, "args": ["--api-key", "(hidden)", "0.5"]}}],
        "seed": 3,
    }


def test_secrets_are_hidden_in_the_copy_of_the_suites_text() -> None:
    server = Server(env={"HF_TOKEN": "hf_abc", "N": 1}, args=("--api-key", "sk-def", "--admin-api-key=sk-ghi", 0.5))
    suite = Suite(
        name="s",
        path="s.yaml",
        model=Model(path="m"),
        variants=(Variant(name="v", engine="sglang", server=server),),
        baseline="v",
        workloads=(Workload(name="chat"),),
    )
    text = "env: {HF_TOKEN: hf_abc, N: 1}\nargs: [--api-key, sk-def, --admin-api-key=sk-ghi, 0.5]\n"
    hidden = "env: {HF_TOKEN: (hidden), N: 1}\nargs: [--api-key, (hidden), --admin-api-key=(hidden), 0.5]\n"
    assert text_without_secrets(text, suite) == hidden
