"""What rich draws, as text: one way for every table on the terminal."""

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType


def written(parts: Iterable[RenderableType], color: bool) -> str:
    """One after another with a blank line between; wraps nothing, asks nothing of the terminal. Ends with a line break."""
    console = Console(
        file=io.StringIO(),
        width=10_000,
        color_system="standard" if color else None,
        force_terminal=color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as captured:
        for part in parts:
            console.print(part)
            console.print()
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")) + "\n"
