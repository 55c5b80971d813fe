"""What stands before a server's own message comes off, and nothing else does."""

import pytest

from specbench.dialects.lines import Stripped, strip

MESSAGE = "Decode batch, #running-req: 1"
OWN = "[2026-03-01 10:00:01 DP1 TP4] "
RANK = {"dp": 1, "tp": 4}


@pytest.mark.parametrize(
    "before",
    [
        "",
        "sglang-1  | ",
        "sglang_worker.2 | ",
        "2026-03-01T09:00:02.123456789Z stderr F ",
        "2026-03-01T09:00:02.123456789+01:00 stdout P ",
        "2026-03-01T09:00:02.123456789Z ",
        "Mar  1 09:00:03 node7 sglang[812]: ",
        "2026-03-01T09:00:03+0100 node7 python3[812]: ",
        "(pid=4242) ",
        "(Replica:llm pid=4242, ip=10.0.0.7) ",
        "\x1b[36m(Worker pid=4242)\x1b[0m ",
        "^[[36m(Worker pid=4242)^[[0m ",
        "[36m(Worker pid=4242)[0m ",
        "[pod/llm-0/server] ",
        "[rank3]: ",
        "progress 10%|█ \r",
        "compose-1 | [2026-03-01T09:00:03Z] ",
    ],
)
def test_the_own_stamp_is_found_behind(before: str) -> None:
    assert strip(before + OWN + MESSAGE + "\r\n") == Stripped(MESSAGE, "2026-03-01 10:00:01", RANK, True)


@pytest.mark.parametrize("name", ["w3", "worker-12", "decode_0"])
@pytest.mark.parametrize("dim", ["\x1b[2m", "^[[2m", "[2m", ""])
def test_a_workers_name_before_an_iso_time(name: str, dim: str) -> None:
    found = strip(f"{name}{dim}2026-03-19T06:41:22.618734Z INFO {MESSAGE}")
    assert (found.message, found.ts, found.rank) == (MESSAGE, "2026-03-19T06:41:22.618734Z", None)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ("", None),
        (" TP0", {"tp": 0}),
        (" DP3 TP3 EP3", {"dp": 3, "tp": 3, "ep": 3}),
        (" TP2 PP1", {"tp": 2, "pp": 1}),
        (" DP0 PP1 ATTN_CP2 MOE_DP3 TP4 EP5", {"dp": 0, "pp": 1, "attn_cp": 2, "moe_dp": 3, "tp": 4, "ep": 5}),
    ],
)
def test_ranks_in_any_order(ranks: str, expected: dict[str, int] | None) -> None:
    assert strip(f"[2026-03-01 10:00:01.123{ranks}] {MESSAGE}") == (MESSAGE, "2026-03-01 10:00:01.123", expected, True)


@pytest.mark.parametrize(
    "line",
    [
        "Receive: obj=GenerateReqInput(text='[2026-03-01 10:00:01] Decode batch')",
        "the time is 2026-03-01T09:00:02Z",
        "[core.cc:12] hello",
        "| a | b |",
        "(see page 12) hello",
    ],
)
def test_a_message_keeps_what_is_its_own(line: str) -> None:
    assert strip(line) == (line, None, None, False)


def test_a_removed_escape_joins_no_digits() -> None:
    assert strip("1\x1b[0m2 3.[1m4").message == "1 2 3. 4"
