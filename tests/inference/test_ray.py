"""A column of texts through a translator, alone and in the workers of Ray Data."""

import json
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import Vocabularies, Words
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError
from attlas.inference import ColumnTranslator, Translator
from support.table_model import LookingTable

LINES = ["a b c", "", "d", "e f", "   ", "g h a b", "c"]


def table(seed: int = 0) -> Translator:
    vocabularies = Vocabularies(Words(list("abcdefgh")), Words(["x", "y"]))
    config = DecodingConfig(max_len_a=1.0, max_len_b=5)
    return Translator.of(LookingTable(seed), vocabularies, config)


@pytest.mark.parametrize("as_column", [list, np.array, lambda t: np.array(t, dtype=object)])
@given(texts=st.lists(st.text("abcdefgh ", max_size=8), max_size=7))
def test_each_row_gets_the_translation_of_its_text_and_keeps_the_rest(
    as_column: object, texts: list[str]
) -> None:
    column = ColumnTranslator(table, "en", "de")
    batch = {"id": np.arange(len(texts)), "en": as_column(texts)}  # type: ignore[operator]
    found = column(batch)
    assert list(found) == ["id", "en", "de"]
    assert found["id"] is batch["id"]
    assert found["en"] is batch["en"]
    assert found["de"].dtype == object
    assert found["de"].tolist() == [table()(text).text for text in texts]


def test_the_translator_is_opened_once() -> None:
    opened = []

    def door() -> Translator:
        opened.append(table())
        return opened[-1]

    column = ColumnTranslator(door, "en", "de")
    for _ in range(3):
        column({"en": LINES})
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"fr": ["a"]}, "expected a batch with a column 'en' and none 'de'; got the columns 'fr'"),
        ({"en": ["a"], "de": ["x"]}, "got the columns 'en', 'de'"),
        (
            {"en": ["a", None]},
            "expected a text in each row of column 'en'; got None in row 1 of a batch",
        ),
        ({"en": np.array([1, 2])}, "got 1 in row 0 of a batch"),
    ],
)
def test_the_callers_mistakes(batch: dict[str, object], message: str) -> None:
    with pytest.raises(AttlasError) as caught:
        ColumnTranslator(table, "en", "de")(batch)
    assert message in str(caught.value)


def test_a_column_is_not_its_own_translation() -> None:
    with pytest.raises(AttlasError, match="expected two different columns; got 'en' twice"):
        ColumnTranslator(table, "en", "en")


def test_an_error_travels_between_processes() -> None:
    error = AttlasError("a cat", "a dog", "look again")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.expected, copy.got, copy.hint, str(copy)) == (
        "a cat",
        "a dog",
        "look again",
        str(error),
    )


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: attlas[ray]")
def test_two_workers_of_ray_data_translate_as_one_translator_does(tmp_path: Path) -> None:
    texts = LINES * 7
    (tmp_path / "text").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    script = Path(__file__).resolve().parents[1] / "support" / "through_ray.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path / "text", "3"],
        env={**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == [[text, table(3)(text).text] for text in texts]
    assert found["processes"] == 2
    assert "expected a batch with a column 'words' and none 'translation'" in found["mistake"]
