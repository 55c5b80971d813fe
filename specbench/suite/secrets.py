"""What must never be stored or shown, and how it is hidden: values that are known to be secret, and what looks like it.

Known are the values of environment variables (the shell's and the suite's) whose names end like a secret's or are listed
in the suite's `secrets` or in `SPECBENCH_SECRETS`; what follows a flag with such a name; and what URLs carry. Pure.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from specbench.suite.types import Server, Suite, Variant

HIDDEN: Final = "(hidden)"
SECRET_WORDS: Final = ("TOKEN", "KEY", "SECRET", "PASSWORD", "CREDENTIAL", "CREDENTIALS")
LISTED: Final = "SPECBENCH_SECRETS"
"""Names further variables, with commas or spaces between them."""
SHORTEST: Final = 6
"""Characters of a value that is looked for in any text; a shorter one would be found where it is not meant."""
API_KEY_FLAG: Final = "--api-key"
API_KEY_NAMES: Final = ("VLLM_API_KEY", "LLAMA_API_KEY")
FIELDS: Final = re.compile(r"(?i)(?:^|_)(?:api_?key|hf_token|auth_token|access_token|secret|password|credentials?)$")
"""Keys of a server's own report; `pad_token` is none."""

_URL_USER: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/@'\"<>]{1,400}@")
_PLACES: Final = re.compile(
    r"(?P<before>[?&][\w-]{0,40}(?:token|key|secret|password|signature)=)[^&\s'\"#]+"
    r"|(?P<flag>--[\w-]{0,40}(?:token|key|secret|password|credential)[ =,]+['\"]?)[^\s'\"-][^\s'\"]*"
    r"|(?P<field>(?:api_key|hf_token|auth_token|access_token|secret|password)['\"]?\s*[=:]\s*['\"])[^'\"]+"
    r"|(?P<scheme>\b(?:Bearer|Basic)\s+)(?=\S*\d)[\w+/.~=-]{8,}",
    re.IGNORECASE,
)
"""Where a secret stands; the place itself is kept."""
_SHAPES: Final = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abprs]-[\w-]{10,}|nvapi-[\w-]{16,}"
    r"|AKIA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})"
)
"""Tokens that are known by their beginning: Hugging Face, OpenAI, GitHub, Slack, NVIDIA, AWS, JWT."""
Record = TypeVar("Record", bound=Struct)


class Secrets:
    """Hides the values it was given wherever they stand, and what looks like a secret."""

    def __init__(self, values: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        forms = {form for value in values if len(value) >= SHORTEST for form in _forms(value)}
        self._values = sorted(forms, key=len, reverse=True)
        self._names = frozenset(names)

    def is_secret(self, name: str) -> bool:
        """Whether a variable of this name, or a flag, holds a secret."""
        return name in self._names or is_secret(name)

    def spoken(self, text: str) -> str:
        """Without the known values and tokens that are known by their beginning: for the words of a model, which may
        well write code about passwords."""
        for value in self._values:
            if value in text:
                text = text.replace(value, HIDDEN)
        return _SHAPES.sub(HIDDEN, text)

    def clean(self, text: str) -> str:
        """Also without credentials in URLs and what stands where a secret stands."""
        return _PLACES.sub(_kept, _URL_USER.sub(rf"\1{HIDDEN}@", self.spoken(text)))

    def argv(self, words: Iterable[object]) -> tuple[str, ...]:
        """The same words; what follows a secret flag (`--api-key X`, `--api-key=X`) is hidden."""
        return tuple(self.clean(word) for word in hidden_words([str(word) for word in words]))

    def env(self, env: Mapping[str, object]) -> dict[str, str]:
        """The same variables; the values of secret ones are hidden."""
        return {name: HIDDEN if self.is_secret(name) else self.clean(str(value)) for name, value in env.items()}

    def tree(self, value: Any) -> Any:
        """A JSON value, cleaned; `env`, `args` and `argv` by their own rules. The plan's trials stay: they name folders."""
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, dict):
            return {name: self._field(name, one) for name, one in value.items()}
        return [self.tree(one) for one in value] if isinstance(value, list | tuple) else value

    def record(self, record: Record) -> Record:
        """The same, cleaned."""
        return msgspec.convert(self.tree(msgspec.to_builtins(record)), type(record))

    def _field(self, name: Any, value: Any) -> Any:
        if name in ("env", "variables") and isinstance(value, dict):
            return self.env(value)
        if name in ("args", "argv") and isinstance(value, list | tuple):
            return list(self.argv(value))
        if name in ("trial", "trials"):
            return value
        if isinstance(name, str) and isinstance(value, str) and value and FIELDS.search(name):
            return HIDDEN
        return self.tree(value)


def secrets_of(suite: Suite | None, environ: Mapping[str, str]) -> Secrets:
    """All that a suite and the shell's environment make known. A value that is part of one of the suite's own names, such as
    a variant's, can't be hidden and is no secret."""
    listed = re.split(r"[\s,]+", environ.get(LISTED, ""))
    names = {*filter(None, listed), *(suite.secrets if suite else ())}
    found = {value for name, value in environ.items() if name in names or is_secret(name)}
    if suite is not None:
        for variant in suite.variants:
            found |= {str(one) for name, one in variant.server.env.items() if name in names or is_secret(name)}
        for text in _texts(suite):
            found |= set(_in_url(text))
        found |= {value for variant in suite.variants for value in _in_args(variant.server)}
    own = _own_names(suite) if suite else ()
    return Secrets({value for value in found if not any(value in name for name in own)}, names)


def is_secret(name: str) -> bool:
    """Whether a variable or flag of this name holds something that must not be stored."""
    return name.upper().replace("-", "_").endswith(SECRET_WORDS)


def api_key_of(variant: Variant, environ: Mapping[str, str]) -> str | None:
    """What its server demands of clients: the last `--api-key`, else the variable that vLLM or llama.cpp reads."""
    words, found = [str(word) for word in variant.server.args], None
    for index, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag.replace("_", "-") == API_KEY_FLAG:
            found = value if equals else words[index + 1] if index + 1 < len(words) else None
    if found is None:
        known = {**environ, **variant.server.env}
        found = next((str(known[name]) for name in API_KEY_NAMES if known.get(name)), None)
    return found.partition(",")[0] if found and variant.engine == "llamacpp" else found


def hidden_words(words: Sequence[str]) -> list[str]:
    """What follows a secret flag is hidden."""
    shown: list[str] = []
    hide_next = False
    for word in words:
        flag, equals, _ = word.partition("=")
        secret = flag.startswith("--") and is_secret(flag)
        shown.append(HIDDEN if hide_next else f"{flag}={HIDDEN}" if secret and equals else word)
        hide_next = secret and not equals
    return shown


def _kept(found: re.Match[str]) -> str:
    return next((text for text in found.groups() if text), "") + HIDDEN


def _forms(value: str) -> set[str]:
    """As it may be written in a log, a JSON text or a URL."""
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1], quote(value, "")}


def _in_args(server: Server) -> Iterator[str]:
    words = [str(word) for word in server.args]
    for word, shown in zip(words, hidden_words(words), strict=True):
        if shown != word:
            yield word.partition("=")[2] if shown.endswith(f"={HIDDEN}") else word


def _in_url(text: str) -> Iterator[str]:
    """The password of each URL, or the user where there is none; as written and as meant."""
    for found in _URL_USER.finditer(text):
        user, colon, password = found.group(0).partition("://")[2][:-1].partition(":")
        value = password if colon else user
        yield from (value, unquote(value))


def _texts(suite: Suite) -> Iterator[str]:
    yield suite.model.path
    yield from (one.path for one in suite.drafters.values())
    for variant in suite.variants:
        yield from (str(word) for word in variant.server.args)
        yield from (str(value) for value in variant.server.env.values())
        yield variant.server.url or ""


def _own_names(suite: Suite) -> tuple[str, ...]:
    named = (suite.name, suite.path, *suite.drafters, *(one.name for one in suite.workloads))
    return (*named, *(text for one in suite.variants for text in (one.name, one.engine)), HIDDEN)
