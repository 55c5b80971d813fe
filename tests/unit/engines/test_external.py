"""A server that somebody else runs: what is refused before anything is asked of it."""

from pathlib import Path

import pytest

from specbench.engines.external import ENGINE
from specbench.suite import Model, Server, Variant


def obstacles(url: str, log: str | None = None) -> tuple[str, ...]:
    variant = Variant(name="v", engine="external", server=Server(url=url, log=log))
    return ENGINE.obstacles(Model(path="m"), None, variant)


@pytest.mark.parametrize("url", ["http://127.0.0.1:30000", "https://host.example/v1", "http://[::1]:8000"])
def test_a_good_url(url: str) -> None:
    assert obstacles(url=url) == ()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://a..b:80", "can't be read"),
        ("http://xn--:80", "can't be read"),
        ("http://" + 70 * "x" + ":80", "can't be read"),
        ("127.0.0.1:30000", "must begin with http:// or https://"),
        ("http://[::1", "can't be read"),
        ("http://127.0.0.1:abc", "can't be read"),
        ("http://127.0.0.1:999999", "can't be read"),
        ("http://", "names no host"),
        ("http://user:hunter2@host", "holds a user or a password"),
    ],
)
def test_a_bad_url_is_one_sentence(url: str, words: str) -> None:
    (sentence,) = obstacles(url=url)
    assert words in sentence
    assert "hunter2" not in sentence


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    (sentence,) = obstacles(url="http://127.0.0.1:1", log=str(tmp_path / "no.log"))
    assert sentence.endswith("no.log does not exist")
