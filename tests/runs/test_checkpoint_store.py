"""The checkpoints of a run, and the names of the best and the last."""

from pathlib import Path

import pytest
import torch

from attlas.errors import AttlasError
from attlas.runs import AVERAGED, BEST, LAST, Checkpoint, CheckpointStore, numbered


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    store = CheckpointStore(tmp_path)
    for update in (20, 100, 3):
        store.write(numbered(update), Checkpoint({"w": torch.tensor([float(update)])}))
    return store


def test_checkpoints_are_listed_oldest_first_the_average_at_the_end(store: CheckpointStore) -> None:
    store.write(AVERAGED, Checkpoint({}))
    assert store.names() == ["00000003", "00000020", "00000100", "averaged"]
    assert store.numbered() == [3, 20, 100]


def test_more_than_eight_digits_keep_their_order(store: CheckpointStore) -> None:
    store.write(numbered(99_999_999), Checkpoint({}))
    store.write(numbered(100_000_000), Checkpoint({}))
    assert store.numbered() == [3, 20, 100, 99_999_999, 100_000_000]


def test_a_pointer_is_followed(store: CheckpointStore) -> None:
    store.point(BEST, numbered(20))
    store.point(LAST, numbered(100))
    assert store.read("best").model["w"].item() == 20
    assert store.read("last").model["w"].item() == 100
    assert store.read("00000003").model["w"].item() == 3
    assert (store.run / "best").read_text() == "00000020.safetensors\n"


def test_a_pointer_taken_away_names_nothing(store: CheckpointStore) -> None:
    store.point(BEST, numbered(20))
    store.point(BEST, None)
    assert store.named("best") is None


def test_an_unknown_checkpoint_is_an_error_that_lists_those_there_are(
    store: CheckpointStore,
) -> None:
    store.point(LAST, numbered(100))
    with pytest.raises(AttlasError) as caught:
        store.read("best")
    assert caught.value.got == "a run that has last, 00000003, 00000020, 00000100"
    with pytest.raises(AttlasError, match=r"none yet; train it: attlas train .*other'$"):
        CheckpointStore(store.run / "an other").read("last")


@pytest.mark.parametrize("text", ["", "00000007.safetensors", "../config", "best\x00"])
def test_a_pointer_to_nothing_is_an_error(store: CheckpointStore, text: str) -> None:
    (store.run / "last").write_text(text)
    with pytest.raises(AttlasError, match="write one of these into it: 00000003, 00000020"):
        store.named("last")


def test_a_single_checkpoint_that_nothing_names_is_no_beginning(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    assert not store.begun()
    store.write(numbered(5), Checkpoint({}))
    assert not store.begun()
    store.point(BEST, numbered(5))
    assert store.begun()


def test_pruning_keeps_what_it_is_reported_to_and_the_average(store: CheckpointStore) -> None:
    store.write(AVERAGED, Checkpoint({}))
    store.prune({3, 100})
    assert store.names() == ["00000003", "00000100", "averaged"]


def test_forgetting_takes_later_ones_and_the_average(store: CheckpointStore) -> None:
    store.write(AVERAGED, Checkpoint({}))
    store.forget_after(20)
    assert store.names() == ["00000003", "00000020"]


def test_leftovers_of_killed_writes_are_cleaned_away_and_nothing_else(
    store: CheckpointStore,
) -> None:
    (store.run / "best.tmp").write_text("half")
    (store.folder / "00000200.safetensors.tmp").write_text("half")
    (store.run / "notes.txt").write_text("mine")
    (store.run / "notes.tmp").write_text("mine too")
    (store.run / "cache.tmp").mkdir()
    store.clean()
    assert (store.run / "cache.tmp").is_dir()
    assert sorted(path.name for path in store.run.rglob("*") if path.is_file()) == [
        "00000003.safetensors",
        "00000020.safetensors",
        "00000100.safetensors",
        "notes.tmp",
        "notes.txt",
    ]
