"""The suite file: its nouns (`types`), and the way from YAML to a resolved `Suite` (`load_suite`)."""

from specbench.suite.load import load_suite
from specbench.suite.reading import read_text
from specbench.suite.schema import schema_text, suite_schema
from specbench.suite.types import (
    Arrival,
    Drafter,
    Expected,
    Hardware,
    Method,
    Model,
    Saturate,
    Server,
    Slo,
    Speculation,
    Suite,
    Variant,
    Warmup,
    Workload,
)

__all__ = [
    "Arrival",
    "Drafter",
    "Expected",
    "Hardware",
    "Method",
    "Model",
    "Saturate",
    "Server",
    "Slo",
    "Speculation",
    "Suite",
    "Variant",
    "Warmup",
    "Workload",
    "load_suite",
    "read_text",
    "schema_text",
    "suite_schema",
]
