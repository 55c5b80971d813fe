"""Which vLLM takes what: read from the sources of the releases named."""

from typing import Final

from packaging.version import InvalidVersion, Version

ONE_MTP: Final = Version("0.11")
"""One word, `mtp`, for all models. Before, each family had its own, which the server found out by itself from the model's
configuration, whichever of them was written; 0.32 still takes the old ones."""
DRAFT_MODELS: Final = Version("0.14")
"""V1 refuses plain draft models up to 0.13."""
ONLY_V1: Final = Version("0.11")
"""Before, what V1 could not do was silently done by V0."""
OLDEST: Final = Version("0.9")
SEVERAL_NODES: Final = Version("0.11.1")
"""First one that spans nodes without Ray."""
LAST_WITH_MODULE: Final = Version("0.32.99")
"""Later ones may lack the server's module, which 0.32 calls deprecated: they get `serve`."""
NEWER_WORDS: Final = Version("0.20")
"""First with `dflash` and a pretended acceptance length; 0.19 knows neither."""
PER_REQUEST: Final = Version("0.32")
"""First one read that counts speculation by request."""


def at_least(version: str | None, wanted: Version) -> bool:
    """False for a version that is not known."""
    known = _known(version)
    return known is not None and known >= wanted


def before(version: str | None, wanted: Version) -> bool:
    """False for a version that is not known."""
    known = _known(version)
    return known is not None and known < wanted


def _known(version: str | None) -> Version | None:
    """None also for a build from a checkout without tags, which calls itself 0.1.dev."""
    try:
        return None if version is None or version.startswith("0.1.dev") else Version(version)
    except InvalidVersion:
        return None
