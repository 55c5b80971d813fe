"""matplotlib's SVG made fit for a page under a strict content policy, and for a reader of its text.

Style attributes become presentation attributes, which no policy forbids and a style sheet may override; ids are made
unique across a page or dropped; title and description name the picture.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from specbench.render.plots import Plot

SVG = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"
DROPPED = {"metadata", "style"}
FONT = re.compile(r"(?:(?P<style>italic|oblique) )?(?:(?P<weight>bold|\d+) )?(?P<size>[\d.]+)px .*")
FAMILY = "system-ui, 'DejaVu Sans', Arial, sans-serif"
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
"""More decimals than a screen shows."""
REFERENCE = re.compile(r"url\(#([^)]+)\)")


def tidied(text: str, plot: Plot) -> str:
    """The `<svg>` element alone, as one string."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(text)
    _drop(root)
    for element in root.iter():
        _restyle(element)
    _rename(root, f"{plot.slug}-")
    _head(root, plot)
    return ElementTree.tostring(root, encoding="unicode").replace("\n", "") + "\n"


def _drop(element: ElementTree.Element) -> None:
    """Elements that a page can't have, and white space between tags."""
    for child in list(element):
        if _name(child) in DROPPED:
            element.remove(child)
        else:
            _drop(child)
            child.tail = None
    if len(element):
        element.text = None


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _restyle(element: ElementTree.Element) -> None:
    for rule in element.attrib.pop("style", "").split(";"):
        name, _, value = rule.partition(":")
        for key, one in _attributes(name.strip(), value.strip()):
            element.set(key, one)
    if LINK in element.attrib:
        element.set("href", element.attrib.pop(LINK))
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]
    for key in ("d", "x", "y", "transform"):
        if key in element.attrib:
            element.set(key, LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", element.attrib[key]).strip())


def _attributes(name: str, value: str) -> Iterator[tuple[str, str]]:
    found = FONT.fullmatch(value) if name == "font" else None
    if found:
        yield "font-size", found["size"]
        if found["weight"] and found["weight"] != "400":
            yield "font-weight", found["weight"]
    elif name and name not in ("font", "font-family"):
        yield name, value


def _rename(root: ElementTree.Element, prefix: str) -> None:
    """Ids that nothing refers to go; the others carry the plot's name."""
    used = {one for element in root.iter() for value in element.attrib.values() for one in REFERENCE.findall(value)}
    used |= {element.attrib["href"].removeprefix("#") for element in root.iter() if "href" in element.attrib}
    for element in root.iter():
        name = element.attrib.pop("id", "")
        if name in used:
            element.set("id", prefix + name)
        for key, value in list(element.attrib.items()):
            if key == "href":
                element.set(key, "#" + prefix + value.removeprefix("#"))
            elif "url(#" in value:
                element.set(key, REFERENCE.sub(rf"url(#{prefix}\1)", value))


def _head(root: ElementTree.Element, plot: Plot) -> None:
    """Sizes in CSS pixels; a name and a description for those who don't see it."""
    title = ElementTree.Element(f"{{{SVG}}}title", {"id": f"{plot.slug}-title"})
    title.text = plot.title
    description = ElementTree.Element(f"{{{SVG}}}desc", {"id": f"{plot.slug}-desc"})
    description.text = plot.in_words
    root.insert(0, title)
    root.insert(1, description)
    root.attrib.pop("version", None)
    root.set("width", f"{96 * plot.width_in:g}")
    root.set("height", f"{96 * plot.height_in:g}")
    root.set("role", "img")
    root.set("aria-labelledby", f"{plot.slug}-title {plot.slug}-desc")
    root.set("font-family", FAMILY)
    root.set("stroke-linejoin", "round")
    root.set("stroke-linecap", "butt")
