"""The suite file: its nouns (`types`), and the way from YAML to a resolved `Suite` (`load_suite`)."""

from specbench.suite.types import (
    Drafter,
    Expected,
    Hardware,
    Method,
    Model,
    Server,
    Speculation,
    Suite,
    Variant,
    Warmup,
    Workload,
)

__all__ = [
    "Drafter",
    "Expected",
    "Hardware",
    "Method",
    "Model",
    "Server",
    "Speculation",
    "Suite",
    "Variant",
    "Warmup",
    "Workload",
]
