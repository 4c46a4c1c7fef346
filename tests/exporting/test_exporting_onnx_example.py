"""`translate.py` of an exported folder: the graphs in use, without attlas and without torch."""

import subprocess
import sys
from pathlib import Path

import pytest
from exportable import JOINT, WORDS, run_of, small, subwords
from hypothesis import given
from hypothesis import strategies as st
from onnx_runtime import example

from attlas.data import Characters, Vocabularies
from attlas.decoding import Translator
from attlas.exporting import export
from attlas.models import RecurrentConfig, TransformerConfig

SUBWORDS = subwords()
MODELS = {
    "transformer": small(),
    "transformer, learned": small(positions="learned", longest=400),
    "recurrent": RecurrentConfig(embedding=8, hidden=8, encoder_hidden=8, dropout=0.0),
    "none": RecurrentConfig(embedding=8, hidden=8, encoder_hidden=8, attention="none"),
}
LETTERS = Characters("abcdefgh ▁é")
VOCABULARIES = {
    "subwords": SUBWORDS,
    "joint subwords": Vocabularies(SUBWORDS.source, SUBWORDS.source),
    "words": WORDS,
    "joint words": JOINT,
    "characters": Vocabularies(LETTERS, Characters("xyz 日")),
}
TEXTS = [
    "The 3th house  is 2 miles away",
    "",
    "a0 a5  a16 unknown b2 b3",
    "   ",
    "  é naïve ▁▁ “quoted” 日本 🎉 ",
    "bad cafe",
    "a" * 70,
]
ALONE = """
import runpy, sys
sys.modules |= dict.fromkeys(["torch", "attlas", "onnx", "safetensors", "pydantic"])
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def translated(folder: Path, text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, folder / "translate.py"],
        input=text.encode(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize("kind", VOCABULARIES)
@pytest.mark.parametrize("model", ["transformer", "recurrent"])
def test_it_writes_what_attlas_writes(tmp_path: Path, model: str, kind: str) -> None:
    limits = {"max_length_factor": 0.5, "max_length_constant": 9}
    run = run_of(tmp_path / "run", MODELS[model], VOCABULARIES[kind], method="greedy", **limits)
    export(run, "onnx", tmp_path / "out")
    wanted = [translation.text for translation in Translator(run).many(TEXTS)]
    assert any(wanted)
    assert translated(tmp_path / "out", "".join(f"{text}\n" for text in TEXTS)) == "".join(
        f"{text}\n" for text in wanted
    )


@pytest.mark.parametrize("model", MODELS)
def test_more_lines_than_a_batch_come_out_in_order(tmp_path: Path, model: str) -> None:
    config: RecurrentConfig | TransformerConfig = MODELS[model]
    run = run_of(tmp_path / "run", config, WORDS, method="greedy")
    export(run, "onnx", tmp_path / "out")
    texts = [" ".join(f"a{(n * k) % 17}" for k in range(n % 9)) for n in range(70)]
    wanted = [translation.text for translation in Translator(run).many(texts)]
    # The last line may end without a line feed, others with a carriage return before it.
    assert translated(tmp_path / "out", "\r\n".join(texts)).splitlines() == wanted


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("example")
    export(run_of(path / "run", MODELS["none"], SUBWORDS), "onnx", path / "out")
    return path / "out"


@given(text=st.text(st.characters(codec="utf-8"), max_size=40))
def test_it_reads_subwords_as_attlas_does(folder: Path, text: str) -> None:
    assert example(folder).vocabulary(folder, "source").encode(text) == SUBWORDS.source.encode(text)


@given(data=st.data())
def test_it_writes_subwords_as_attlas_does(folder: Path, data: st.DataObject) -> None:
    # The first ids are bytes: most strings of them are no characters.
    id_ = st.integers(4, 259) | st.integers(0, len(SUBWORDS.target) - 1)
    ids = data.draw(st.lists(id_, max_size=12))
    assert example(folder).vocabulary(folder, "target").decode(ids) == SUBWORDS.target.decode(ids)


def test_an_export_without_vocabularies_is_told_by_name(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has neither source\.\* nor tokenizer\.\*"):
        example(folder).vocabulary(tmp_path, "source")
