"""`attlas export`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attlas.cli.application import app
from labelled_runs import trained


def attlas(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.stdout, result.stderr


def test_the_folder_is_named_with_its_files_and_what_to_know_of_them(
    run: Path, tmp_path: Path
) -> None:
    code, out, _ = attlas("export", run, "--to", "safetensors", "--out", tmp_path / "out")
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
    code, _, _ = attlas("export", blind_run, "--to", "safetensors", "--checkpoint", "last")
    assert code == 0
    origin = json.loads((blind_run / "exports" / "safetensors" / "attlas.json").read_bytes())
    assert origin["checkpoint"] == (blind_run / "last").read_text().partition(".")[0]
    assert attlas("train", blind_run)[0] == 0


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
    code, out, _ = attlas("export", classifier, "--to", format_, "--out", tmp_path / "out")
    assert code == 0
    assert out.startswith(f"{tmp_path / 'out'} is ready: ")
    beside = {"tokenizer.json", "labels.json", "attlas.json", "README.md"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == files | beside


@pytest.mark.parametrize(("format_", "taker"), [("huggingface", "Marian"), ("ctranslate2", "CTr")])
def test_where_a_classifier_cannot_go_the_error_says_where_it_can(
    classifier: Path, tmp_path: Path, format_: str, taker: str
) -> None:
    code, out, error = attlas("export", classifier, "--to", format_, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert f'wanted a model of kind "transformer" for {taker}' in error
    assert "got 'classifier'; use --to onnx, or --to safetensors" in error
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_not_written_over(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    code, out, error = attlas("export", run, "--to", "safetensors", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert "wanted a new or an empty folder" in error
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "tensorflow"), "wanted one of the formats safetensors, huggingface"),
        (
            ("--to", "ctranslate2"),
            "wanted a model of kind \"transformer\" for CTranslate2; got 'recurrent'",
        ),
        (("--to", "safetensors", "--quantization", "int8"), "wanted quantization = float32"),
        (("--to", "safetensors", "--checkpoint", "none"), "wanted a checkpoint 'none'"),
    ],
)
def test_the_callers_mistakes(
    run: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, _, error = attlas("export", run, *arguments, "--out", tmp_path / "out")
    assert code == 2
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_asking_for_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from attlas.cli.application import app; "
        "assert CliRunner().invoke(app, ['export', '--help']).exit_code == 0; "
        "sys.exit(', '.join({'torch', 'numpy', 'onnx', 'ctranslate2'} & set(sys.modules)) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
