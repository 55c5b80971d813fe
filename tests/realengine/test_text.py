"""What the tiny models are trained on, and what is kept from them."""

from tests.realengine.make import PROMPT_COUNT, PROMPT_TOKENS, models_folder, prompts_of, texts


def test_prompts_come_from_text_that_is_not_trained_on() -> None:
    text, held_out = texts()
    prompts = prompts_of(held_out)
    assert {name: len(each) for name, each in prompts.items()} == {"prose": PROMPT_COUNT, "copy": PROMPT_COUNT}
    assert not [one for one in prompts["prose"] if one.encode() in text]
    assert all(len(one) == PROMPT_TOKENS for one in prompts["prose"])


def test_lookup_finds_the_copy_in_its_prompt() -> None:
    for prompt in prompts_of(texts()[1])["copy"]:
        first, second, begun = prompt.split("\n")
        assert first == second
        assert first.startswith(begun)


def test_the_folder_is_named_by_its_sources() -> None:
    assert models_folder() == models_folder()
    assert models_folder().name.startswith("realengine-models-")
