"""Placeholders: from the training through the command line and the exports."""

from pathlib import Path

import pytest
from transformers import MarianMTModel, MarianTokenizer
from typer.testing import CliRunner

from attlas.cli.main import app
from attlas.export import export
from attlas.export.ctranslate2 import names
from attlas.inference import Translator
from attlas.training import read_recipe, train

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

RECIPE = """
[data]
kind = "files"
train = "train.tsv"
valid = "valid.tsv"

[vocabulary]
kind = "bpe"
size = 300
user_defined_symbols = ["<num>", "__URL__"]

[model]
kind = "transformer"
norm = "post"
embed_dim = 32
num_heads = 2
ffn_dim = 32
encoder_layers = 1
decoder_layers = 1
dropout = 0.0

[training]
max_steps = 120
learning_rate = 1e-2

[training.validation]
every = 60

[decoding]
method = "greedy"
max_len_a = 1.0
max_len_b = 5
"""
LINES = "a <num> b\n__URL__\nb(__URL__)<num>\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learnt to write what it reads."""
    folder = tmp_path_factory.mktemp("symbols")
    texts = ["a <num> b", "__URL__", "b(__URL__)<num>", "a b", "(a)"]
    for name, times in (("train.tsv", 40), ("valid.tsv", 1)):
        lines = "".join(f"{text}\t{text}\n" for text in texts * times)
        (folder / name).write_text(lines, encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return train(read_recipe(folder / "recipe.toml"), folder / "run").path


def test_placeholders_survive_a_translation_and_its_exports(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["translate", str(run)], input=LINES)
    assert (done.exit_code, done.stdout) == (0, LINES), done.stderr
    translator = Translator(run)
    source = translator.vocabularies.source
    assert [source.pieces(source.encode(f"x{one}y"))[2] for one in ("<num>", "__URL__")] == [
        "<num>",
        "__URL__",
    ]

    export(run, "ctranslate2", tmp_path / "ctranslate2")
    assert {"<num>", "__URL__"} < set(names(translator.vocabularies.target))
    engine = ["translate", str(run), "--engine", str(tmp_path / "ctranslate2")]
    done = CliRunner().invoke(app, engine, input=LINES)
    assert (done.exit_code, done.stdout) == (0, LINES), done.stderr

    export(run, "huggingface", tmp_path / "marian")
    model = MarianMTModel.from_pretrained(tmp_path / "marian").eval()
    tokenizer = MarianTokenizer.from_pretrained(tmp_path / "marian")
    for line in LINES.splitlines():
        read = tokenizer(line, return_tensors="pt")
        assert read["input_ids"][0, :-1].tolist() == source.encode(line)
        written = model.generate(**read)[0]
        assert tokenizer.decode(written, skip_special_tokens=True) == line
