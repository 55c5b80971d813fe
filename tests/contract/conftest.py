"""Servers for the contract tests; each ends with its module."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.live import Live, Start


@pytest.fixture(scope="module")
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    lives: list[Live] = []

    def start(*flags: str, **costs: Any) -> Live:
        lives.append(Live(tmp_path_factory.mktemp("server"), flags, costs))
        return lives[-1]

    yield start
    for live in lives:
        live.close()
