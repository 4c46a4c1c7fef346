"""What is said of the state of the source that is measured."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import checkout  # noqa: E402


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit."""

    def git(*words: str) -> None:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init")
    for name in ("src/a.py", "benchmarks/run.py", "benchmarks/results.json", "docs/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "one")
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    return tmp_path


def test_a_source_that_is_that_of_a_commit_needs_no_warning(source: Path) -> None:
    for name in ("benchmarks/results.json", "docs/page.md"):  # no figure depends on them
        (source / name).write_text("2\n", encoding="utf-8")
    assert checkout.warning() == ""
    assert not str(checkout.commit()).endswith("+")


@pytest.mark.parametrize("name", ["src/a.py", "src/new.py", "benchmarks/run.py"])
def test_a_changed_source_is_reported_loudly_and_by_name(source: Path, name: str) -> None:
    (source / name).write_text("2\n", encoding="utf-8")
    commit = str(checkout.commit())
    assert commit.endswith("+")
    assert commit in checkout.warning()
    assert name in checkout.warning()
    assert checkout.warning().startswith("!" * 80)


def test_a_source_that_is_no_checkout_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    assert "no checkout" in checkout.warning()
    assert checkout.commit() is None
