"""YAML text to a `Document`: safe, with lines, with variables replaced, and within limits."""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from specbench.errors import Problem, SuiteError
from specbench.suite.document import Document, Keys, nearest, quoted
from specbench.suite.variables import expand

MAX_BYTES: Final = 1 << 20
MAX_NESTING: Final = 32
MAX_PARTS: Final = 50_000
"""Values in the file once its aliases are followed."""
MAX_NUMBER: Final = 2**53

TAG: Final = "tag:yaml.org,2002:"
DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
MAYBE_NUMBER: Final = re.compile(r"-?[0-9.]+(?:[eE][-+]?[0-9]+)?")


class _Loader(yaml.SafeLoader):
    """Refuses deep nesting before Python's own recursion limit is near."""

    _nesting = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise yaml.MarkedYAMLError(
                problem=f"nested deeper than {MAX_NESTING} levels",
                problem_mark=self.get_mark(),
            )
        node = super().compose_node(parent, index)
        self._nesting -= 1
        return node


def read_document(path: str | Path, environ: Mapping[str, str], text: str | None = None) -> Document:
    """`text` is what was read from there already: a pipe gives it once.

    Raises SuiteError when the file can't be read or is no YAML mapping; lesser faults are left as complaints.
    """
    document = Document(str(path))
    root = _compose(read_text(path) if text is None else text, document.path)
    if not isinstance(root, yaml.MappingNode):
        what = "is empty" if root is None else "holds no mapping"
        raise SuiteError([Problem(document.path, 1, f"the file {what}; a suite has keys such as name, model, variants")])
    document.value = _Builder(document, environ).value(root, ())
    return document


def read_text(path: str | Path) -> str:
    """A suite's text. Raises SuiteError."""
    file, shown = Path(path), str(path)
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SuiteError([Problem(shown, 0, f"no such file{_neighbour(file)}")]) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SuiteError([Problem(shown, 0, f"the suite can't be read: {reason.lower()}")]) from None
    if len(data) > MAX_BYTES:
        raise SuiteError([Problem(shown, 0, f"a suite file has at most {MAX_BYTES // 1024} KiB")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SuiteError([Problem(shown, line, f"byte 0x{data[error.start]:02x} is not UTF-8 text")]) from None


def _neighbour(file: Path) -> str:
    try:
        names = [one.name for one in file.parent.iterdir() if one.suffix in (".yaml", ".yml")]
    except OSError:
        return ""
    near = nearest(file.name, names)
    return f"; did you mean {str(file.with_name(near))!r}?" if near else ""


def _compose(text: str, shown: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SuiteError([Problem(shown, mark.line + 1 if mark else 0, _yaml_sentence(error, text))]) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SuiteError([Problem(shown, line, f"character U+{error.character:04X} is not allowed in YAML")]) from None
    return node


def _yaml_sentence(error: yaml.MarkedYAMLError, text: str) -> str:
    problem = error.problem or error.context or "a syntax error"
    if "'\\t'" in problem:
        return "a tab can't begin a token in YAML; indent with spaces"
    if problem.startswith("nested"):
        return problem
    if "single document" in (error.context or ""):
        return "a suite file is one YAML document; remove the second '---'"
    lines = text.splitlines()
    mark = error.problem_mark
    if mark and mark.line < len(lines) and "${" in lines[mark.line]:
        problem += "; text that holds ${…} needs quotes inside { } and [ ]"
    return f"not valid YAML: {problem}"


class _Builder:
    """Nodes to plain values."""

    def __init__(self, document: Document, environ: Mapping[str, str]) -> None:
        self.document = document
        self.environ = environ
        self.part_count = 0
        self.open: list[yaml.Node] = []
        """The nodes being built, outermost first: an alias to one of them would never end."""

    def value(self, node: yaml.Node, keys: Keys) -> Any:
        """Raises SuiteError when a limit is passed."""
        self._count(node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, keys)
        if len(self.open) >= MAX_NESTING or any(node is one for one in self.open):
            self._refuse(node, f"an alias holds itself, or nests deeper than {MAX_NESTING} levels")
        self.open.append(node)
        built = self._mapping(node, keys) if isinstance(node, yaml.MappingNode) else self._sequence(node, keys)
        self.open.pop()
        return built

    def _count(self, node: yaml.Node) -> None:
        self.part_count += 1
        if self.part_count > MAX_PARTS:
            self._refuse(node, f"with its aliases the file has more than {MAX_PARTS} values")

    def _refuse(self, node: yaml.Node, message: str) -> None:
        raise SuiteError([Problem(self.document.path, node.start_mark.line + 1, message)])

    def _sequence(self, node: yaml.Node, keys: Keys) -> list[Any]:
        self._check_tag(node, keys, "seq")
        for index, item in enumerate(node.value):
            self.document.lines[*keys, index] = item.start_mark.line + 1
        return [self.value(item, (*keys, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, keys: Keys) -> dict[str, Any]:
        self._check_tag(node, keys, "map")
        built: dict[str, Any] = {}
        for key_node, value_node, merged in self._pairs(node, keys, ()):
            line = key_node.start_mark.line + 1
            name = self._key(key_node, keys)
            if name is None or (merged and name in built):
                continue
            if name in built:
                first = self.document.lines[*keys, name]
                self.document.complain((*keys, name), f"key {quoted(name)} is given twice; first on line {first}", line)
                continue
            self.document.lines[*keys, name] = line
            built[name] = self.value(value_node, (*keys, name))
        return built

    def _key(self, node: yaml.Node, keys: Keys) -> str | None:
        if isinstance(node, yaml.ScalarNode) and _writable(node.value):
            return str(node.value)
        self.document.complain(keys, "a key must be plain text", node.start_mark.line + 1)
        return None

    def _pairs(
        self, node: yaml.MappingNode, keys: Keys, around: tuple[yaml.Node, ...]
    ) -> Iterator[tuple[yaml.Node, yaml.Node, bool]]:
        """A mapping's own members, then those that `<<` merges into it."""
        self._count(node)
        merges: list[yaml.Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == TAG + "merge":
                merges += value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            else:
                yield key_node, value_node, bool(around)
        for source in merges:
            if isinstance(source, yaml.MappingNode) and source is not node and source not in around:
                yield from self._pairs(source, keys, (*around, node))
            else:
                self.document.complain(keys, "'<<' takes a mapping or a list of mappings", source.start_mark.line + 1)

    def _check_tag(self, node: yaml.Node, keys: Keys, kind: str) -> None:
        if node.tag != TAG + kind:
            self.document.complain(keys, f"tag {quoted(_short_tag(node))} is not allowed", node.start_mark.line + 1)

    def _scalar(self, node: yaml.ScalarNode, keys: Keys) -> Any:
        expansion = expand(node.value, self.environ)
        self.document.variables.update(expansion.names)
        for complaint in expansion.complaints:
            self.document.complain(keys, complaint)
        if not _writable(expansion.text):
            self.document.complain(keys, "the text holds a character that no command line can carry")
        if expansion.names:
            return expansion.text if node.style else _as_written(expansion.text)
        value = _plain(node, expansion.text)
        if value is _UNKNOWN_TAG:
            self.document.complain(keys, f"tag {quoted(_short_tag(node))} is not allowed")
        elif isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:
            self.document.complain(keys, f"{quoted(node.value)} is not a number that can be used; the largest is 2^53")
        return value


_UNKNOWN_TAG: Final = object()


def _plain(node: yaml.ScalarNode, text: str) -> Any:
    """The value of a scalar that holds no variable. Leading zeros, dates and times of day stay text."""
    kind = node.tag.removeprefix(TAG)
    if kind == "null":
        return None
    if kind == "bool":
        return yaml.SafeLoader.bool_values.get(node.value.lower(), _UNKNOWN_TAG)
    if kind == "int":
        return _whole(text)
    if kind == "float":
        return _fraction(text)
    return text if kind in ("str", "timestamp", "value", "merge") else _UNKNOWN_TAG


def _whole(text: str) -> int | float | str:
    if DECIMAL.fullmatch(text):
        return int(text.replace("_", "")) if len(text) <= 40 else math.inf
    return text


def _fraction(text: str) -> float | str:
    try:
        return float(text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text


def _as_written(text: str) -> Any:
    """A variable's unquoted value as a number or a truth value, but only where it would print back the same."""
    if text in ("true", "false"):
        return text == "true"
    if len(text) > 15 or not MAYBE_NUMBER.fullmatch(text):
        return text
    for kind in (int, float):
        try:
            if str(kind(text)) == text:
                return kind(text)
        except ValueError:
            continue
    return text


def _writable(text: str) -> bool:
    """False for a NUL or half a surrogate pair, which neither a command line nor a UTF-8 file can hold."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _short_tag(node: yaml.Node) -> str:
    return str(node.tag).replace(TAG, "!!")
