"""What is wrong with a server, by its log alone. A log knows no baseline: it never says that speculation pays."""

from collections.abc import Callable
from typing import Final

from specbench.analysis import verdicts as limits
from specbench.analysis.dropped import DROPS, explained
from specbench.analysis.log_facts import Facts, LogFinding
from specbench.analysis.log_sums import DEAD_ACCEPT_LENGTH
from specbench.dialects.llamacpp_events import sentence_of
from specbench.units import counted

CEILING_RATIO: Final = 0.97
"""Of all drafts accepted: a longer draft may pay."""
DECLINE_RATIO: Final = 0.85
"""The last third below this share of the first."""
DRIFT_RECORDS: Final = 24
"""Fewer records differ by their prompts alone."""
ROUNDING_LENGTH: Final = 0.01
DEEP_K: Final = 4
"""Shorter drafts can't be much too deep."""
USEFUL_SHARE: Final = 0.6


def findings(facts: Facts) -> tuple[LogFinding, ...]:
    """All that holds, faults first."""
    return tuple(found for rule in RULES if (found := rule(facts)) is not None)


def verdicts(facts: Facts, found: tuple[LogFinding, ...]) -> tuple[str, ...]:
    """The codes of the findings; `healthy` or `unknown` when there is none."""
    codes = tuple(one.code for one in found if one.severity != "info")
    return codes or (("healthy",) if facts.pooled_length is not None else ("unknown",))


def _died(facts: Facts) -> LogFinding | None:
    if not facts.died:
        return None
    return LogFinding(code="server_died", severity="error", message="the log names a fault that ended the server")


def _several(facts: Facts) -> LogFinding | None:
    if not facts.restart_count:
        return None
    return LogFinding(
        code="several_launches",
        severity="warning",
        message=f"{facts.restart_count + 1} launches are in this log, and the figures are of all of them together",
        remedy="cut the log where a server starts, and read each piece by itself; the rows over time tell them apart",
    )


def _foreign(facts: Facts) -> LogFinding | None:
    if not facts.foreign_count:
        return None
    engine, count = max(facts.foreign_count.items(), key=lambda one: one[1])
    if count < 3 and facts.record_count:
        return None
    return LogFinding(
        code="another_engine",
        severity="warning" if facts.record_count else "error",
        message=f"{counted(count, 'line', 'is/are')} of another engine, {engine}, "
        f"and {'is' if count == 1 else 'are'} not read",
        remedy=f"read them by themselves, with --engine {engine}",
    )


def _unread(facts: Facts) -> LogFinding | None:
    if facts.record_count or not facts.unread_count:
        return None
    return LogFinding(
        code="lines_not_read",
        severity="error",
        message=f"{counted(facts.unread_count, 'line', 'seems/seem')} to hold figures, and none could be read: "
        "something unknown stands before the server's own words",
        remedy="take the prefix of the log collector off (cut, jq -r .log), or tell us the shape",
    )


def _impossible(facts: Facts) -> LogFinding | None:
    if not facts.impossible_count:
        return None
    return LogFinding(
        code="impossible_figures",
        severity="warning",
        message=f"{counted(facts.impossible_count, 'decode line', 'holds/hold')} figures that can't be "
        "(AL below 1, negative tok/s); left out",
        remedy="look where the log comes from; a server does not write such lines",
    )


def _went_on(facts: Facts) -> LogFinding | None:
    if not facts.fault_count or facts.died or not facts.record_count:
        return None
    return LogFinding(
        code="fault_survived",
        severity="info",
        message=f"{counted(facts.fault_count, 'line', 'names/name')} a fault, and the server went on, or was started again",
    )


def _faked(facts: Facts) -> LogFinding | None:
    if "synthetic_acceptance" not in facts.warning_lines and not facts.settings.get("synthetic"):
        return None
    message, remedy = sentence_of("synthetic_acceptance")
    return LogFinding(code="faked_acceptance", severity="error", message=message, remedy=remedy)


def _inactive(facts: Facts) -> LogFinding | None:
    if facts.engine == "sglang":
        asked = bool(facts.settings.get("speculative_algorithm")) and facts.speculation_active is False
    else:
        wanted = facts.settings.get("spec_type", facts.settings.get("drafter")) or facts.settings.get("speculation")
        asked = bool(wanted) and wanted != "none" and not facts.record_count and facts.request_count > 0
    if not asked:
        return None
    message, remedy = _reason(facts)
    return LogFinding(
        code="speculation_inactive", severity="error", message=f"no draft token was ever proposed: {message}", remedy=remedy
    )


def _reason(facts: Facts) -> tuple[str, str]:
    message, remedy = explained(facts.warning_lines, facts.engine == "llamacpp" and "spec_type" not in facts.settings)
    number = next((facts.warning_lines[code] for code in DROPS if code in facts.warning_lines), None)
    return (message if number is None else f"{message} (line {number})"), remedy


def _dead(facts: Facts) -> LogFinding | None:
    if facts.pooled_length is None or facts.longest_length > DEAD_ACCEPT_LENGTH or facts.pooled_length > DEAD_ACCEPT_LENGTH:
        return None
    return LogFinding(
        code="dead_drafter",
        severity="error",
        message=f"acceptance length {facts.pooled_length:.2f}: hardly any draft token is ever accepted",
        remedy="check that the drafter is trained for this target and launched under its own method (an EAGLE-3 drafter "
        "under EAGLE is dead), and that its checkpoint holds an lm_head and an fc",
    )


def _fallback(facts: Facts) -> LogFinding | None:
    found = facts.switched_off
    if found is None:
        return None
    return LogFinding(
        code="spec_fallback_engaged",
        severity="warning",
        message=f"from {counted(found.running_count, 'running request')} on no draft is accepted, and below the acceptance "
        f"length is {found.below_length:.2f}: speculation is switched off in large batches; the pooled figure mixes both",
        remedy="take the figures of the two apart; the drafter is not at fault",
    )


def _over_ceiling(facts: Facts) -> LogFinding | None:
    if not facts.k or facts.longest_length <= facts.k + 1 + ROUNDING_LENGTH:
        return None
    return LogFinding(
        code="accept_length_out_of_range",
        severity="warning",
        message=f"an acceptance length of {facts.longest_length:.2f} stands in the log, and with K = {facts.k} "
        f"it is at most {facts.k + 1}",
        remedy="the stated draft length is of another launch, or such lines are text that somebody echoed",
    )


def _graphs(facts: Facts) -> LogFinding | None:
    wanted = False if facts.settings.get("disable_cuda_graph") is True else None
    code = limits.graph_verdict(facts.graph_ratio, wanted)
    if code is None:
        return None
    remedy = "raise the largest graph batch size (--cuda-graph-max-bs) to the concurrency that is served"
    return LogFinding(
        code=code,
        severity="warning",
        message=f"{100 * (facts.graph_ratio or 0.0):.0f} % of the decode lines ran in a CUDA graph",
        remedy=remedy if code == "mixed_graph_regimes" else f"take --disable-cuda-graph away, if it is set; else {remedy}",
    )


def _wedged(facts: Facts) -> LogFinding | None:
    if facts.idle_tail_count < limits.WEDGED_LINES:
        return None
    return LogFinding(
        code="engine_wedged",
        severity="error",
        message=f"in the last {facts.idle_tail_count} decode lines requests run and not one token comes out",
        remedy="look at what each rank does (py-spy dump), and restart the server; every figure holds this time as well",
    )


def _capped(facts: Facts) -> LogFinding | None:
    line = facts.warning_lines.get("max_running_requests_reset")
    if line is None:
        return None
    return LogFinding(
        code="concurrency_capped",
        severity="info",
        message=f"the server itself limited the requests that run at once (line {line}), as a baseline does not",
        remedy="state --max-running-requests for both before comparing them",
    )


def _eager(facts: Facts) -> LogFinding | None:
    flags = {"vllm": ("eager", "--enforce-eager"), "sglang": ("disable_cuda_graph", "--disable-cuda-graph")}
    setting, flag = flags.get(facts.engine, ("", ""))
    if facts.settings.get(setting) is not True:
        return None
    message = f"{flag} is set, so nothing runs in CUDA graphs; speed is no guide here"
    return LogFinding(code="eager_mode", severity="info", message=message, remedy=f"remove {flag} to measure speed")


def _too_deep(facts: Facts) -> LogFinding | None:
    k, last = facts.k, facts.last_useful_position
    if k is None or not last or _dead(facts) is not None or k < DEEP_K or last > USEFUL_SHARE * k:
        return None
    return LogFinding(
        code="draft_depth_too_large",
        severity="warning",
        message=f"{counted(k, 'token', 'is/are')} drafted a step, and behind position {last} none is accepted",
        remedy=f"draft at most {counted(last, 'token')} a step; the accept rate then looks better, the length stays",
    )


def _ceiling(facts: Facts) -> LogFinding | None:
    if (
        facts.pooled_length is None
        or not facts.k
        or (facts.pooled_length - 1) / facts.k < CEILING_RATIO
        or _over_ceiling(facts)
    ):
        return None
    return LogFinding(
        code="acceptance_at_ceiling",
        severity="warning",
        message=f"acceptance length {facts.pooled_length:.2f} of at most {facts.k + 1}: nearly every draft is accepted",
        remedy="draft more tokens a step; also look at the texts (a loop of repeated words is accepted as a whole)",
    )


def _declining(facts: Facts) -> LogFinding | None:
    third = len(facts.bucket_length) // 3
    if third < 1 or facts.record_count < DRIFT_RECORDS:
        return None
    early, late = (sum(part) / third for part in (facts.bucket_length[:third], facts.bucket_length[-third:]))
    if late >= DECLINE_RATIO * early:
        return None
    return LogFinding(
        code="acceptance_declining",
        severity="warning",
        message=f"acceptance length fell from {early:.2f} to {late:.2f} over the log",
        remedy="compare early and late prompts and output lengths; restart the server and look again",
    )


def _only_first(facts: Facts) -> LogFinding | None:
    ngram = "ngram" in str(facts.settings.get("spec_type", facts.settings.get("method", "")))
    if facts.record_count != 1 or facts.busy_after_last_count < 2 or ngram:
        return None
    limit = facts.settings.get("disable_by_batch_size")
    if limit is not None:
        return LogFinding(
            code="spec_fallback_engaged",
            severity="warning",
            message=f"drafts stop after the first record; the server was told to draft nothing from {limit} requests on",
            remedy="take fewer requests at once, or disable_by_batch_size away, to measure the drafter",
        )
    return LogFinding(
        code="no_drafts_after_first_request",
        severity="error",
        message=f"drafts stop after the first record; {facts.busy_after_last_count} later ones have output and none",
        remedy="a newer engine, or a restart between requests, tells whether it is a fault of this version",
    )


RULES: Final[tuple[Callable[[Facts], LogFinding | None], ...]] = (
    _died,
    _unread,
    _several,
    _foreign,
    _impossible,
    _went_on,
    _faked,
    _inactive,
    _dead,
    _fallback,
    _over_ceiling,
    _only_first,
    _wedged,
    _graphs,
    _too_deep,
    _ceiling,
    _declining,
    _eager,
    _capped,
)
