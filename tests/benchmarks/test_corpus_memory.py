"""Memory and seconds of a training of many pairs, here of few."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from corpus_memory import arguments_parser, of_size, row, written

from attlas.data import FilesData


def test_the_pairs_are_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "other"):
        written(tmp_path / name, 30, (), 0.0)
    one, other = (tmp_path / name / "train.en" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    names = [str(tmp_path / "one" / f"{split}.{side}") for split in ("train", "valid")
             for side in ("en", "de")]  # fmt: skip
    splits = FilesData(train=tuple(names[:2]), valid=tuple(names[2:])).load()
    assert (len(splits.train), len(splits.valid)) == (30, 200)


def test_pairs_are_made_of_other_files_and_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n", encoding="utf-8")
    (tmp_path / "a.en").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "a.de").write_text("eins\nzwei\n", encoding="utf-8")
    text = [str(tmp_path / name) for name in ("a.tsv", "a.en", "a.de")]
    written(tmp_path / "made", 100, text, 0.5)
    sides = [(tmp_path / "made" / f"train.{side}").read_text("utf-8") for side in ("en", "de")]
    source, target = (side.split() for side in sides)
    as_target = {"x": "y", "one": "eins", "two": "zwei"}
    assert [as_target.get(word, word) for word in source] == target
    numbers = {word for word in source if word.isdigit()}
    assert {*source} == {*as_target, *numbers}
    assert 30 < len(numbers) < 70


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_start_and_a_resume_are_measured(tmp_path: Path) -> None:
    found = of_size(tmp_path, 300, arguments_parser().parse_args(["300", "--threads", "1"]))
    for part in ("start", "resume"):
        assert found[part]["seconds"] > 0
        assert found[part]["computed"] > 0
        assert found[part]["peak"] > 2**27  # torch alone takes as much
    assert row(found).strip().startswith("300 pairs: start")
