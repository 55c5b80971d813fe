"""`docs/suite-file.md` says what is so."""

import re
from pathlib import Path
from typing import Final, get_args

from specbench.suite import Method, Speculation, load_suite
from specbench.suite.file import Axes

TEXT: Final = (Path(__file__).parents[3] / "docs/suite-file.md").read_text(encoding="utf-8")


def test_its_example_makes_the_variants_it_names(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    example = re.search(r"^```yaml suite\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    told = re.search(r"makes five variants: (.*)\.", TEXT)
    assert example
    assert told
    path.write_text(example[1])
    suite = load_suite(path, {})
    assert [variant.name for variant in suite.variants] == re.findall(r"`([^`]+)`", told[1])
    assert suite.drafters["custom"].path == "drafters/custom"


def test_it_names_every_key_of_speculation_every_method_and_every_axis() -> None:
    for word in (*Speculation.__struct_fields__, *get_args(Method), *Axes.__struct_fields__):
        assert f"`{word}`" in TEXT, word
