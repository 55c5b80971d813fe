"""`specbench`: finds the verb and hands over. Imports nothing slow, so that `--help` answers at once."""

import argparse
import contextlib
import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

from specbench import __version__
from specbench.errors import SpecbenchError

VERBS: Final = {
    "run": "run a suite: launch each variant, drive the load, store what was seen, print the table",
    "plan": "print what `run` would do: every command, its environment, the order, the duration",
    "check": "look for faults before anything starts: drafter, flags, load",
    "report": "print the tables of a stored run again and write its page with plots, from disk alone",
    "compare": "compare two results: did anything change, is it within the margin",
    "calibrate": "launch one server again and again: how small a change can be seen here",
    "nightly": "run a suite, compare it with the last good night, keep the history with its page",
    "log": "read a server's log: acceptance, speed, start-up, cause of death, and what is wrong",
    "import": "read results of sglang.bench_serving or vllm bench serve, judge them in the same words",
    "schema": "print the JSON Schema of suite files, for editors",
    "selftest": "measure this machine's load client: its lateness, its cost, its limit",
}
"""A verb is one module `specbench/cli/<verb>.py` with `add_arguments(parser)` and `run(args) -> int`."""

EXAMPLES: Final = """\
examples:
  specbench run suites/quickstart.yaml        real speculative decoding on this CPU, in minutes
  specbench plan suites/kimi.yaml             what 8 GPUs would be asked to do; needs none of them
  specbench run suites/kimi.yaml --rehearse   the same suite against a simulated server
  specbench run --resume results/<run>        go on with a run that was cut off
  specbench report results/<run>              the tables again
  specbench compare results/<old> results/<new>   is it worse than before

exit codes:
  0 all went well   1 a variant failed   2 wrong usage, or something lacking
  130 Ctrl-C   143 SIGTERM   129 SIGHUP
  compare: 0 pass   1 fail   2 not comparable   3 inconclusive
"""

EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141


def entry() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without × or – still gets its answer
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """The exit code. Every mistake of the user ends here as text on stderr."""
    try:
        code = _dispatch(argv)
        sys.stdout.flush()
    except SpecbenchError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _abandon_stdout()
        return EXIT_BROKEN_PIPE
    except OSError as error:  # standard output on a full disk, say; what a user can put right never needs a traceback
        _abandon_stdout()
        return _refuse(f"the system refused: {error}")
    except SystemExit as stop:  # argparse's way out of --help and of wrong usage
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE if stop.code else 0
    return code


def _dispatch(argv: Sequence[str]) -> int:
    parser = _parser()
    if not argv:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    verb, rest = argv[0], argv[1:]
    if verb.startswith("-"):
        parser.parse_args([verb])
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(VERBS)}"
        return _refuse(f"there is no verb '{verb}'; {hint}")
    module = importlib.import_module(f"specbench.cli.{verb}")
    code: int = module.run(_verb_parser(verb, module).parse_args(rest))
    return code


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {verb:<10}{line}" for verb, line in VERBS.items())
    parser = argparse.ArgumentParser(
        prog="specbench",
        usage="specbench VERB …  (specbench VERB --help says more)",
        description=f"The speculative-decoding benchmark.\n\nverbs:\n{listed}",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"specbench {__version__}")
    return parser


def _verb_parser(verb: str, module: ModuleType) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"specbench {verb}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser


def _refuse(text: str) -> int:
    from specbench.render.words import clean
    from specbench.suite.secrets import secrets_of

    shown = secrets_of(None, os.environ).clean(text)
    print("\n".join(f"specbench: {clean(line)}" for line in shown.splitlines()), file=sys.stderr)
    return EXIT_USAGE


def _abandon_stdout() -> None:
    """Whoever read our output has gone; a second flush at exit would only complain."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    entry()
