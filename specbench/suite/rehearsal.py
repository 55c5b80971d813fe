"""The simulated engine's cost model, as a suite states it."""

from msgspec import Struct


class Rehearsal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of the simulated engine; `embedded.simulated` gives their meaning."""

    version: str = "0.5.23"
    """The SGLang version whose log, endpoints and definitions are imitated."""
