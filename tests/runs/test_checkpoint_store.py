"""The checkpoints of a run, and the names of the best and the last."""

from pathlib import Path

import pytest
import torch

from attlas.errors import AttlasError
from attlas.runs import AVERAGED, BEST, LAST, Checkpoint, Shelf, numbered


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    shelf = Shelf(tmp_path)
    for update in (20, 100, 3):
        shelf.write(numbered(update), Checkpoint({"w": torch.tensor([float(update)])}))
    return shelf


def test_checkpoints_are_listed_oldest_first_the_average_at_the_end(shelf: Shelf) -> None:
    shelf.write(AVERAGED, Checkpoint({}))
    assert shelf.names() == ["00000003", "00000020", "00000100", "averaged"]
    assert shelf.numbered() == [3, 20, 100]


def test_more_than_eight_digits_keep_their_order(shelf: Shelf) -> None:
    shelf.write(numbered(99_999_999), Checkpoint({}))
    shelf.write(numbered(100_000_000), Checkpoint({}))
    assert shelf.numbered() == [3, 20, 100, 99_999_999, 100_000_000]


def test_a_pointer_is_followed(shelf: Shelf) -> None:
    shelf.point(BEST, numbered(20))
    shelf.point(LAST, numbered(100))
    assert shelf.read("best").model["w"].item() == 20
    assert shelf.read("last").model["w"].item() == 100
    assert shelf.read("00000003").model["w"].item() == 3
    assert (shelf.run / "best").read_text() == "00000020.safetensors\n"


def test_a_pointer_taken_away_names_nothing(shelf: Shelf) -> None:
    shelf.point(BEST, numbered(20))
    shelf.point(BEST, None)
    assert shelf.named("best") is None


def test_an_unknown_checkpoint_is_an_error_that_lists_those_there_are(shelf: Shelf) -> None:
    shelf.point(LAST, numbered(100))
    with pytest.raises(AttlasError) as caught:
        shelf.read("best")
    assert caught.value.came == "a run that has last, 00000003, 00000020, 00000100"
    with pytest.raises(AttlasError, match=r"none yet; train it: attlas train .*other'$"):
        Shelf(shelf.run / "an other").read("last")


@pytest.mark.parametrize("text", ["", "00000007.safetensors", "../config", "best\x00"])
def test_a_pointer_to_nothing_is_an_error(shelf: Shelf, text: str) -> None:
    (shelf.run / "last").write_text(text)
    with pytest.raises(AttlasError, match="write one of these into it: 00000003, 00000020"):
        shelf.named("last")


def test_a_single_checkpoint_that_nothing_names_is_no_beginning(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    assert not shelf.begun()
    shelf.write(numbered(5), Checkpoint({}))
    assert not shelf.begun()
    shelf.point(BEST, numbered(5))
    assert shelf.begun()


def test_pruning_keeps_what_it_is_told_to_and_the_average(shelf: Shelf) -> None:
    shelf.write(AVERAGED, Checkpoint({}))
    shelf.prune({3, 100})
    assert shelf.names() == ["00000003", "00000100", "averaged"]


def test_forgetting_takes_later_ones_and_the_average(shelf: Shelf) -> None:
    shelf.write(AVERAGED, Checkpoint({}))
    shelf.forget_after(20)
    assert shelf.names() == ["00000003", "00000020"]


def test_leftovers_of_killed_writes_are_cleaned_away_and_nothing_else(shelf: Shelf) -> None:
    (shelf.run / "best.tmp").write_text("half")
    (shelf.folder / "00000200.safetensors.tmp").write_text("half")
    (shelf.run / "notes.txt").write_text("mine")
    (shelf.run / "notes.tmp").write_text("mine too")
    (shelf.run / "cache.tmp").mkdir()
    shelf.clean()
    assert (shelf.run / "cache.tmp").is_dir()
    assert sorted(path.name for path in shelf.run.rglob("*") if path.is_file()) == [
        "00000003.safetensors",
        "00000020.safetensors",
        "00000100.safetensors",
        "notes.tmp",
        "notes.txt",
    ]
