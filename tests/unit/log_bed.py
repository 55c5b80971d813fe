"""Logs of SGLang made by a seed: decode, prefill and access lines of some ranks, and others between them."""

import random

DECODE = (
    "[2026-11-01 10:{:02d}:{:02d}{}] Decode batch. #running-req: {}, #token: {}, token usage: 0.{:02d}, accept len: {:.2f}, "
    "accept rate: {:.2f}, cuda graph: {}, gen throughput (token/s): {:.2f}, #queue-req: {}, "
)
PREFILL = (
    "[2026-11-01 10:{:02d}:{:02d}{}] Prefill batch. #new-seq: 1, #new-token: {}, #cached-token: {}, token usage: 0.05, "
    "#running-req: {}, #queue-req: 0, "
)
ACCESS = '[2026-11-01 10:{:02d}:{:02d}] INFO:     127.0.0.1:{} - "POST /generate HTTP/1.1" 200 OK'
OTHERS = (
    'INFO:     127.0.0.1:50123 - "GET /health HTTP/1.1" 200 OK',
    "[2026-11-01 10:00:00 TP0] Cache flushed successfully!",
    "[2026-11-01 10:00:00] Receive: obj=G(text='Decode batch. #running-req: 9, gen throughput (token/s): 1.00')",
    "Decode batch. #running-req: 9, #token: 9, gen throughput (token/s): 99.00, #queue-req: 0",
    "",
    "text of nobody 12",
)


def made_log(seed: int, line_count: int) -> list[str]:
    """Decode, prefill and access lines of some ranks, and others between them."""
    rng = random.Random(seed)
    ranks = rng.choice(([""], [" TP0"], [" DP0 TP0", " DP1 TP0"], [" TP0", " TP1"]))
    lines = []
    for _ in range(line_count):
        minute, second, rank, kind = rng.randrange(60), rng.randrange(60), rng.choice(ranks), rng.random()
        running = rng.choice((0, 1, 7, 16, 128))
        if kind < 0.6:
            tail = (rng.uniform(1, 4), rng.random(), rng.random() < 0.9, rng.uniform(1, 9999), rng.randrange(3))
            lines.append(DECODE.format(minute, second, rank, running, rng.randrange(10**6), rng.randrange(100), *tail))
        elif kind < 0.8:
            lines.append(PREFILL.format(minute, second, rank, rng.randrange(9999), rng.randrange(99), running))
        elif kind < 0.95:
            lines.append(ACCESS.format(minute, second, rng.randrange(30000, 60000)))
        else:
            lines.append(rng.choice(OTHERS))
    return lines
