"""What a user installs is whole: the wheel, away from the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("installed")]

# Sixty words and two empty lines, as a person would paste them.
PARAGRAPH = """\
Two young friends are sitting on a bench in the park and talk about the summer.
A dog with a red ball runs across the green meadow towards the small lake.

An old man reads his newspaper while the children play football behind the trees.
It is getting late, the sun is low, and a woman calls her family for dinner.

They laugh.
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with attlas alone in it, installed from its wheel; its dependencies are ours."""
    folder = tmp_path_factory.mktemp("installed")
    target, copy = folder / "site", folder / "checkout"
    # A copy, because building leaves its traces beside the source.
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "--target", str(target), str(copy)],
        check=True,
    )  # fmt: skip
    return target


def attlas(installed: Path, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "attlas", *arguments],
        cwd=installed.parent, env=environment, input=text, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(installed: Path) -> Path:
    """Some updates on the shipped corpus, started from the installed package."""
    done = attlas(
        installed, "train", "demo", "--out", "run", "--set", "training.max_steps=30",
        "--set", "training.validation.sentences=8", "--set", "model.hidden_dim=16",
        "--set", "model.embed_dim=16", "--set", "model.encoder_hidden_dim=16",
        "--set", "vocabulary.size=600",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return installed.parent / "run"


def test_it_is_the_installed_package_that_runs(installed: Path) -> None:
    code = "import attlas; print(attlas.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=installed, env=environment, capture_output=True, text=True
    )
    assert done.stdout.startswith(str(installed))


def test_the_package_carries_its_page_its_recipes_and_its_corpus(installed: Path) -> None:
    package = installed / "attlas"
    carried = {str(file.relative_to(package)) for file in package.rglob("*") if file.is_file()}
    assert {
        "py.typed",
        "recipes/demo.toml",
        "recipes/reverse.toml",
        "recipes/multi30k.toml",
        "explorer/page/index.html",
        "explorer/page/explorer.js",
        "explorer/page/file.js",
        "explorer/page/explorer.css",
        "data/shipped/train.en-de.tsv.gz",
        "data/shipped/ATTRIBUTION.md",
    } <= carried


def test_help_does_not_load_torch(installed: Path) -> None:
    code = "import sys; from attlas.__main__ import main\ntry: main()\nexcept SystemExit: pass\n"
    code += "print('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], env=environment, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "False"
    assert "translate" in done.stdout


def test_a_paragraph_comes_out_line_by_line(installed: Path, run: Path) -> None:
    assert len(PARAGRAPH.split()) >= 60
    done = attlas(installed, "translate", "run", text=PARAGRAPH)
    assert done.returncode == 0, done.stderr
    lines, translations = PARAGRAPH.split("\n"), done.stdout.split("\n")
    assert len(translations) == len(lines)
    empty = [there for here, there in zip(lines, translations, strict=True) if not here]
    assert empty == ["", "", ""]


def test_the_sdist_is_not_needed_for_the_licence(installed: Path) -> None:
    licences = list(installed.rglob("LICENSE"))
    assert any("Apache License" in path.read_text(encoding="utf-8") for path in licences)
