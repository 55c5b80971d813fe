"""Two results, or two variants of one, to a `Comparison`. The order of work is the order of this file."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from specbench.analysis import stats
from specbench.analysis.cells import Key, suite_of
from specbench.analysis.comparing import (
    PRIMARY_LIMIT_COUNT,
    Answer,
    Comparison,
    Difference,
    Options,
    Refusal,
    VariantComparison,
    Verdict,
)
from specbench.analysis.comparing.calibrate import Calibration
from specbench.analysis.comparing.decide import Decision, Question, decide
from specbench.analysis.comparing.keys import SERVER, check_factors, unknown
from specbench.analysis.comparing.launches import Side, read_sides
from specbench.analysis.comparing.pairing import (
    METRIC_NAMES,
    Pairing,
    change_of,
    direction_of,
    level_changes,
    log_ratios,
    pairing_of,
)
from specbench.analysis.comparing.prompts import prompt_acceptance
from specbench.analysis.comparing.refusals import refusals, side_keys, split_differences
from specbench.errors import SpecbenchError
from specbench.streams import OpenRun
from specbench.units import counted

TWO_TIMES = "Two runs at two times: a change may also come from what else changed on the machine in between."


class _Case(Struct, frozen=True, kw_only=True):
    """One variant before anything is decided."""

    pairing: Pairing
    under_test: tuple[Difference, ...]
    refusals: tuple[Refusal, ...]
    questions: dict[str, Question]
    """By metric; none where the sides can't be compared."""


def compare_runs(a: OpenRun, b: OpenRun, options: Options, calibration: Calibration | None = None) -> Comparison:
    """Every variant that both hold, or those that are named. Raises SpecbenchError for a name or factor that is none."""
    check_options(options)
    a_suite, b_suite = suite_of(a), suite_of(b)
    a_known, b_known = ([one.name for one in suite.variants] for suite in (a_suite, b_suite))
    common = [name for name in a_known if name in b_known]
    names = list(dict.fromkeys(options.variants)) or common
    strange = [name for name in names if name not in common]
    if strange or not common:
        text = f"'{strange[0]}' is not in both results" if strange else "the results have no variant in common"
        raise SpecbenchError(f"{text}; {a.folder} has: {', '.join(a_known)}; {b.folder} has: {', '.join(b_known)}")
    if not options.variants:
        names = [name for name in common if a.of(name) or b.of(name)] or common
    named = dict.fromkeys((a.run.suite_name, b.run.suite_name))
    renamed = (f"Two suites: A is of '{a.run.suite_name}', B of '{b.run.suite_name}'.",) if len(named) > 1 else ()
    single = [name for name in dict.fromkeys((*a_known, *b_known)) if name not in names and not options.variants]
    left_out = (f"Not in both results, or never launched, and left out: {', '.join(single)}.",) if single else ()
    a_sides, b_sides = read_sides([(a, a_suite, names), (b, b_suite, names)])
    pairs = [(a_sides[name], b_sides[name]) for name in names]
    return compare_sides(pairs, options, calibration, (*renamed, *left_out), within=False)


def compare_within(
    result: OpenRun, one: str, other: str, options: Options, calibration: Calibration | None = None
) -> Comparison:
    """Two variants of one run, whose launches alternate: what distinguishes their servers is under test."""
    check_options(options)
    suite = suite_of(result)
    known = [variant.name for variant in suite.variants]
    for name in (one, other):
        if name not in known:
            raise SpecbenchError(f"{result.folder} has no variant '{name}'; there are: {', '.join(known)}")
    if one == other:
        raise SpecbenchError(f"--within {one} {other}: these are one and the same variant")
    (sides,) = read_sides([(result, suite, (one, other))])
    declared = replace(options, factors=(*options.factors, *SERVER))
    return compare_sides([(sides[one], sides[other])], declared, calibration, (), within=True)


def check_options(options: Options) -> None:
    """Raises SpecbenchError for a metric that is none, or for too many."""
    unknown = [name for name in options.metrics if name not in METRIC_NAMES]
    if unknown:
        raise SpecbenchError(f"there is no metric '{unknown[0]}' to compare; there are: {', '.join(METRIC_NAMES)}")
    count = len(set(options.metrics))
    if not 1 <= count <= PRIMARY_LIMIT_COUNT:
        raise SpecbenchError(f"{count} primary metrics: declare one to {PRIMARY_LIMIT_COUNT} before you look")


def compare_sides(
    sides: Sequence[tuple[Side, Side]],
    options: Options,
    calibration: Calibration | None,
    notes: tuple[str, ...],
    within: bool,
) -> Comparison:
    """Of sides that were read already. Raises SpecbenchError for a factor or a level that is none."""
    check_factors(options.factors, (key for pair in sides for side in pair for key in side_keys(side)))
    _check_level(options.level, sides)
    cases = [_case(a, b, options, calibration) for a, b in sides]
    family = {f"{place}\0{name}": one for place, case in enumerate(cases) for name, one in case.questions.items()}
    decisions = decide(family, options.alpha_ratio, options.margin_ratio)
    variants = []
    for place, case in enumerate(cases):
        decided = {name: decisions[f"{place}\0{name}"] for name in case.questions}
        variants.append(_concluded(case, decided, options))
    a, b = sides[0]
    return Comparison(
        suite_name=b.run.suite_name,
        verdict=_overall([one.verdict for one in variants]),
        a_folder=a.facts.folder,
        b_folder=b.facts.folder,
        within=within,
        simulated=a.simulated or b.simulated,
        rehearsal=b.run.rehearsal or a.run.rehearsal,
        alpha_ratio=options.alpha_ratio,
        margin_ratio=options.margin_ratio,
        family_count=len(family),
        level="all levels" if options.level is None else f"{options.level[0]} at {options.level[1]}",
        variants=tuple(variants),
        notes=notes if within else (*notes, TWO_TIMES),
    )


def _check_level(level: Key | None, sides: Sequence[tuple[Side, Side]]) -> None:
    known = {
        (one.name, count) for pair in sides for side in pair for one in side.suite.workloads for count in one.concurrency
    }
    if level is not None and level not in known:
        listed = ", ".join(f"{name}@{count}" for name, count in sorted(known))
        raise SpecbenchError(f"there is no level {level[0]}@{level[1]}; there are: {listed}")


def _case(a: Side, b: Side, options: Options, calibration: Calibration | None) -> _Case:
    pairing = pairing_of(a, b, options.level)
    under_test, undeclared = split_differences(a, b, options.factors)
    found = refusals(a, b, len(pairing.a_launches), undeclared, len(pairing.levels))
    found = found or tuple(_one_sided(pairing, options))
    questions = {} if found else _questions(pairing, options, calibration)
    if not found and not questions:
        text = f"no primary metric was measured on both sides: {', '.join(options.metrics)}"
        found = (Refusal(code="not_measured", message=text),)
    return _Case(pairing=pairing, under_test=under_test, refusals=found, questions=questions)


def _one_sided(pairing: Pairing, options: Options) -> Iterator[Refusal]:
    """What one side lost can't be shown to be no worse. Only acceptance is rightly lacking where nothing is drafted."""
    drafting = [side.variant.speculation is not None for side in (pairing.a, pairing.b)]
    for metric in dict.fromkeys(options.metrics):
        lacking = pairing.without(metric)
        if len(lacking) == 1 and (metric != "accept_length" or all(drafting)):
            text = f"{metric} was not measured, or is 0, in a launch of {lacking[0]}, and was in all of the other side"
            yield Refusal(code="not_measured", message=f"{text} (name other metrics with --metric to do without)")


def _questions(pairing: Pairing, options: Options, calibration: Calibration | None) -> dict[str, Question]:
    questions = {}
    for metric in dict.fromkeys(options.metrics):
        logs = log_ratios(pairing, metric)
        if logs is not None:
            questions[metric] = Question(
                differences_ratio=logs,
                better=direction_of(metric),
                gated=metric != "accept_length" or pairing.drafts_alike,
                launch_sd_ratio=calibration.usable_sd(metric, len(logs)) if calibration else None,
            )
    return questions


def _concluded(case: _Case, decided: Mapping[str, Decision], options: Options) -> VariantComparison:
    pairing, usable = case.pairing, not case.refusals
    launches = pairing.a_launches, pairing.b_launches
    return VariantComparison(
        a=pairing.a.facts,
        b=pairing.b.facts,
        verdict=_verdict(decided) if usable else "refused",
        under_test=case.under_test,
        refusals=case.refusals,
        answers=tuple(_answer(case, metric, one) for metric, one in decided.items()),
        levels=tuple(level_changes(pairing, options.alpha_ratio)) if usable else (),
        prompts=prompt_acceptance(*launches, options.alpha_ratio) if usable else None,
        notes=tuple(_notes(pairing, options, decided)) if usable else (),
    )


def _answer(case: _Case, metric: str, decision: Decision) -> Answer:
    change = change_of(case.pairing, metric, case.pairing.levels, decision.interval_alpha_ratio)
    assert change is not None  # a question is only asked of what was measured
    question = case.questions[metric]
    gain = decision.seen.mean > 0 if question.better == "higher" else decision.seen.mean < 0
    return Answer(
        change=change,
        interval_alpha_ratio=decision.interval_alpha_ratio,
        p_ratio=decision.p_ratio,
        p_adjusted_ratio=decision.p_adjusted_ratio,
        changed=decision.changed,
        direction="none" if not decision.changed else "better" if gain else "worse",
        gate=decision.gate,
        gate_note="" if question.gated else "the sides draft differently, so more acceptance is not better",
        launches_needed_count=decision.launches_needed_count,
        pair_sd_ratio=decision.seen.sd,
        detectable_ratio=stats.ratio_of(decision.detectable_ratio),
        sd_source="these launches" if question.launch_sd_ratio is None else "calibration",
    )


def _notes(pairing: Pairing, options: Options, decided: Mapping[str, Decision]) -> list[str]:
    plain = pairing.a.variant.speculation is None and pairing.b.variant.speculation is None
    untested = [name for name in options.metrics if name not in decided and not (plain and name == "accept_length")]
    found = []
    for name in untested:
        lacking = pairing.without(name)
        reason = "neither side has it" if len(lacking) == 2 else f"side {lacking[0]} does not have it"
        found.append(f"{name} is not tested: {reason}.")
    missing = unknown(side_keys(pairing.a), side_keys(pairing.b))
    if missing:
        found.append(f"Recorded on one side only, so not compared: {', '.join(missing)}.")
    extra = sum(len(side.launches) - len(pairing.a_launches) for side in (pairing.a, pairing.b))
    if extra:
        launches = f"{counted(extra, 'launch', 'has/have')}"
        found.append(f"{launches} no partner on the other side, left out.")
    return found


def _verdict(decided: Mapping[str, Decision]) -> Verdict:
    gates = [one.gate for one in decided.values()]
    return "fail" if "FAIL" in gates else "inconclusive" if "INCONCLUSIVE" in gates else "pass"


def _overall(verdicts: Sequence[Verdict]) -> Verdict:
    order: tuple[Verdict, ...] = ("fail", "refused", "inconclusive", "pass")
    return next(one for one in order if one in verdicts)
