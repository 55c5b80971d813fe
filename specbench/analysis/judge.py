"""A stored run to its judgement: rows, verdicts, sentences, findings. Pure."""

from collections.abc import Mapping, Sequence

from specbench.analysis import Finding, Judgement, Summary, VariantVerdict, checks, parity, twins, verdicts
from specbench.analysis.cells import Arm, Key, arms_of, pooled, suite_of
from specbench.analysis.metrics import accept_length
from specbench.analysis.profile import profile_of
from specbench.analysis.sentences import sentence
from specbench.analysis.summaries import figure, speedup, speedup_interval, summarise
from specbench.dialects.metrics import counts_speculation
from specbench.store import StoredRun
from specbench.suite import Suite
from specbench.units import counted

SEVERITIES = ("error", "warning", "note")


def judge_run(stored: StoredRun) -> Judgement:
    """Everything that a report says, from what is stored. Raises StoreError when the run's suite can't be read."""
    suite = suite_of(stored)
    arms = arms_of(suite, stored.trials, {one.variant for one in stored.run.trials})
    baseline = arms[suite.baseline]
    summaries = tuple(
        _summary(arm, baseline, key) for arm in arms.values() for key in arm.cells if not arm.cells[key].beyond
    )
    codes = {name: variant_codes(arm, baseline) for name, arm in arms.items()}
    evidence = checks.Evidence(
        suite=suite,
        stored=stored,
        arms=arms,
        summaries=summaries,
        codes=codes,
        obstacles={name: obstacles(arm, baseline) for name, arm in arms.items()},
    )
    return Judgement(
        suite_name=stored.run.suite_name,
        run_folder=stored.folder,
        baseline=suite.baseline,
        simulated=stored.run.simulated or any(one.record.simulated for one in stored.trials),
        rehearsal=stored.run.rehearsal,
        started_utc=stored.run.started_utc,
        complete=stored.run.complete,
        model=suite.model.path,
        engines=_engines(arms),
        summaries=summaries,
        verdicts=tuple(_verdict(evidence, name) for name in arms),
        findings=_ranked(checks.find(evidence)),
        notes=_notes(stored),
        profiles=tuple(one for one in map(profile_of, arms.values()) if one.categories or one.position_ratio),
        overview=_overview(suite, arms, baseline),
    )


def cell_codes(arm: Arm, baseline: Arm, key: Key) -> set[str]:
    """All that can be said of one cell."""
    cell = arm.cells[key]
    if cell.beyond:
        return set()
    if not arm.asked:
        return {"not_asked_for"}
    if not cell.served:
        return {"failed"} if arm.has_failed or cell.requests else {"unknown"}
    if cell.is_partial:
        return {"partial"}
    return _measured_codes(arm, baseline, key) | drafting_codes(arm)


def _measured_codes(arm: Arm, baseline: Arm, key: Key) -> set[str]:
    """Of a level that a whole launch measured."""
    cell, other = arm.cells[key], baseline.cells[key]
    if arm is baseline:
        found = {"baseline"}
    elif arm.is_synthetic:
        return {"synthetic"}
    elif parity.obstacle(arm, baseline, key) is not None:
        found = {"not_comparable"} | ({"concurrency_capped"} if parity.admitted(arm, key) is not None else set())
    elif other.is_partial:
        found = {"unknown"}
    else:
        found = {verdicts.speed_verdict(speedup(cell, other), speedup_interval(cell, other))}
    graphs = verdicts.graph_verdict(figure(cell, "graph_ratio"), arm.variant.cuda_graph)
    return found | ({graphs} if graphs else set())


def drafting_codes(arm: Arm) -> set[str]:
    """What is wrong with its speculation in every cell; nothing when it is off by design."""
    if not arm.is_asked_to_draft or arm.is_synthetic or not any(cell.served for cell in arm.cells.values()):
        return set()
    lengths = [length for cell in arm.cells.values() if (length := accept_length(cell)) is not None]
    if not lengths:
        return {"speculation_inactive"} if _would_show(arm) else set()
    looks_up = arm.variant.speculation is not None and arm.variant.speculation.method == "prompt_lookup"
    return {"dead_drafter"} if not looks_up and verdicts.is_dead(lengths) else set()


def _would_show(arm: Arm) -> bool:
    """Whether this server's answers or log would carry acceptance if there were any."""
    return any(
        cell.samples
        or any(one.token_source == "meta_info" or one.proposed_tokens == 0 for one in cell.served)
        or any(counts_speculation(load.counters[1]) for load in cell.loads if load.counters)
        for cell in arm.cells.values()
    )


def variant_codes(arm: Arm, baseline: Arm) -> tuple[str, ...]:
    """Of all its cells together, causes first."""
    found = {code for key in arm.cells for code in cell_codes(arm, baseline, key)}
    return verdicts.in_order(found | ({"failed"} if arm.has_failed else set()))


def obstacles(arm: Arm, baseline: Arm) -> dict[Key, str]:
    """Measured levels at which an arm can't be compared with the baseline, and why."""
    if arm is baseline:
        return {}
    reasons = {key: parity.obstacle(arm, baseline, key) for key, cell in arm.cells.items() if cell.served}
    return {key: reason for key, reason in reasons.items() if reason is not None}


def _summary(arm: Arm, baseline: Arm, key: Key) -> Summary:
    codes = cell_codes(arm, baseline, key)
    apart = (
        bool({"not_comparable", "partial"} & codes)
        or baseline.cells[key].is_partial
        or (arm.is_synthetic and parity.obstacle(arm, baseline, key) is not None)
    )
    ratio = None if apart else speedup(arm.cells[key], baseline.cells[key])
    return summarise(arm, arm.cells[key], verdicts.foremost(codes), ratio, baseline.cells[key])


def _verdict(evidence: checks.Evidence, name: str) -> VariantVerdict:
    rows = [row for row in evidence.summaries if row.variant == name]
    baseline = evidence.arms[evidence.suite.baseline]
    text = sentence(evidence.arms[name], rows, evidence.codes[name], evidence.obstacles[name], baseline)
    plain = twins.twin(evidence.arms[name], evidence.arms, evidence.suite.baseline)
    if plain is not None:
        text += twins.beside(plain.variant.name, rows, evidence.rows(plain.variant.name))
    return VariantVerdict(variant=name, verdicts=evidence.codes[name], sentence=text)


def _overview(suite: Suite, arms: Mapping[str, Arm], baseline: Arm) -> tuple[Summary, ...]:
    """Variant × concurrency over all workloads. Empty when there is one workload, whose rows say it already, or a sweep."""
    if len(suite.workloads) < 2 or any(one.saturate for one in suite.workloads):
        return ()
    levels = sorted({concurrency for workload in suite.workloads for concurrency in workload.concurrency})
    return tuple(_pooled_summary(arm, baseline, concurrency) for arm in arms.values() for concurrency in levels)


def _pooled_summary(arm: Arm, baseline: Arm, concurrency: int) -> Summary:
    """No speed-up unless every workload of this concurrency was measured in both arms and may be compared."""
    keys = [key for key in arm.cells if key[1] == concurrency]
    codes: set[str] = set().union(*(cell_codes(arm, baseline, key) for key in keys))
    cell, other = (pooled(one.cells[key] for key in keys) for one in (arm, baseline))
    measured = [one.cells[key] for one in (arm, baseline) for key in keys]
    whole = all(one.served and not one.is_partial for one in measured)
    ratio = speedup(cell, other) if whole and "not_comparable" not in codes else None
    if ratio is not None:
        codes -= {"healthy", "slower_than_baseline", "not_significant", "unknown"}
        codes |= set() if arm is baseline else {verdicts.speed_verdict(ratio, speedup_interval(cell, other))}
    return summarise(arm, cell, verdicts.foremost(codes), ratio, other)


def _engines(arms: Mapping[str, Arm]) -> tuple[str, ...]:
    named = [" ".join(filter(None, (arm.variant.engine, arm.engine_version))) for arm in arms.values() if arm.launch_count]
    return tuple(dict.fromkeys(named))


def _ranked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Errors first; otherwise in the order of the checks' names and the suite's variants."""
    return tuple(sorted(findings, key=lambda one: SEVERITIES.index(one.severity)))


def _notes(stored: StoredRun) -> tuple[str, ...]:
    count = len(stored.run.trials)
    ended, planned = sum(one.record.complete for one in stored.trials), counted(count, "launch")
    notes = []
    if not stored.run.complete:
        notes.append(
            f"The run did not come to its end: {ended} of {planned} {'is' if 1 in (ended, count) else 'are'} whole."
        )
    lost = len(stored.run.trials) - len(stored.trials)
    if stored.run.complete and lost:
        notes.append(f"{lost} of {planned} {'is' if 1 in (lost, count) else 'are'} missing from the results folder.")
    if stored.dropped_count:
        notes.append(f"Left out at the end of result files: {counted(stored.dropped_count, 'cut-off line')}.")
    if stored.missing_count:
        lines = f"{counted(stored.missing_count, 'line')} that {'was' if stored.missing_count == 1 else 'were'}"
        notes.append(f"Result files lack {lines} written and counted: lost since, and in no figure.")
    return tuple(notes)
