"""A checkout works wherever it lies, and whatever its folder is called."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What a checkout does not begin with.
MADE = ("*.egg-info", "__pycache__", "node_modules", ".*_cache", ".hypothesis", "_build")
# Tests that print paths, look for them in what is printed, or read files of the checkout.
ON_PATHS = (
    "tests/training/test_distributed.py::test_a_mistake_is_reported_as_ever_and_ends_all_processes",
    "tests/recording/test_mistakes.py::"
    "test_the_warning_of_a_pattern_of_no_layer_names_the_line_of_the_block",
    "tests/cli/test_errors.py",
    "tests/scripts/test_build.py",
    "tests/scripts/test_settings.py",
)
OFTEN = " or ".join(
    (
        "test_two_builds_are_the_same_bytes",
        "test_the_files_that_the_index_serves",
        "test_where_a_process_of_the_tests_dies",
        "test_a_reader_that_leaves_is_no_error",
        "test_ctrl_c_exits_with_130",
    )
)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout in a folder of the package's name, below one with spaces and an umlaut."""
    folder = tmp_path_factory.mktemp("clone") / "ein Ort für Aufmerksamkeit" / "attlas"
    folder.mkdir(parents=True)
    for name in ("src", "tests", "scripts", "docs", "benchmarks", "explorer-ui"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*MADE, ".peers"))
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, folder)
    return folder


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("clone")
def test_tests_pass_in_a_clone_of_any_name(clone: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", f"not ({OFTEN})", *ON_PATHS],
        cwd=clone, env={**os.environ, "PYTHONPATH": str(clone / "src"), "CI": ""},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.xdist_group("clone")
def test_make_knows_its_targets_in_a_clone_of_any_name(clone: Path) -> None:
    for target in ("help", "demo", "check", "test", "docs", "package", "lowest", "clean"):
        done = subprocess.run(
            ["make", "--dry-run", target], cwd=clone, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, ""), target
    requested = ["make", "--dry-run", "--question", "--print-data-base", "help"]
    database = subprocess.run(requested, cwd=clone, capture_output=True, text=True).stdout
    assert f"PATH := {clone / '.venv' / 'bin'}:" in database
