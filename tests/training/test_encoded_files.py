"""A training whose pairs lie in files ends with the bits of one that holds them in memory."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attlas.config import write_toml
from attlas.data import FilesData, encoded_files, stored_pairs
from attlas.data.corpus import Corpus, SplitName
from attlas.data.encoded_files import ENCODED
from attlas.errors import AttlasError
from attlas.runs import Run
from attlas.training import Event, Recipe, train
from attlas.training.events import Preparing
from attlas.training.setup import join_run
from attlas.training.tasks import translation
from support.killed_trainings import differences, whole
from support.killed_trainings import recipe as toy
from support.warm_processes import ranks

HAS_FILES = ["files"]  # the run has a folder more, and nothing else is different

KILLED = """
import os, signal, sys
from pathlib import Path
from attlas.data import encoded_files, stored_pairs
from attlas.training import read_recipe, train

recipe, folder, moment = sys.argv[1:]
stored_pairs.IN_MEMORY, encoded_files.ROWS = 500, 64
name, number = moment.split()
function, calls = getattr(encoded_files, name), 0

def dying(*arguments):
    global calls
    calls += 1
    if calls == int(number):
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments)

setattr(encoded_files, name, dying)
train(read_recipe(recipe), Path(folder))
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, chance = tmp_path_factory.mktemp("pairs") / "pairs.tsv", random.Random(2)
    texts = [
        " ".join(map(str, chance.choices(range(9), k=chance.randint(1, 6)))) for _ in range(400)
    ]
    path.write_text("".join(f"{text}\t{text[::-1]}\n" for text in texts), encoding="utf-8")
    return path


def recipe(table: Path, updates: int, **changes: Any) -> Recipe:
    begun = toy(updates).tables()
    begun["data"] = {"kind": "files", "train": str(table), "held_back": 8}
    begun["vocabulary"] = {"kind": "bpe", "size": 300, "shared": False}
    for name, values in changes.items():
        begun[name] |= values
    return Recipe.read(begun, "the test")


@pytest.fixture
def _little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_pairs, "IN_MEMORY", 500)
    monkeypatch.setattr(encoded_files, "ROWS", 64)


@pytest.fixture(scope="module")
def in_memory(table: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return whole(tmp_path_factory.mktemp("held") / "run", recipe(table, 9))


def steps_of(recipe: Recipe, folder: Path) -> list[str]:
    """What a session reports before it starts."""
    reported: list[Event] = []
    train(recipe, folder, report=reported.append)
    return [event.what for event in reported if isinstance(event, Preparing)]


def unread(data: FilesData, split: SplitName) -> Corpus:
    """In place of `FilesData.corpus`."""
    assert split == "test", "the data is read"
    return read(data, split)


read = FilesData.corpus


def refuse() -> None:
    raise AssertionError("the data is read")


def test_little_data_leaves_no_files(table: Path, tmp_path: Path) -> None:
    train(recipe(table, 1), tmp_path)
    assert not (tmp_path / ENCODED).exists()


@pytest.mark.usefixtures("_little_memory")
def test_pairs_in_files_give_the_bits_of_pairs_in_memory(
    table: Path, tmp_path: Path, in_memory: dict[str, Any]
) -> None:
    found = whole(tmp_path / "run", recipe(table, 9))
    assert differences(found, in_memory) == HAS_FILES
    names = {path.name for path in (tmp_path / "run" / ENCODED).iterdir()}
    assert {"00000.ids", "00006.ids", "lines", "seal.json"} <= names


@pytest.mark.usefixtures("_little_memory")
def test_a_session_that_goes_on_reads_no_text(
    table: Path, tmp_path: Path, in_memory: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    train(recipe(table, 4), tmp_path / "run")
    monkeypatch.setattr(FilesData, "load", refuse)
    monkeypatch.setattr(FilesData, "corpus", unread)
    found = whole(tmp_path / "run", recipe(table, 9))
    assert differences(found, in_memory) == HAS_FILES
    (step,) = steps_of(recipe(table, 10), tmp_path / "run")
    assert step == f"the 392 training pairs are encoded in {tmp_path / 'run' / ENCODED}"
    monkeypatch.setattr(encoded_files, "sha256_of", refuse)  # nor does another process of it
    monkeypatch.setattr(FilesData, "fingerprint", refuse)
    task = join_run(recipe(table, 10), tmp_path / "run", opened=True)
    assert len(task.splits.train) == 392


@pytest.mark.usefixtures("_little_memory")
def test_data_that_has_changed_is_noticed(table: Path, tmp_path: Path) -> None:
    copy = tmp_path / "pairs.tsv"
    shutil.copyfile(table, copy)
    train(recipe(copy, 1), tmp_path / "run")
    os.utime(copy, (0, 0))  # which changes nothing
    train(recipe(copy, 2), tmp_path / "run")
    text = copy.read_text(encoding="utf-8")
    copy.write_text(text[:-2] + ("1" if text[-2] == "2" else "2") + "\n", encoding="utf-8")
    with pytest.raises(AttlasError, match=r"the (train|valid) data with which .* began"):
        train(recipe(copy, 3), tmp_path / "run")
    copy.unlink()
    with pytest.raises(AttlasError, match="no file at"):
        train(recipe(copy, 3), tmp_path / "run")


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("when", ["while it is read", "after it was read"])
def test_data_that_changes_in_the_first_session_is_noticed(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    copy, reversed_copy = tmp_path / "pairs.tsv", tmp_path / "reversed.tsv"
    shutil.copyfile(table, copy)
    lines = copy.read_text(encoding="utf-8").splitlines(keepends=True)
    reversed_copy.write_text("".join(lines[::-1]), encoding="utf-8")
    while_read = when == "while it is read"
    owner, name = (FilesData, "load") if while_read else (translation, "build_vocabularies")
    real = getattr(owner, name)

    def changing(*arguments: Any) -> Any:
        result = real(*arguments)
        shutil.copyfile(reversed_copy, copy)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, changing)
        steps = steps_of(recipe(copy, 1), tmp_path / "run")
    assert ("the data changed while it was read" in steps[0]) == while_read
    with pytest.raises(AttlasError, match=r"the (train|valid) data with which .* began"):
        train(recipe(copy, 2), tmp_path / "run")


@pytest.mark.usefixtures("_little_memory")
def test_data_that_has_moved_is_read_and_its_files_are_used(
    table: Path, tmp_path: Path, in_memory: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    train(recipe(table, 4), tmp_path / "run")
    copy = tmp_path / "moved.tsv"
    shutil.copyfile(table, copy)
    monkeypatch.setattr("attlas.training.reading.write_encoded", refuse)
    found = whole(tmp_path / "run", recipe(copy, 9))
    assert differences(found, in_memory) == HAS_FILES


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize(
    ("damage", "reported"),
    [
        (lambda folder: (folder / "00002.ids").unlink(), "00002.ids: no such file"),
        (lambda folder: (folder / "00002.ids").write_bytes(b"12"), "00002.ids has another size"),
        (lambda folder: (folder / "seal.json").unlink(), "has no seal.json"),
        (lambda folder: (folder / "seal.json").write_text("{}"), "seal.json is damaged"),
        (lambda folder: folder.rename(folder.with_name("encoded.tmp")), ""),
    ],
)
def test_damaged_files_are_named_and_made_again(
    table: Path,
    tmp_path: Path,
    in_memory: dict[str, Any],
    damage: Callable[[Path], object],
    reported: str,
) -> None:
    train(recipe(table, 4), tmp_path / "run")
    folder = tmp_path / "run" / ENCODED
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    damage(folder)
    steps = steps_of(recipe(table, 6), tmp_path / "run")
    if reported:
        assert reported in steps[0]
        assert "encoding the training pairs again" in steps[0]
    assert steps[-2] == "encoding the 392 training pairs"
    assert steps[-1].startswith("encoding in 1 process, into ")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not (tmp_path / "run" / "encoded.tmp").exists()
    assert differences(whole(tmp_path / "run", recipe(table, 9)), in_memory) == HAS_FILES


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize("moment", ["_name 3", "_put 1", "_put 4", "_facts 2", "_checksum 1"])
def test_a_kill_while_they_are_written_leaves_nothing_that_is_trusted(
    table: Path, tmp_path: Path, in_memory: dict[str, Any], moment: str
) -> None:
    run, path = tmp_path / "run", tmp_path / "recipe.toml"
    path.write_text(write_toml(recipe(table, 4).tables()), encoding="utf-8")
    train(recipe(table, 4), run)
    shutil.rmtree(run / ENCODED)
    for folder in (run, tmp_path / "new"):  # a run that goes on, and one that begins
        ended = subprocess.run(
            [sys.executable, "-c", KILLED, str(path), str(folder), moment],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        # A run that has its four updates does not write anything else.
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert not (folder / ENCODED).exists()
        assert (folder / "encoded.tmp").is_dir()
        assert differences(whole(folder, recipe(table, 9)), in_memory) == HAS_FILES
        assert not (folder / "encoded.tmp").exists()
        assert (folder / ENCODED / "seal.json").is_file()


RANKS = """
import os, sys, time
from pathlib import Path
from attlas.data import FilesData, encoded_files, stored_pairs
from attlas.training import read_recipe, reading, setup, train

recipe, folder = sys.argv[1:]
rank = os.environ["RANK"]
stored_pairs.IN_MEMORY, encoded_files.ROWS = 500, 64
write, mapped = reading.write_encoded, encoded_files._mapped

def slowly(*arguments):
    print(rank, "writes", flush=True)
    time.sleep(1)
    write(*arguments)

def told(path, dtype):
    print(rank, "maps", path.name, flush=True)
    return mapped(path, dtype)

def refuse(*arguments):
    raise AssertionError("not the first process reads the data, or changes the files")

reading.write_encoded, encoded_files._mapped = slowly, told
if rank != "0":
    FilesData.load = FilesData.fingerprint = encoded_files.sha256_of = refuse
    reading.forget_encoded = setup.forget_encoded = refuse
train(read_recipe(recipe), Path(folder))
"""


@pytest.mark.usefixtures("_little_memory")
def test_of_several_processes_the_first_writes_and_the_others_map_its_files(
    table: Path, tmp_path: Path
) -> None:
    path = tmp_path / "recipe.toml"
    for updates in (4, 6):  # a run that begins, and one that goes on
        path.write_text(write_toml(recipe(table, updates).tables()), encoding="utf-8")
        codes, printed = ranks(2, path, tmp_path / "two", code=RANKS)
        assert codes == [0, 0], printed
        said = printed.splitlines()
        assert [line for line in said if line.endswith("writes")] == ["0 writes"][: updates < 6]
        files = [{line for line in said if line.startswith(f"{n} maps")} for n in range(2)]
        assert {line.split()[-1] for line in files[0]} == {line.split()[-1] for line in files[1]}
        assert "1 maps 00006.ids" in files[1]
        assert "1 maps target.lengths" in files[1]
    train(recipe(table, 6, training={"threads": 2}), tmp_path / "one")
    assert [event["loss"] for event in Run(tmp_path / "two").events() if "loss" in event] == [
        event["loss"] for event in Run(tmp_path / "one").events() if "loss" in event
    ]


@pytest.mark.usefixtures("_little_memory")
def test_segmentations_that_are_drawn_come_from_the_text(table: Path, tmp_path: Path) -> None:
    drawn = {"vocabulary": {"sampling": 0.2}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_pairs, "IN_MEMORY", 2**20)
        held = whole(tmp_path / "held", recipe(table, 40, **drawn))
    train(recipe(table, 30, **drawn), tmp_path / "run")
    assert differences(whole(tmp_path / "run", recipe(table, 40, **drawn)), held) == []
    assert not (tmp_path / "run" / ENCODED).exists()


@pytest.mark.usefixtures("_little_memory")
def test_the_seal_says_what_the_files_were_made_of(table: Path, tmp_path: Path) -> None:
    train(recipe(table, 1), tmp_path)
    seal = json.loads((tmp_path / ENCODED / "seal.json").read_text(encoding="ascii"))["seal"]
    provenance = json.loads((tmp_path / "provenance.json").read_text(encoding="utf-8"))
    for split in ("train", "valid"):
        assert seal[split]["sha256"] == provenance["data"][split]["sha256"]
    assert set(seal["made_of"]["vocabularies"]) == {"source.model", "target.model"}
    assert list(seal["made_of"]["data"]["files"]) == [str(table)]


@pytest.mark.usefixtures("_little_memory")
def test_a_saved_run_has_no_files_of_its_training_data(table: Path, tmp_path: Path) -> None:
    train(recipe(table, 1), tmp_path / "run")
    Run(tmp_path / "run").save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved" / ENCODED).exists()


def test_want_of_memory_names_the_step(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("attlas.training.tasks.translation.build_vocabularies", no_memory)
    with pytest.raises(
        AttlasError, match="enough memory for building vocabularies from the 392 training pairs"
    ):
        train(recipe(table, 1), tmp_path / "run")
