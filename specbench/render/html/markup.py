"""HTML as strings. What comes from results goes through `text` or `element`'s attributes, and nowhere else."""

import html
from collections.abc import Iterable

from specbench.render.words import clean


class Markup(str):
    """A string that is HTML already. Only this module and `figures` make one of anything but constants."""

    __slots__ = ()


Content = str | Markup


def text(value: str) -> Markup:
    """Escaped, on one line, without control characters."""
    return Markup(html.escape(clean(value), quote=True))


def prose(value: str) -> Markup:
    """A sentence; what stands in backticks is code."""
    parts = clean(value).split("`")
    if len(parts) % 2 == 0:  # one without its partner is only a sign
        return text(value)
    return joined([element("code", part) if place % 2 else text(part) for place, part in enumerate(parts)], "")


def element(tag: str, *content: Content, **attributes: str | bool | None) -> Markup:
    """`<tag name="value">…</tag>`. A name's last underscore is dropped, others are dashes; True: without a value.

    Plain strings in `content` are escaped.
    """
    inner = "".join(one if isinstance(one, Markup) else text(one) for one in content)
    return Markup(f"<{tag}{_attributes(attributes)}>{inner}</{tag}>")


def void(tag: str, **attributes: str | bool | None) -> Markup:
    """An element that has no end."""
    return Markup(f"<{tag}{_attributes(attributes)}>")


def _attributes(attributes: dict[str, str | bool | None]) -> str:
    told = []
    for name, value in attributes.items():
        word = name.rstrip("_").replace("_", "-")
        if value is True:
            told.append(f" {word}")
        elif value is not None and value is not False:
            told.append(f' {word}="{text(value)}"')
    return "".join(told)


def joined(parts: Iterable[Content], between: str = "\n") -> Markup:
    """Several as one."""
    return Markup(between.join(one if isinstance(one, Markup) else text(one) for one in parts))
