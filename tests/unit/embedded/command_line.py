"""What the tests of the command line share."""

import pytest

from specbench.embedded.arguments import ServerArguments, parse

NEWEST = "0.5.23"
EAGLE3 = "--speculative-algorithm EAGLE3 --speculative-draft-model-path d"
STEPS = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens"
CAPPED = (
    "Max running requests is reset to 48 for speculative decoding. "
    "You can override this by explicitly setting --max-running-requests."
)
ADJUSTED = "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1"


def parsed(flags: str, version: str = NEWEST, **settings: bool) -> ServerArguments:
    return parse(["--model-path", "kimi", *flags.split()], version, **settings)


def refusal(flags: str, version: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit_:
        parsed(flags, version)
    assert exit_.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("launch_server.py: error: ")
    return last.removeprefix("launch_server.py: error: ")
