"""`attlas translate --engine`."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from attlas.inference import Translator
from attlas.inference.ctranslate2 import FastTranslator
from attlas.runs import Run
from support.command_line import called

RECIPE = """
[data]
kind = "toy"
task = "reverse"
length = [1, 6]
symbols = 8
train = 300
valid = 20
test = 30

[vocabulary]
kind = "words"
size = 64

[model]
kind = "transformer"
embed_dim = 16
num_heads = 2
ffn_dim = 24
encoder_layers = 1
decoder_layers = 1

[training]
max_steps = 40
learning_rate = 3e-3
"""
LINES = "1 2 3\n\n4 5\n6\n"


def trained(folder: Path, seed: int) -> Path:
    from attlas.training import read_recipe, train

    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return train(read_recipe(folder / "recipe.toml", [f"seed={seed}"]), folder / "run").path


@pytest.fixture(scope="module")
def transformer_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = trained(tmp_path_factory.mktemp("engine"), seed=1)
    assert called("export", run, "--to", "ctranslate2")[0] == 0
    return run


def test_the_engine_translates_greedily_as_attlas_does(transformer_run: Path) -> None:
    greedy = ("--set", "decoding.method=greedy")
    ours = called("translate", transformer_run, *greedy, text=LINES)
    theirs = called("translate", transformer_run, *greedy, "--engine", "ctranslate2", text=LINES)
    assert ours == theirs
    assert ours[0] == 0


def test_n_best_lists_and_alignments_work_with_the_engine_too(
    transformer_run: Path, tmp_path: Path
) -> None:
    code, out, _ = called(
        "translate",
        transformer_run,
        "--engine",
        "ctranslate2",
        "--n-best",
        "2",
        "--num-beams",
        "3",
        "--alignments",
        tmp_path / "links",
        text=LINES,
    )
    assert code == 0
    rows = [line.split(" ||| ") for line in out.split("\n")[:-1]]
    assert [number for number, _, _ in rows] == list("0012233")
    wide = Translator(transformer_run).config.model_copy(update={"num_beams": 3, "n_best": 2})
    engine = FastTranslator(transformer_run, transformer_run / "exports" / "ctranslate2", wide)
    lists = engine.stream(LINES.split("\n")[:-1])
    expected = [one for best in lists for one in (best, *best.alternatives)]
    assert [text for _, text, _ in rows] == [one.text for one in expected]
    scores = [float(score) for _, _, score in rows]
    assert scores == pytest.approx([one.score for one in expected], abs=1e-6)
    assert len((tmp_path / "links").read_text().split("\n")) == 5


def test_files_are_translated_by_the_engine_and_never_by_two(
    transformer_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text(LINES, encoding="utf-8")
    command = ("translate", transformer_run, tmp_path / "text", "--into", tmp_path / "out")
    code, _, error = called(*command, "--engine", "ctranslate2")
    assert code == 0, error
    streamed = called("translate", transformer_run, "--engine", "ctranslate2", text=LINES)[1]
    assert (tmp_path / "out" / "text").read_text(encoding="utf-8") == streamed
    code, _, error = called(*command)
    assert code == 2
    assert "expected engine = ctranslate2, ctranslate2 = 4" in error
    assert "; got engine = attlas, ctranslate2 = none; " in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "marian"), "expected one of the engines attlas, ctranslate2"),
        (("--engine", "ctranslate2-int8"), "got none; run: attlas export"),
        (("--engine", "ctranslate2", "--device", "cuda"), "expected --device cpu with --engine"),
        (
            ("--engine", "ctranslate2", "--set", "decoding.no_repeat_ngram=2"),
            "expected no no_repeat_ngram with the engine ctranslate2",
        ),
    ],
)
def test_the_callers_mistakes(
    transformer_run: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, out, error = called("translate", transformer_run, *arguments, text=LINES)
    assert (code, out) == (2, "")
    assert message in error


def test_a_recurrent_model_has_no_other_engine(run: Path) -> None:
    code, _, error = called("translate", run, "--engine", "ctranslate2", text=LINES)
    assert code == 2
    assert 'expected a model of kind "transformer" for the engine ctranslate2' in error


def test_an_export_in_any_folder_translates_as_that_of_the_run_does(
    transformer_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "exported"
    assert called("export", transformer_run, "--to", "ctranslate2", "--out", folder)[0] == 0
    named = called("translate", transformer_run, "--engine", "ctranslate2", text=LINES)
    assert called("translate", transformer_run, "--engine", folder, text=LINES) == named


@pytest.mark.parametrize(
    ("quantization", "code", "message"),
    [
        ("float32", 0, "1, 1 of them before"),
        ("int8", 2, "expected engine = ctranslate2-int8, with which "),
    ],
)
def test_which_engine_an_export_is_its_numbers_say_and_not_its_folder(
    transformer_run: Path, tmp_path: Path, quantization: str, code: int, message: str
) -> None:
    folder = tmp_path / "exported"
    export = ("export", transformer_run, "--to", "ctranslate2", "--out", folder)
    assert called(*export, "--quantization", quantization)[0] == 0
    (tmp_path / "text").write_text(LINES, encoding="utf-8")
    command = ("translate", transformer_run, tmp_path / "text", "--into", tmp_path / "out")
    assert called(*command, "--engine", folder)[0] == 0
    found, _, error = called(*command, "--engine", "ctranslate2")
    assert found == code
    assert message in error


def test_a_folder_that_is_no_export_of_the_run_is_no_engine(
    transformer_run: Path, tmp_path: Path
) -> None:
    def said(folder: Path) -> str:
        code, out, error = called("translate", transformer_run, "--engine", folder, text=LINES)
        assert (code, out) == (2, "")
        return error

    (tmp_path / "empty").mkdir()
    assert f"at {tmp_path / 'empty'}; got none; run: attlas export" in said(tmp_path / "empty")
    assert "got none; name another folder" in said(transformer_run)
    tensors = ("--to", "safetensors", "--out", tmp_path / "tensors")
    assert called("export", transformer_run, *tensors)[0] == 0
    assert "got an export to safetensors; name another folder" in said(tmp_path / "tensors")
    other = trained(tmp_path, seed=2)
    folder = tmp_path / "others"
    assert called("export", other, "--to", "ctranslate2", "--out", folder)[0] == 0
    error = said(folder)
    assert "got one of other weights, of checkpoint 00000040" in error
    best = Run(transformer_run).store.named("best")
    assert f"--checkpoint {best} --out {folder}, or name another folder" in error
    ours = tmp_path / "ours"
    assert called("export", transformer_run, "--to", "ctranslate2", "--out", ours)[0] == 0
    (ours / "model.bin").unlink()
    error = said(ours)
    assert f" at {ours}; got " in error
    assert "model.bin" in error
    assert "; take it away and run: attlas export" in error


@pytest.mark.parametrize("facts", ["5", "[1]", "null", "{"])
def test_an_export_without_the_facts_about_it_is_damaged(
    transformer_run: Path, tmp_path: Path, facts: str
) -> None:
    (tmp_path / "attlas.json").write_text(facts, encoding="utf-8")
    code, out, error = called("translate", transformer_run, "--engine", tmp_path, text=LINES)
    assert (code, out) == (2, "")
    assert f" at {tmp_path}; got a damaged attlas.json (" in error
    assert "; take it away and run: attlas export" in error


@pytest.mark.parametrize("there", ["nothing", "another checkpoint"])
def test_the_export_that_is_advised_is_the_one_that_was_missing(
    transformer_run: Path, tmp_path: Path, there: str
) -> None:
    folder = tmp_path / "my export"
    folder.mkdir()
    if there == "another checkpoint":
        assert called("export", transformer_run, "--to", "ctranslate2", "--out", folder)[0] == 0
    run = Run(transformer_run)
    other = next(name for name in run.checkpoints() if name != run.store.named("best"))
    requested = ("translate", transformer_run, "--checkpoint", other, "--engine", folder)
    code, _, error = called(*requested, text=LINES)
    assert code == 2
    advised = error.partition("run: ")[2].removesuffix(", or name another folder\n")
    if there == "another checkpoint":
        assert "take it away and run: " in error
        shutil.rmtree(folder)
    assert called(*shlex.split(advised)[1:])[0] == 0
    assert called(*requested, text=LINES)[0] == 0


def test_an_evaluation_by_the_engine_says_so(transformer_run: Path, tmp_path: Path) -> None:
    greedy = ("--json", "--set", "decoding.method=greedy")
    code, out, error = called(
        "evaluate", transformer_run, *greedy, "--engine", "ctranslate2", "-o", tmp_path / "out"
    )
    assert code == 0, error
    found, plain = json.loads(out), json.loads(called("evaluate", transformer_run, *greedy)[1])
    assert (found.pop("engine"), plain.pop("engine")) == ("ctranslate2", "attlas")
    assert found == plain
    assert (tmp_path / "out").read_bytes().count(b"\n") == found["data"]["pairs"]
    reported = called("evaluate", transformer_run, "--engine", "ctranslate2")[1]
    assert "num_beams = 5, by ctranslate2\n" in reported
