"""The shell of a page: head, content policy, style and script. It loads nothing, from anywhere."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from specbench.render.html.markup import Markup, element, joined, text, void
from specbench.render.plots.palette import DARK


def document(title: str, body: Markup) -> str:
    """A whole page. The policy allows this style sheet and this script, by their hashes, and nothing else."""
    style, script = style_sheet(), _part("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = joined(
        [
            void("meta", charset="utf-8"),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            void("meta", name="viewport", content="width=device-width, initial-scale=1"),
            void("meta", name="color-scheme", content="light dark"),
            void("link", rel="icon", href="data:,"),
            element("title", title),
            Markup(f"<style>{style}</style>"),
        ]
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n<script>{script}</script>\n'
        "</body>\n</html>\n"
    )


@cache
def style_sheet() -> str:
    """The page's own rules, then the twins of the plots' colours for dark screens.

    No selector of an ancestor: what a `<use>` draws has none.
    """
    twins = "".join(f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}' for light, dark in DARK.items())
    return f"{_part('page.css')}@media screen and (prefers-color-scheme:dark){{{twins}}}\n"


@cache
def _part(name: str) -> str:
    return (files("specbench.render.html") / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def section(slug: str, heading: str, *content: Markup) -> Markup:
    """A part of a page with its own heading and anchor."""
    head = element("h2", heading, id=f"{slug}-heading")
    return element("section", joined([head, *content]), id=slug, aria_labelledby=f"{slug}-heading")


def banner(content: str) -> Markup:
    """What must not be overlooked."""
    return element("p", element("strong", text(content)), class_="banner", role="note")
