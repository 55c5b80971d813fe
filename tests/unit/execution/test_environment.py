"""What the run ran on, and what must never be stored."""

from specbench.execution.environment import environment, tree_without_secrets, without_secrets, words_without_secrets


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
