"""How requests and the server end: clients that go away, and signals."""

import signal
import subprocess

import pytest

from tests.contract.live import END_LIMIT_S, GENERATE, LONG, SLOW, Live, Start


@pytest.fixture(scope="module")
def slow(starting: Start) -> Live:
    return starting("--enable-metrics", "--max-running-requests", "1", **SLOW)


def test_who_goes_away_is_aborted(slow: Live) -> None:
    with slow.client.stream("POST", "/generate", json=LONG | {"stream": True}) as answer:
        blocks = answer.iter_bytes()  # kept: the stream ends with its iterator
        next(blocks)
        assert slow.running() == 1
        refused = slow.client.post("/flush_cache")
        assert refused.status_code == 400
    slow.until(lambda: slow.running() == 0)
    assert "Cache not flushed because there are pending requests. #queue-req: 0, #running-req: 1" in slow.log
    assert slow.client.post("/flush_cache").status_code == 200
    assert "Cache flushed successfully!" in slow.log


def test_who_goes_away_from_the_queue_is_dropped(slow: Live) -> None:
    first = slow.sent(LONG | {"stream": True})
    slow.until(lambda: slow.running() == 1)
    second = slow.sent(LONG | {"stream": True})
    slow.until(lambda: slow.gauge("num_queue_reqs") == 1)
    second.close()
    slow.until(lambda: slow.gauge("num_queue_reqs") == 0)
    assert slow.running() == 1
    first.close()
    slow.until(lambda: slow.running() == 0)


def test_who_goes_away_without_a_stream_is_aborted(slow: Live) -> None:
    connection = slow.sent(LONG)
    slow.until(lambda: slow.running() == 1)
    connection.close()
    slow.until(lambda: slow.running() == 0)


def test_sigterm_drains(starting: Start) -> None:
    live = starting("--enable-metrics", base_step_s=0.03)
    with live.client.stream("POST", "/generate", json=GENERATE | {"stream": True}) as answer:
        blocks = answer.iter_bytes()
        next(blocks)
        live.process.send_signal(signal.SIGTERM)
        rest = b"".join(blocks)
    assert rest.endswith(b"data: [DONE]\n\n")
    assert b'"type":"length"' in rest
    assert live.process.wait(END_LIMIT_S) == 0
    assert "Remaining number of requests 1" in live.log
    assert "Remaining number of requests 0" in live.log


def test_a_second_sigterm_ends_at_once(starting: Start) -> None:
    live = starting(**SLOW)
    with live.client.stream("POST", "/generate", json=LONG | {"stream": True}) as answer:
        blocks = answer.iter_bytes()
        next(blocks)
        live.process.send_signal(signal.SIGTERM)
        live.until(lambda: "Remaining number of requests 1" in live.log)
        with pytest.raises(subprocess.TimeoutExpired):  # one signal waits for the request
            live.process.wait(0.3)
        live.process.send_signal(signal.SIGTERM)
        live.process.wait(END_LIMIT_S)
    assert "Remaining number of requests 0" not in live.log
