"""A run that is stopped or killed at any moment ends as one that was never disturbed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import torch

from attlas.cli.train import train as train_command
from attlas.config import write_toml
from attlas.errors import AttlasError
from attlas.ops import linear
from attlas.runs import AVERAGED, BEST, LAST, Checkpoint, CheckpointStore, Run, numbered
from attlas.training import Event, Interrupted, Recipe, Report, Trained, precision, train
from attlas.training.events import Preparing, Started
from support.killed_trainings import differences, recipe, whole
from support.warm_processes import WarmProcess

PLAIN = {"kind": "none"}
DRIVER = Path(__file__).resolve().parents[1] / "support" / "killed_trainings.py"


def killed(what: str, folder: Path) -> dict[str, Any]:
    """Run the driver, whose children die; its report."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(DRIVER), what, str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_run_killed_at_twenty_random_moments_ends_with_the_same_bits(tmp_path: Path) -> None:
    report = killed("moments", tmp_path)
    assert report["killed"] >= 20
    assert report["wrong"] == []


@pytest.mark.slow
def test_a_run_killed_after_any_file_operation_ends_with_the_same_bits(tmp_path: Path) -> None:
    report = killed("operations", tmp_path)
    assert report["killed"] > 50
    assert {"open", "write", "fsync", "replace", "unlink"} <= set(report["operations"])
    assert report["wrong"] == []


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard, also where the whole suite ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return whole(tmp_path_factory.mktemp("undisturbed"), recipe(12))


@pytest.mark.parametrize("stop", [1, 2, 5, 8])
def test_a_run_whose_limit_is_raised_goes_on_as_if_it_had_been_so_from_the_start(
    tmp_path: Path, undisturbed: dict[str, Any], stop: int
) -> None:
    train(recipe(stop), tmp_path)
    found = whole(tmp_path, recipe(12))
    assert differences(found, undisturbed) == []


@pytest.mark.usefixtures("_ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stop", [1, 4, 9])
def test_ctrl_c_saves_this_very_update_and_the_run_goes_on_to_the_same_bits(
    tmp_path: Path, undisturbed: dict[str, Any], stop: int, number: signal.Signals
) -> None:
    before = signal.getsignal(number)
    reported: list[Event] = []

    def press(event: Event) -> None:
        reported.append(event)
        if isinstance(event, Trained) and event.update == stop:
            os.kill(os.getpid(), number)

    with pytest.raises(KeyboardInterrupt):
        train(recipe(12, log_every=1), tmp_path, report=press)
    assert signal.getsignal(number) == before
    assert Run(tmp_path).store.numbered()[-1] == stop
    assert [type(event) for event in reported].count(Interrupted) == 1
    found = whole(tmp_path, recipe(12))
    assert set(differences(found, undisturbed)) <= {"events"}  # it was told more often


def test_a_run_goes_on_in_the_numbers_it_began_in_on_whatever_processor(
    tmp_path: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "_LEAST_HALVES", 0)
    monkeypatch.setattr(precision, "has_bf16_instructions", lambda: True)
    expected = whole(tmp_path / "whole", recipe(12, autocast="auto"))
    train(recipe(5, autocast="auto"), tmp_path / "run")
    monkeypatch.setattr(precision, "has_bf16_instructions", lambda: False)
    found = whole(tmp_path / "run", recipe(12, autocast="auto"))
    assert differences(found, expected) == []
    assert "last" in differences(found, undisturbed)
    started = [event for event in Run(tmp_path / "run").events() if event["event"] == "started"]
    assert [event["numbers"] for event in started] == ["bfloat16"] * 2
    assert "no instructions for bfloat16" in " ".join(started[-1]["notes"])


def everything(updates: int) -> Recipe:
    """What `recipe` leaves out: LSTM, subwords drawn anew, the mean of the last, Muon."""
    tables = recipe(
        updates,
        save_every=2,
        keep_last=3,
        optimizer={"kind": "muon", "weight_decay": 0.01},
        averaging={"kind": "last", "count": 2},
        scheduled_sampling={"kind": "linear", "start": 0.9, "slope": 0.05, "floor": 0.4},
        validation={"every": 3, "decoding": {"max_len_a": 1.0}},
    ).tables()
    tables["vocabulary"] = {"kind": "unigram", "size": 280, "sampling": 0.2}
    tables["model"] = {
        "kind": "recurrent", "cell": "lstm", "layers": 2, "embed_dim": 8, "hidden_dim": 8,
        "encoder_hidden_dim": 8, "dropout": 0.3, "attention_dropout": 0.1,
    }  # fmt: skip
    return Recipe.model_validate(tables)


@pytest.mark.slow
@pytest.mark.usefixtures("_ctrl_c")
def test_a_run_with_everything_that_is_drawn_stops_in_every_way_and_ends_with_the_same_bits(
    tmp_path: Path,
) -> None:
    undisturbed = whole(tmp_path / "undisturbed", everything(16))
    disturbed = tmp_path / "disturbed"

    def press_at(update: int) -> Report:
        def press(event: Event) -> None:
            if isinstance(event, Trained) and event.update == update:
                os.kill(os.getpid(), signal.SIGINT)

        return press

    train(everything(3), disturbed)
    with pytest.raises(KeyboardInterrupt):
        train(everything(16), disturbed, report=press_at(6))
    train(everything(7), disturbed)
    with pytest.raises(KeyboardInterrupt):
        train(everything(16), disturbed, report=press_at(10))
    train(everything(13), disturbed)
    assert Run(disturbed).store.numbered()[-1] == 13
    assert differences(whole(disturbed, everything(16)), undisturbed) == []


@pytest.mark.usefixtures("_ctrl_c")
def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)

    def press_twice(event: Event) -> None:
        if isinstance(event, Trained):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.7)  # one that follows at once counts as the first
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(recipe(12), tmp_path, report=press_twice)
    assert Run(tmp_path).checkpoints() == []
    assert signal.getsignal(signal.SIGINT) is before


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(tmp_path: Path) -> None:
    reported: list[Event] = []

    def press(event: Event) -> None:
        reported.append(event)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert train(recipe(2), tmp_path, report=press).update == 2
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C was heard")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not any(isinstance(event, Interrupted) for event in reported)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, print])
def test_sigterm_that_somebody_handles_is_left_to_them(tmp_path: Path, handler: Any) -> None:
    here: list[object] = []
    before = signal.signal(signal.SIGTERM, handler)
    try:
        train(recipe(1), tmp_path, report=lambda _: here.append(signal.getsignal(signal.SIGTERM)))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert set(here) == {handler}


def test_a_finished_run_is_left_as_it_is_and_tells_its_outcome_again(tmp_path: Path) -> None:
    first = train(recipe(3), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert train(recipe(3), tmp_path) == first
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_finished_run_that_another_limit_ends_now_tells_that_one(tmp_path: Path) -> None:
    once = train(recipe(100, max_epochs=1), tmp_path / "once")
    run = tmp_path / "run"
    assert (once.reason, train(recipe(once.update), run).reason) == ("max_epochs", "max_steps")
    again = train(recipe(100, max_epochs=1), run)
    assert (again.reason, again.update, again.best) == ("max_epochs", once.update, once.best)


def test_training_leaves_the_random_numbers_of_the_caller_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(recipe(2), tmp_path)
    assert torch.equal(torch.rand(3), expected)


def changed(settings: dict[str, Any]) -> Recipe:
    """The recipe with some tables changed: {"training.learning_rate": 1.0}."""
    tables = recipe(3).tables()
    for name, value in settings.items():
        *path, key = name.split(".")
        table = tables
        for part in path:
            table = table[part]
        table[key] = value
    return Recipe.model_validate(tables)


def test_another_recipe_on_the_same_folder_is_an_error_that_names_the_differences(
    tmp_path: Path,
) -> None:
    train(recipe(3), tmp_path)
    other = changed(
        {"training.learning_rate": 1.0, "model.hidden_dim": 9, "training.max_epochs": 7}
    )
    with pytest.raises(AttlasError) as caught:
        train(other, tmp_path)
    assert (
        caught.value.got
        == "model.hidden_dim = 9 instead of 8; training.learning_rate = 1.0 instead of 0.001"
    )


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_a_folder_in_which_nothing_was_trained_begins_anew_with_another_recipe(
    tmp_path: Path, kind: str
) -> None:
    tables = recipe(3).tables()
    vocabulary = {"kind": kind, "size": 300, "shared": kind == "words"}
    wrong = {**tables, "vocabulary": vocabulary, "batching": {"max_length": 1, "max_tokens": 64}}
    wrong["data"] = {**tables["data"], "length": [4, 5]}
    with pytest.raises(AttlasError, match="at least one pair of at most 1 token in"):
        train(Recipe.model_validate(wrong), tmp_path / "run")
    found, reported = tmp_path / "run", []
    train(recipe(3), found, report=reported.append)
    assert reported[0].what == f"no checkpoint yet in {found}: starting over"
    assert differences(whole(found, recipe(3)), whole(tmp_path / "alone", recipe(3))) == []
    expected = Run(tmp_path / "alone")
    assert Run(found).config == expected.config
    assert Run(found).provenance()["data"] == expected.provenance()["data"]


def test_a_run_killed_before_its_first_checkpoint_says_that_it_starts_over(tmp_path: Path) -> None:
    def die(event: Event) -> None:
        if isinstance(event, Trained):
            raise SystemExit

    with pytest.raises(SystemExit):
        train(recipe(3), tmp_path, report=die)
    assert Run(tmp_path).events()
    reported: list[Event] = []
    train(recipe(3), tmp_path, report=reported.append)
    notes = [event.what for event in reported if isinstance(event, Preparing)]
    assert notes[0] == f"no checkpoint yet in {tmp_path}: starting over"
    assert [event["event"] for event in Run(tmp_path).events()].count("started") == 1
    reported.clear()
    train(recipe(4), tmp_path, report=reported.append)
    assert not any("no checkpoint" in e.what for e in reported if isinstance(e, Preparing))


def test_data_that_cannot_be_read_leaves_no_folder_behind(tmp_path: Path) -> None:
    begun = recipe(1).tables()
    missing = {"kind": "files", "train": ["no.en", "no.de"], "valid": ["no.en", "no.de"]}
    missing["test"] = missing["train"]
    with pytest.raises(AttlasError):
        train(Recipe.model_validate({**begun, "data": missing}), tmp_path / "deep" / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_ctrl_c")
@pytest.mark.parametrize("averaging", [{"kind": "last", "count": 2}, {"kind": "none"}])
def test_what_is_saved_against_a_kill_counts_neither_for_the_average_nor_for_what_is_kept(
    tmp_path: Path, averaging: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    validation = {"every": 4, "translate": False}
    expected = recipe(11, averaging=averaging, validation=validation)
    alone = whole(tmp_path / "alone", expected)  # eleven updates are too few for one
    monkeypatch.setattr("attlas.training.trainer.SAFETY", 3)
    store, there = Run(tmp_path / "alone").store, {}

    def look(event: Event) -> None:
        if isinstance(event, Trained):  # before what is saved after that update
            there[event.update] = store.numbered()
            if event.update == 10 and not (tmp_path / "killed").exists():
                shutil.copytree(store.run, tmp_path / "killed")  # what a kill would leave

    found = tmp_path / "found"
    store.run, store.folder = found, found / "checkpoints"
    train(recipe(11, averaging=averaging, validation=validation, log_every=1), found, report=look)
    kept = Run(found).store.read("last").facts["saved"]
    assert kept == [4, 8]
    assert there[4] == [3]
    assert 3 not in there[5]
    assert there[10][-1] == 9
    assert set(differences(whole(found, expected), alone)) <= {"events"}  # it was told more often
    assert Run(tmp_path / "killed").store.named("last") == "00000009"
    assert set(differences(whole(tmp_path / "killed", expected), alone)) <= {"events"}


def test_saving_as_often_as_the_recipe_says_counts_for_the_average(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attlas.training.trainer.SAFETY", 1)
    begun = recipe(7, save_every=3, averaging=PLAIN, validation={"every": 5, "translate": False})
    train(begun, tmp_path)
    assert Run(tmp_path).store.read("last").facts["saved"] == [5, 6]


def sampling(kind: str, training: dict[str, Any]) -> Recipe:
    tables = recipe(12, **training).tables()
    tables["vocabulary"] = {"kind": kind, "size": 300, "sampling": 0.3}
    return Recipe.model_validate(tables)


@pytest.mark.usefixtures("_ctrl_c")
@pytest.mark.parametrize(
    ("kind", "training"),
    [
        ("bpe", {}),
        ("unigram", {}),
        ("bpe", {"scheduled_sampling": {"kind": "constant"}, "rdrop_alpha": 2.0}),
    ],
    ids=["bpe", "unigram", "R-Drop"],
)
def test_a_run_that_samples_its_subwords_stops_in_another_process_and_ends_with_the_same_bits(
    tmp_path: Path, kind: str, training: dict[str, Any]
) -> None:
    program = (
        "import json, os, signal, sys\n"
        "from attlas.training import Recipe, Trained, train\n"
        "def press(event):\n"
        "    if isinstance(event, Trained) and event.update == 4:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n"
        "    train(Recipe.model_validate(json.loads(sys.argv[1])), sys.argv[2], report=press)\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped')\n"
    )
    begun = sampling(kind, training)
    arguments = [json.dumps(begun.tables()), tmp_path / "stopped"]
    with WarmProcess(*arguments, code=program, stdout=PIPE) as process:
        assert process.printed() == "stopped\n"
    assert process.returncode == 0
    found = whole(tmp_path / "stopped", begun)
    assert differences(found, whole(tmp_path / "undisturbed", begun)) == []


def test_other_data_on_the_same_folder_is_an_error(tmp_path: Path) -> None:
    train(recipe(3), tmp_path)
    with pytest.raises(AttlasError, match=r"the train data with which .* began \(90 pairs"):
        train(changed({"data.train": 91}), tmp_path)


@pytest.mark.parametrize("name", ["thesis.tex", "source.json", "target.model"])
def test_a_folder_of_something_else_is_an_error_and_stays_as_it_was(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(AttlasError, match=f"holds {name}; choose another folder"):
        train(recipe(1), tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_a_damaged_last_checkpoint_is_an_error_that_names_it_and_the_way_out(
    tmp_path: Path,
) -> None:
    train(recipe(6, save_every=2), tmp_path)
    broken = tmp_path / "checkpoints" / "00000006.safetensors"
    broken.write_bytes(broken.read_bytes()[:-100])
    with pytest.raises(AttlasError, match=r"00000006\.safetensors.*write 00000004 into "):
        train(recipe(8, save_every=2), tmp_path)


def test_the_way_out_of_a_damaged_checkpoint_leads_to_the_same_bits(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    train(recipe(6), tmp_path)
    names = [int(name) for name in Run(tmp_path).checkpoints() if name.isdecimal()]
    (tmp_path / "last").write_text(f"{names[0]:08d}\n")
    found = whole(tmp_path, recipe(12))
    assert differences(found, undisturbed) == []


def test_the_way_out_of_a_damaged_checkpoint_names_no_best_that_is_gone(tmp_path: Path) -> None:
    settings = {"keep_last": 2, "validation": {"every": 2, "decoding": {"max_len_a": 1.0}}}
    train(recipe(6, **settings), tmp_path)
    store = CheckpointStore(tmp_path)
    gone_back = store.read("00000004")
    facts = {**gone_back.facts, "best_update": 2, "saved": [2, 4]}  # of which 2 was pruned
    store.write("00000004", replace(gone_back, facts=facts))
    (tmp_path / "last").write_text("00000004\n")
    (tmp_path / "checkpoints" / "00000002.safetensors").unlink(missing_ok=True)
    outcome = train(recipe(5, **settings), tmp_path)  # it ends before a validation of its own
    assert outcome.checkpoint in Run(tmp_path).checkpoints()
    assert store.named("best") == outcome.checkpoint


def test_checkpoints_without_the_file_last_are_never_overwritten(tmp_path: Path) -> None:
    train(recipe(6, save_every=2), tmp_path)
    (tmp_path / "last").unlink()
    with pytest.raises(AttlasError, match="the file `last`"):
        train(recipe(8, save_every=2), tmp_path)


def test_an_average_that_last_names_is_nothing_to_go_on_from(tmp_path: Path) -> None:
    train(recipe(6, save_every=2), tmp_path)
    (tmp_path / "last").write_text("averaged.safetensors\n")
    before = {path: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()}
    with pytest.raises(
        AttlasError,
        match=r"a checkpoint that a training can go on from; got 'averaged' in .*last; write the "
        "name of a numbered checkpoint into it",
    ):
        train(recipe(8, save_every=2), tmp_path)
    assert {path: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()} == before


@pytest.mark.usefixtures("_ctrl_c")
@pytest.mark.parametrize(
    ("name", "said"),
    [("00000003", ["update 3 is saved: the same command continues from it"]), ("averaged", [])],
)
def test_ctrl_c_speaks_of_what_is_saved_where_a_training_can_go_on_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: list[str]
) -> None:
    begun, store = tmp_path / "my.toml", CheckpointStore(tmp_path / "run")
    begun.write_text(write_toml(recipe(6).tables()))

    def interrupted(chosen: Recipe, folder: Path, *, report: Report) -> None:
        folder.mkdir()
        store.write(name, Checkpoint({"weight": torch.zeros(1)}))
        store.point(LAST, name)
        report(
            Started(
                update=0, epoch=0, seconds=0.0, parameters=1, pairs=1, batches=1, device="cpu",
                notes=(),
            )
        )  # fmt: skip
        raise KeyboardInterrupt

    monkeypatch.setattr("attlas.training.train", interrupted)
    monkeypatch.setattr("attlas._hardware.disable_malloc_trim", lambda: True)
    with pytest.raises(KeyboardInterrupt) as caught:
        train_command(str(begun), store.run)
    assert getattr(caught.value, "__notes__", []) == said


@pytest.mark.parametrize(
    ("left", "advice"),
    [
        ("best", "write one of these into it: 00000006$"),
        ("averaged", "an average cannot be trained on"),
    ],
)
def test_a_single_checkpoint_that_somebody_was_given_is_never_trained_away(
    tmp_path: Path, left: str, advice: str
) -> None:
    train(recipe(6, save_every=2), tmp_path)
    store = Run(tmp_path).store
    store.write(AVERAGED, Checkpoint(store.read("last").model))
    name = AVERAGED if left == "averaged" else numbered(6)
    store.point(BEST, name)
    for other in set(store.names()) - {name}:
        store.path(other).unlink()
    (tmp_path / "last").unlink()
    (kept,) = (tmp_path / "checkpoints").iterdir()
    before = kept.read_bytes()
    with pytest.raises(AttlasError, match=f"the file `last`.*{advice}"):
        train(recipe(8, save_every=2), tmp_path)
    assert kept.read_bytes() == before


def test_two_trainings_of_one_folder_at_once_are_an_error(tmp_path: Path) -> None:
    def again(event: Event) -> None:
        if isinstance(event, Trained):
            train(recipe(4), tmp_path)

    with pytest.raises(AttlasError, match="another process is training right now"):
        train(recipe(4), tmp_path, report=again)
    train(recipe(4), tmp_path)
