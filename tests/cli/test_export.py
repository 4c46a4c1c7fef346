"""`attlas export`."""

import json
import shutil
from pathlib import Path

import pytest

from support.command_line import called
from support.labelled_runs import trained


def test_the_folder_is_named_with_its_files_and_what_to_know_of_them(
    run: Path, tmp_path: Path
) -> None:
    code, out, _ = called("export", run, "--to", "safetensors", "--out", tmp_path / "out")
    assert code == 0
    first, *remarks = out.splitlines()
    assert first.startswith(f"{tmp_path / 'out'} is ready: ")
    assert set(first.partition(": ")[2].split(", ")) == {
        path.name for path in (tmp_path / "out").iterdir()
    }
    assert all(remark.startswith("- ") for remark in remarks)


def test_by_default_it_goes_into_the_folder_of_the_run_which_can_be_trained_on(
    blind_run: Path,
) -> None:
    code, _, _ = called("export", blind_run, "--to", "safetensors", "--checkpoint", "last")
    assert code == 0
    origin = json.loads((blind_run / "exports" / "safetensors" / "attlas.json").read_bytes())
    assert origin["checkpoint"] == (blind_run / "last").read_text().partition(".")[0]
    assert called("train", blind_run)[0] == 0


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("classifier"))


@pytest.mark.parametrize(
    ("format_", "files"),
    [
        ("safetensors", {"model.safetensors", "config.toml"}),
        ("onnx", {"classifier.onnx", "classify.py"}),
    ],
)
def test_a_classifier_is_exported_with_its_vocabulary_and_its_labels(
    classifier: Path, tmp_path: Path, format_: str, files: set[str]
) -> None:
    code, out, _ = called("export", classifier, "--to", format_, "--out", tmp_path / "out")
    assert code == 0
    assert out.startswith(f"{tmp_path / 'out'} is ready: ")
    beside = {"tokenizer.json", "labels.json", "attlas.json", "README.md"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == files | beside


@pytest.mark.parametrize(("format_", "taker"), [("huggingface", "Marian"), ("ctranslate2", "CTr")])
def test_where_a_classifier_cannot_go_the_error_says_where_it_can(
    classifier: Path, tmp_path: Path, format_: str, taker: str
) -> None:
    code, out, error = called("export", classifier, "--to", format_, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert f'expected a model of kind "transformer" for {taker}' in error
    assert "got 'classifier'; use --to onnx, or --to safetensors" in error
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_not_written_over(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    code, out, error = called("export", run, "--to", "safetensors", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert "expected a new or an empty folder" in error
    assert "choose another folder (--out)" in error
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "tensorflow"), "expected one of the formats safetensors, huggingface"),
        (
            ("--to", "ctranslate2"),
            "expected a model of kind \"transformer\" for CTranslate2; got 'recurrent'",
        ),
        (("--to", "safetensors", "--quantization", "int8"), "expected quantization = float32"),
        (("--to", "safetensors", "--checkpoint", "none"), "expected a checkpoint 'none'"),
        (
            ("--to", "safetensors", "--set", "decoding.num_beams=3"),
            "expected settings of the search for huggingface or onnx",
        ),
        (
            ("--to", "onnx", "--set", "model.hidden_dim=3"),
            "expected settings of the search, such as",
        ),
    ],
)
def test_the_callers_mistakes(
    run: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, _, error = called("export", run, *arguments, "--out", tmp_path / "out")
    assert code == 2
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_is_named_by_its_number(run: Path, tmp_path: Path) -> None:
    to = ("--to", "safetensors", "--out", tmp_path / "out")
    assert called("export", run, *to, "--checkpoint", "3")[0] == 0
    assert json.loads((tmp_path / "out" / "attlas.json").read_bytes())["checkpoint"] == "00000003"


def test_a_run_that_is_not_ready_says_how_to_go_on(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "a copy"))
    to = ("--to", "safetensors", "--out", tmp_path / "out")
    (copy / "best").unlink()
    code, _, error = called("export", copy, *to)
    assert code == 2
    assert f"add --checkpoint last, or go on with its training: attlas train '{copy}'" in error
    shutil.rmtree(copy / "checkpoints")
    (copy / "last").unlink()
    code, _, error = called("export", copy, *to)
    assert code == 2
    assert f"train it: attlas train '{copy}'" in error


def test_the_search_that_is_written_down_may_be_set(run: Path, tmp_path: Path) -> None:
    settings = ("--set", "decoding.max_len_a=2.5", "--set", "decoding.method=greedy")
    code, out, error = called("export", run, "--to", "onnx", "--out", tmp_path / "out", *settings)
    assert code == 0, error
    assert "⌊2.5 · n⌋ + 5 tokens" in out
    assert "decoding.method" not in out
    plain = called("export", run, "--to", "onnx", "--out", tmp_path / "plain")[1]
    assert 'decoding.method = "beam"' in plain


def test_a_classifier_has_no_search_to_be_set(classifier: Path, tmp_path: Path) -> None:
    settings = ("--set", "decoding.num_beams=3", "--out", tmp_path / "out")
    code, _, error = called("export", classifier, "--to", "onnx", *settings)
    assert code == 2
    assert "got --set; leave that out: it has no search to be set" in error
    assert not (tmp_path / "out").exists()
