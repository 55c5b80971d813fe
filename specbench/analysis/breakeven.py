"""By how much a drafter must be accepted to pay for itself."""

from specbench.units import PerSecond, Ratio


def break_even_length(
    baseline_tps: PerSecond | None, variant_tps: PerSecond | None, accept_length: float | None
) -> float | None:
    """AL* = tps_baseline · AL / tps_variant: the step's time with speculation in units of a step without.

    Below it speculation loses. Holds while the step's time does not depend on how many drafts are accepted.
    """
    if baseline_tps is None or not variant_tps or accept_length is None:
        return None
    return baseline_tps * accept_length / variant_tps


def efficiency_ratio(speedup_ratio: Ratio | None, accept_length: float | None) -> Ratio | None:
    """Speed-up / AL, 1 where drafting and verifying cost nothing."""
    return None if speedup_ratio is None or not accept_length else speedup_ratio / accept_length
