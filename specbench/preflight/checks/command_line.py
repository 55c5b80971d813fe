"""The command line against the machine and the installed engine's parser."""

import difflib
from collections.abc import Collection, Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.embedded.flags import table
from specbench.preflight import Facts
from specbench.preflight.checks import Check

LAST_READ: Final = "0.5.23"
"""The newest version whose flags are in the table."""


def check(facts: Facts) -> Iterable[Finding]:
    """What the target's configuration and the flag table can decide."""
    if facts.engine == "sglang":
        yield from _flags(facts)
        yield from _trust(facts)
        yield from _data_parallel(facts)
    yield from _heads(facts)


def _flags(facts: Facts) -> Iterable[Finding]:
    """A flag that no version knows, or that some version knows and this one does not."""
    release, known = facts.release, table()
    yield from _unheard_of(facts, known)
    if release is None:
        return
    for word in dict.fromkeys(one.partition("=")[0] for one in facts.argv if one.startswith("--")):
        flag = known.get(word)
        if flag is not None and not flag.known(release):
            when = f"from {flag.since} on" if facts.before(flag.since or "0") else f"until before {flag.until}"
            yield facts.say(
                "flag_unknown_to_engine",
                "warning",  # the table dates a change to the next version that was read
                f"SGLang {facts.version} does not seem to know {word} (it exists {when}); the launch would end at once.",
                f"{word}, SGLang {facts.version}",
                f"Take {word} out of `args`, or write what this version calls it.",
            )


def _unheard_of(facts: Facts, known: Collection[str]) -> Iterable[Finding]:
    for word in dict.fromkeys(one.partition("=")[0] for one in facts.argv if one.startswith("--")):
        name = word.replace("_", "-")
        if name in known or any(one.startswith(name) for one in known):  # argparse takes beginnings, too
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        yield facts.say(
            "flag_unknown_to_engine",
            "warning",  # a version newer than all that were read may know it
            f"No SGLang up to {LAST_READ} knows {word}; the launch would end at once.",
            word,
            f"Write {near[0]}." if near else f"Take {word} out of `args`, or look it up in `--help` of the server.",
        )


def _trust(facts: Facts) -> Iterable[Finding]:
    if facts.words.has("trust-remote-code"):
        return
    for checkpoint in (facts.target, facts.draft):
        if checkpoint is not None and "auto_map" in (checkpoint.config or {}):
            yield facts.say(
                "trust_remote_code_missing",
                "warning",
                f"{checkpoint.name} brings code of its own (`auto_map`), and --trust-remote-code is missing.",
                "auto_map in config.json",
                "Add --trust-remote-code to the server's `args`.",
            )


def _data_parallel(facts: Facts) -> Iterable[Finding]:
    if facts.algorithm in ("STANDALONE", "NGRAM") and facts.words.has("enable-dp-attention"):
        yield facts.say(
            "data_parallel_attention_refused",
            "error",
            f"{facts.algorithm} does not run with --enable-dp-attention: SGLang refuses to start.",
            f"{facts.algorithm}, --enable-dp-attention",
            "Leave --enable-dp-attention out.",
        )


def _heads(facts: Facts) -> Iterable[Finding]:
    parts = facts.words.tensor_parallel
    for role, checkpoint in (("target", facts.target), ("drafter", facts.draft)):
        heads = checkpoint.integer("num_attention_heads") if checkpoint is not None else None
        if heads is not None and heads % parts:
            yield facts.say(
                "tensor_parallel_heads",
                "error",
                f"The {role}'s {heads} attention heads can't be split over {parts} GPUs.",
                f"num_attention_heads {heads}, tensor parallel {parts}",
                "Choose a `tensor_parallel` that divides the number of heads.",
            )


CHECK: Final[Check] = check
