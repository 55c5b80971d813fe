"""Acceptance length prompt by prompt: a diagnostic, not a verdict.

Launches of one server accept nearly the same drafts, so what differs is the prompts, and these are the same on both sides.
Prompts are the clusters: a prompt's requests, over all launches, count as one. The interval is that of a ratio of totals
by the delta method. It says whether acceptance differs on these prompts; it knows nothing of how launches differ.
"""

import math
from collections.abc import Sequence

import numpy as np

from specbench.analysis.comparing import PromptAcceptance
from specbench.analysis.comparing.launches import LaunchFigures
from specbench.analysis.stats import ratio_of, t_quantile

CLUSTERS_LIMIT_COUNT = 8
"""Of fewer prompts nothing is said."""


def prompt_acceptance(a: Sequence[LaunchFigures], b: Sequence[LaunchFigures], alpha: float) -> PromptAcceptance | None:
    """None where a side counts no drafts by request, or too few prompts are common."""
    (a_names, *a_counts), (b_names, *b_counts) = _totals(a), _totals(b)
    _, a_places, b_places = np.intersect1d(a_names, b_names, assume_unique=True, return_indices=True)
    if len(a_places) < CLUSTERS_LIMIT_COUNT:
        return None
    a_length, a_pull = _length_and_pulls(*(one[a_places] for one in a_counts))
    b_length, b_pull = _length_and_pulls(*(one[b_places] for one in b_counts))
    count = len(a_places)
    mean = math.log(b_length / a_length)
    error = math.sqrt(float(np.sum((b_pull - a_pull) ** 2)) * count / (count - 1))
    half = t_quantile(1 - alpha / 2, count - 1) * error
    return PromptAcceptance(
        prompt_count=count,
        a_accept_length=a_length,
        b_accept_length=b_length,
        change_ratio=ratio_of(mean),
        low_ratio=ratio_of(mean - half),
        high_ratio=ratio_of(mean + half),
        alpha_ratio=alpha,
    )


def _totals(launches: Sequence[LaunchFigures]) -> tuple["np.ndarray", "np.ndarray", "np.ndarray"]:
    """Prompts, and by prompt the drafts accepted and the steps, over all launches and levels."""
    columns = [column for launch in launches for column in launch.columns.values() if len(column.prompts)]
    if not columns:
        nothing = np.empty(0, dtype=np.int64)
        return nothing, nothing, nothing
    names, correct, verified = (
        np.concatenate([np.frombuffer(getattr(column, name), dtype=np.int64) for column in columns])
        for name in ("prompts", "correct", "verified")
    )
    distinct, places = np.unique(names, return_inverse=True)
    return distinct, np.bincount(places, weights=correct), np.bincount(places, weights=verified)


def _length_and_pulls(correct: "np.ndarray", verified: "np.ndarray") -> tuple[float, "np.ndarray"]:
    """AL, and by how much each prompt pulls its logarithm."""
    steps = float(verified.sum())
    length = 1 + float(correct.sum()) / steps
    return length, (correct - (length - 1) * verified) / (steps * length)
