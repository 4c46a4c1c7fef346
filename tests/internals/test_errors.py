"""Errors are short, whatever they tell of."""

import pickle
import string
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attlas import Run, Trace, observe, read_recipe
from attlas._files import parse_json
from attlas.config import Config, overridden, read_toml
from attlas.data.lines import read_lines
from attlas.errors import (
    AttlasError,
    CheckpointError,
    ConfigError,
    DataError,
    UnsupportedError,
    quoted,
    shortened,
)

LONG = "x" * 1_000_000


class Settings(Config):
    number: int = 1
    text: str = ""


@given(st.text(), st.integers(1, 200))
def test_a_value_that_is_short_is_quoted_as_python_writes_it(text: str, most: int) -> None:
    assert (quoted(text, most) == repr(text)) == (len(text) <= most)
    assert (shortened(text, most) == text) == (len(text) <= most)


def test_a_long_value_is_reported_by_its_beginning_and_its_length() -> None:
    assert quoted(LONG) == f"'{'x' * 80}'… (1,000,000 characters)"
    assert quoted(list(string.ascii_letters * 9), 9) == "['a', 'b'… (2,340 characters)"
    assert quoted(12) == "12"


@pytest.mark.parametrize("part", ["expected", "got", "hint"])
def test_no_part_of_an_error_is_longer_than_a_person_reads(part: str) -> None:
    error = AttlasError(**{"expected": "w", "got": "c", "hint": "d", part: f"{LONG} end"})
    assert len(str(error)) < 2500
    assert str(error).count("(1,000,004 characters)") == 1
    assert getattr(error, part).endswith(" end")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    "table", [{"number": LONG}, {LONG: 1}, {"number": [LONG]}, {"text": {LONG: LONG}}], ids=range(4)
)
def test_a_setting_of_a_million_letters_is_reported_in_a_few(table: dict[str, object]) -> None:
    with pytest.raises(AttlasError) as caught:
        Settings.read(table, "the test")
    assert len(str(caught.value)) < 400


def test_what_goes_too_deep_is_refused_wherever_it_is_read(tmp_path) -> None:
    path = tmp_path / "deep.toml"
    dots = ".".join("a" * 900)
    for text in (f"{dots} = 1", f"[{dots}]\nb = 1", f"a = {'[' * 90}{']' * 90}"):
        path.write_text(text)
        with pytest.raises(
            AttlasError, match=r"settings in .*deep.toml; got brackets within .* more than 64;"
        ):
            read_toml(path)
    with pytest.raises(AttlasError, match="an assignment like"):
        overridden({}, [f"{dots}=1"])
    with pytest.raises(ValueError, match="more than 64 deep"):
        parse_json("[" * 70 + "]" * 70)
    assert parse_json('{"a": [["[[[["]]}' + " " * 9) == {"a": [["[[[["]]}
    assert len(parse_json(f"[{'[],' * 200}[]]")) == 201


def _damaged_trace(folder: Path) -> object:
    (folder / "trace.safetensors").write_bytes(b"no trace")
    return Trace.load(folder / "trace.safetensors")


def _bytes_as_text(folder: Path) -> object:
    (folder / "lines.txt").write_bytes(b"a\n\xff\n")
    return read_lines(folder / "lines.txt")


KINDS: list[tuple[type[AttlasError], Callable[[Path], object]]] = [
    (ConfigError, lambda _: read_recipe("demo", ["training.max_epochs=-1"])),
    (ConfigError, lambda _: read_recipe("no such recipe")),
    (DataError, _bytes_as_text),
    (CheckpointError, Run),
    (CheckpointError, _damaged_trace),
    (UnsupportedError, lambda _: observe(torch.jit.script(nn.Linear(1, 1))).__enter__()),
]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize(("kind", "mistake"), KINDS)
def test_an_error_has_the_kind_of_its_mistake_and_is_a_value_error(
    kind: type[AttlasError], mistake: Callable[[Path], object], tmp_path: Path
) -> None:
    assert issubclass(kind, ValueError)
    with pytest.raises(kind) as caught:
        mistake(tmp_path)
    assert type(caught.value) is kind
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (kind, str(caught.value))
