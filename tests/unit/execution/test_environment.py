"""What the run ran on."""

from specbench.execution.environment import environment


def test_every_null_has_its_reason() -> None:
    found = environment()
    reasons = found.pop("reasons")
    assert found["cpu_count"] >= 1
    assert found["memory_bytes"] > 2**20
    assert {name for name, value in found.items() if value is None} == set(reasons)
    assert all(reasons.values())
