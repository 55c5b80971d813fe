"""Which runs are deleted, so that the rest fits a budget."""

from collections.abc import Collection, Sequence

from msgspec import Struct


class KeptRun(Struct, frozen=True, kw_only=True):
    """A run that is on the disk."""

    name: str
    size_bytes: int


class Rotation(Struct, frozen=True, kw_only=True):
    """What is to be done, and what will be left."""

    deleted: tuple[KeptRun, ...]
    left_bytes: int

    @property
    def freed_bytes(self) -> int:
        """By what is deleted."""
        return sum(one.size_bytes for one in self.deleted)


def rotation(runs: Sequence[KeptRun], keep_bytes: int, protected: Collection[str]) -> Rotation:
    """`runs`: oldest first. The oldest go, until the rest fits; those protected and the newest stay, whatever they take."""
    left_bytes = sum(one.size_bytes for one in runs)
    deleted = []
    for one in runs[:-1]:
        if left_bytes > keep_bytes and one.name not in protected:
            deleted.append(one)
            left_bytes -= one.size_bytes
    return Rotation(deleted=tuple(deleted), left_bytes=left_bytes)
