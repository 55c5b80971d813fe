"""A file of your own prompts: one JSON object a line.

    {"prompt": "…"}                                          one turn
    {"turns": ["…", "…"], "system": "…"}                     several; each answer is put between
    {"messages": [{"role": "user", "content": "…"}, …]}      as chat APIs write them

`id` (text or a whole number) and `category` may be added; without them a line is called `<stem>-<line>`, in the
category `<stem>`. In `messages` the assistant's words are left out: the server under test gives its own.
Other keys are ignored, so that published files can be used as they are.
"""

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from specbench.datasets import Dataset, Prompt, spread
from specbench.errors import Problem, SpecbenchError
from specbench.suite import Workload

LIMIT_BYTES: Final = 256 * 2**20
FORMS: Final = ("prompt", "turns", "messages")
ROLES: Final = ("system", "user", "assistant")


class Jsonl:
    """Prompts from `workload.path`, which counts from the working directory."""

    def prompts(self, workload: Workload, seed: int, count: int) -> tuple[Prompt, ...]:
        if workload.path is None:
            raise SpecbenchError(f"workload '{workload.name}': dataset 'jsonl' needs `path`, the file with the prompts")
        return spread(read_prompts(Path(workload.path)), workload.categories, seed, count)


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Every prompt of a file. Raises SpecbenchError with file and line for the first bad one, and counts the rest."""
    prompts: dict[str, Prompt] = {}
    problems: list[Problem] = []
    for line_index, line in enumerate(_lines(path), 1):
        try:
            prompt = _parse(line, path.stem, line_index)
            if prompt is not None and prompt.id in prompts:
                raise ValueError(f"the id '{prompt.id}' is taken by a line above; ids must be different")
        except ValueError as error:
            problems.append(Problem(str(path), line_index, str(error)))
            continue
        if prompt is not None:
            prompts[prompt.id] = prompt
    if problems:
        more = f" ({len(problems) - 1} more bad lines)" if len(problems) > 1 else ""
        raise SpecbenchError(f"{problems[0]}{more}")
    if not prompts:
        raise SpecbenchError(f'{path}: the file holds no prompt; each line should be like {{"prompt": "…"}}')
    return tuple(prompts.values())


def _lines(path: Path) -> Iterator[str]:
    data = _read(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecbenchError(str(Problem(str(path), line, "is not UTF-8 text; save the file as UTF-8"))) from error
    yield from text.split("\n")


def _read(path: Path) -> bytes:
    try:
        if not path.exists():
            raise SpecbenchError(f"{path}: there is no such file; `path` should name a JSONL file of prompts")
        if not path.is_file():
            raise SpecbenchError(f"{path}: is not a file; `path` should name a JSONL file of prompts")
        if path.stat().st_size > LIMIT_BYTES:
            raise SpecbenchError(
                f"{path}: is {path.stat().st_size / 2**20:.0f} MiB; a file of prompts may have {LIMIT_BYTES // 2**20} MiB"
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise SpecbenchError(f"{path}: can't be read: {error}") from error


def _parse(line: str, stem: str, line_index: int) -> Prompt | None:
    """None for a blank line. Raises ValueError in one sentence."""
    if not line.strip():
        return None
    item = _object(line)
    turns, system = _conversation(item)
    if item.get("system") is not None:
        if system is not None:
            raise ValueError("has a `system` and a message of the system; it should have one of them")
        system = _text(item["system"], "system")
    return Prompt(
        id=_id(item.get("id", f"{stem}-{line_index}")),
        category=_text(item.get("category", stem), "category"),
        turns=turns,
        system=system,
    )


def _object(line: str) -> dict[str, Any]:
    try:
        item = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f'is not JSON ({error}); each line should be like {{"prompt": "…"}}') from error
    if not isinstance(item, dict):
        raise ValueError('is not a JSON object; it should be like {"prompt": "…"}')
    return item


def _conversation(item: dict[str, Any]) -> tuple[tuple[str, ...], str | None]:
    """The user's turns and the system's words, from whichever form the line has."""
    forms = [key for key in FORMS if key in item]
    if len(forms) > 1:
        raise ValueError(f"has `{'` and `'.join(forms)}`; it should have one of them")
    if not forms:
        raise ValueError(_no_form(item))
    value = item[forms[0]]
    if forms[0] == "messages":
        return _from_messages(value)
    if forms[0] == "prompt":
        return (_text(value, "prompt"),), None
    if not isinstance(value, list) or not value:
        raise ValueError("`turns` should be a list of texts, at least one")
    return tuple(_text(turn, "turns") for turn in value), None


def _no_form(item: dict[str, Any]) -> str:
    near = [key for key in item if difflib.get_close_matches(key, FORMS, n=1, cutoff=0.7)]
    hint = f"; is `{near[0]}` meant?" if near else ""
    return f"has none of `prompt`, `turns`, `messages`{hint}"


def _from_messages(messages: object) -> tuple[tuple[str, ...], str | None]:
    if not isinstance(messages, list):
        raise ValueError('`messages` should be a list of {"role": …, "content": …}')
    said = [_message(message) for message in messages]
    system = [content for role, content in said if role == "system"]
    if len(system) > 1 or (system and said[0][0] != "system"):
        raise ValueError("`messages` may have one message of the system, and it comes first")
    turns = tuple(content for role, content in said if role == "user")
    if not turns:
        raise ValueError("`messages` has no message of the user")
    _demand_alternation([role for role, _ in said if role != "system"])
    return turns, system[0] if system else None


def _message(message: object) -> tuple[str, str]:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(message, dict) or role not in ROLES:
        raise ValueError(f"each of `messages` should have a `role` out of {', '.join(ROLES)} and a `content`")
    return str(role), _text(message.get("content"), "content")


def _demand_alternation(roles: Sequence[str]) -> None:
    if any(role != ("user", "assistant")[place % 2] for place, role in enumerate(roles)):
        raise ValueError("in `messages` user and assistant should take turns, the user first")


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"`{key}` should be a text that isn't empty")
    return value


def _id(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(value, "id")


DATASET: Final[Dataset] = Jsonl()
