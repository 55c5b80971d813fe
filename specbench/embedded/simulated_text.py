"""The simulated engine's text: prompts as it reads them, answers as it words them. Pure."""

from functools import cache
from typing import Final

from specbench.datasets.builtin import every_prompt
from specbench.embedded.interface import GenerateRequest

TOKEN_CHARACTERS: Final = 4
"""A prompt token is taken to be so long."""
KEYWORDS: Final = (
    ("code", ("```", "python", "function", "rust", "javascript", "sql", "compile", "regex", "unit test")),
    ("math", ("solve", "how many", "probability", "equation", "integral", "prove", "calculate")),
    ("summarize", ("summarize", "summarise", "summary")),
    ("extract", ("extract", "json")),
    ("writing", ("write a story", "poem", "essay")),
)


def rendered(request: GenerateRequest) -> str:
    """The prompt with a plain chat template; an answer continues it, so that a next turn begins with both."""
    if request.messages is None:
        return request.prompt_text
    return "".join(f"{message.role}: {message.content}\n" for message in request.messages) + "assistant: "


def token_count(text: str) -> int:
    return len(text) // TOKEN_CHARACTERS + 1


def category_of(request: GenerateRequest) -> str:
    """Of the built-in prompt that is asked, alone or at either end of a raw text; by a few keywords for any other."""
    asked = [message.content for message in request.messages or () if message.role == "user"] or [request.prompt_text]
    known = _built_in()
    for text in (asked[-1], asked[0]):
        if text in known:
            return known[text]
    for turn, category in known.items():
        if asked[-1].startswith(turn) or asked[-1].endswith(turn):
            return category
    lowered = asked[-1].lower()
    return next((name for name, words in KEYWORDS if any(word in lowered for word in words)), "chat")


@cache
def _built_in() -> dict[str, str]:
    """Category by turn."""
    return {turn: prompt.category for prompt in every_prompt() for turn in prompt.turns}


def sentences(words: list[str]) -> list[str]:
    """Capitals and full stops; a sentence has as many words as its first word's letters and five more."""
    begin = 0
    while begin < len(words):
        end = begin + len(words[begin]) + 5
        words[begin] = words[begin].capitalize()
        if end <= len(words):
            words[end - 1] += "."
        begin = end
    return [word if index == 0 else f" {word}" for index, word in enumerate(words)]


TEXT: Final = """
a about above across after again air all almost along always and another answer apple around ask at autumn away back
bank barn basket before begin behind below bench between bird blue boat book both bread bridge bright bring brother
brown build busy but by call calm carry chair change child city clean clear clock close cloud coat cold colour come cook
corner country cross dark daughter day deep door down draw dream dry each early earth east easy edge eight evening every
eye face family far farm fast father few field find fire first fish five floor flower follow for forest four friend from
front full game garden gate gentle give glass go gold good grass great green ground grow hand happy harbour hat hear
heart heavy help here hill hold home hope horse house how hundred ice idea in inside island it journey just keep kind
kitchen know lake lamp land large last late laugh leaf learn leave left letter light line listen little live long look
loud low make many map market meadow meet middle milk mill mind minute moment moon more morning mother mountain mouth
move music name narrow near new next night nine north not notice now ocean of often old on once one open orange other
our out over page paint paper part pass path people picture place plain plant play point pond quick quiet rain read
ready red rest right ring river road roof room root round run sail salt same sand say school sea second see seed seven
shade shape share shine ship shop short show side silver simple sing sister six sky sleep slow small smile snow soft
some son song soon south speak spring square stand star start station still stone story street strong summer sun sure
sweet swim table take talk tall teach tell ten than that the then there thin thing think three through time to today
together town train travel tree turn two under until up valley very village visit voice wait walk wall warm watch water
way week well west wheel when where white wide wind window winter with wood word work world write yard year yellow yes
young
"""
WORDS: Final = tuple(TEXT.split())
"""Plain words, written for this purpose."""
