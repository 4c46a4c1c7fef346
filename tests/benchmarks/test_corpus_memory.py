"""Memory and seconds of a training of many pairs, here of few."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from corpus_memory import of_size, row, written

from attlas.data import FilesData


def test_the_pairs_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "other"):
        written(tmp_path / name, 30)
    one, other = (tmp_path / name / "train.en" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    names = [str(tmp_path / "one" / f"{split}.{side}") for split in ("train", "valid")
             for side in ("en", "de")]  # fmt: skip
    splits = FilesData(train=tuple(names[:2]), valid=tuple(names[2:])).load()
    assert (len(splits.train), len(splits.valid)) == (30, 200)


@pytest.mark.slow
def test_a_start_and_a_resume_are_measured(tmp_path: Path) -> None:
    found = of_size(tmp_path, 300, 1)
    for part in ("start", "resume"):
        assert found[part]["seconds"] > 0
        assert found[part]["peak"] > 2**27  # torch alone takes as much
    assert row(found).strip().startswith("300 pairs: start")
