"""A whole training: its folder, its events, its end."""

import io
import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from attlas._hardware import processor_name
from attlas.data import BatchingConfig
from attlas.errors import AttlasError
from attlas.models import build
from attlas.runs import Run
from attlas.training import (
    Event,
    Interrupted,
    Progress,
    Recipe,
    Trained,
    Validated,
    evaluate,
    read_recipe,
    train,
    validation_loss,
)
from attlas.training.events import Started
from attlas.training.learner import Learner
from attlas.training.logging import MetricsFile
from attlas.training.progress import duration
from attlas.training.setup import prepare_run
from attlas.training.tasks.translation import TranslationTask
from attlas.training.trainer import note_unused_memory
from support.killed_trainings import recipe

PLAIN = {"kind": "none"}


def changed(begun: Recipe, **tables: Any) -> Recipe:
    return Recipe.model_validate({**begun.tables(), **tables})


def test_a_folder_holds_everything_that_a_run_is(tmp_path: Path) -> None:
    outcome = train(recipe(6), tmp_path / "deep" / "run")
    assert outcome.path == tmp_path / "deep" / "run"
    assert (outcome.update, outcome.reason, outcome.criterion) == (6, "max_steps", "accuracy")
    run = Run(outcome.path)
    assert Recipe.read(run.config, "config.toml") == recipe(6)
    assert run.checkpoints()[-2:] == ["00000006", "averaged"]
    assert run.store.named("last") == "00000006"
    assert run.store.named("best") == outcome.checkpoint
    facts = run.provenance()
    assert facts["seed"] == 3
    assert facts["processor"] == processor_name()
    assert facts["data"]["train"]["pairs"] == 90
    assert len(facts["data"]["valid"]["sha256"]) == 64
    run.model("best")
    run.model("averaged")


def test_what_is_reported_is_what_is_written_down(tmp_path: Path) -> None:
    reported: list[Event] = []
    train(recipe(6), tmp_path, report=reported.append)
    assert reported.pop(0).kind == "preparing"  # for people alone
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        json.loads(json.dumps(event.record())) for event in reported
    ]
    assert reported[0].kind == "started"
    assert [event.update for event in reported if isinstance(event, Trained)] == [2, 4, 6]
    scored = [event for event in reported if isinstance(event, Validated)]
    assert all("tok:13a" in (event.signature or "") for event in scored)


def test_the_best_checkpoint_is_the_one_with_the_best_validation(tmp_path: Path) -> None:
    reported: list[Event] = []
    begun = recipe(
        12, averaging=PLAIN, validation={"every": 2, "translate": False}, learning_rate=0.05
    )
    outcome = train(begun, tmp_path, report=reported.append)
    scored = [event for event in reported if isinstance(event, Validated)]
    assert len(scored) == 6
    best = min(scored, key=lambda event: event.loss)
    assert outcome.best == best.loss
    assert outcome.checkpoint == best.checkpoint == Run(tmp_path).store.named("best")
    assert [event.best for event in scored] == [
        event.loss < min([e.loss for e in scored[:place]], default=float("inf"))
        for place, event in enumerate(scored)
    ]


def test_the_last_checkpoints_and_the_best_are_kept_and_no_more(tmp_path: Path) -> None:
    # A rate this high makes every later validation worse than the first.
    begun = recipe(
        10,
        averaging=PLAIN,
        learning_rate=3.0,
        validation={"every": 2, "translate": False},
        keep_last=2,
    )
    outcome = train(begun, tmp_path)
    kept = {"00000008", "00000010", outcome.checkpoint}
    assert set(Run(tmp_path).checkpoints()) == kept


def test_training_stops_when_validation_no_longer_gets_better(tmp_path: Path) -> None:
    validation = {"every": 1, "translate": False, "patience": 3}
    reported: list[Event] = []
    begun = recipe(200, averaging=PLAIN, learning_rate=2.0, validation=validation)
    outcome = train(begun, tmp_path, report=reported.append)
    scored = [event for event in reported if isinstance(event, Validated)]
    assert outcome.reason == "patience"
    assert outcome.update < 200
    assert [event.best for event in scored[-4:]] == [True, False, False, False]


def test_the_measured_average_is_the_mean_of_the_last_checkpoints(tmp_path: Path) -> None:
    begun = recipe(
        6, save_every=2, keep_last=3, averaging={"kind": "last", "count": 2},
        validation={"every": 3, "translate": False},
    )  # fmt: skip
    reported: list[Event] = []
    train(begun, tmp_path, report=reported.append)
    store = Run(tmp_path).store
    assert store.numbered()[-2:] == [4, 6]
    one, two = (store.read(f"{update:08d}").model for update in (4, 6))
    average = store.read("averaged").model
    for name, tensor in average.items():
        assert torch.allclose(tensor, (one[name] + two[name]) / 2, atol=1e-7)
    measured = [e for e in reported if isinstance(e, Validated) and e.checkpoint == "averaged"]
    assert len(measured) == 1
    vocabularies = Run(tmp_path).vocabularies()
    task = TranslationTask(begun, begun.data.load(), vocabularies)
    loss = validation_loss(Run(tmp_path).model("averaged"), task.valid_batches)
    assert loss == pytest.approx(measured[0].loss)


def test_validation_loss_is_the_mean_over_all_real_tokens(tmp_path: Path) -> None:
    train(recipe(2), tmp_path)
    model = Run(tmp_path).model("last").double()
    task = TranslationTask(recipe(2), recipe(2).data.load(), Run(tmp_path).vocabularies())
    batch = task.valid_batches.batch(range(8))
    with torch.no_grad():
        logits = model(batch.source, batch.decoder_input, token_mask=batch.source_mask)[
            batch.expected_mask
        ]
    expected = torch.nn.functional.cross_entropy(logits, batch.expected[batch.expected_mask])
    assert validation_loss(model, task.valid_batches) == pytest.approx(expected.item())
    assert not model.training


def test_an_epoch_sees_every_pair_once_also_when_the_last_group_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, ...]] = []
    token_mask = Learner.update

    def watched(self: Learner[Any, Any], shares: Any, number: int) -> Any:
        seen.extend(batch.indices for share in shares for batch in share)
        return token_mask(self, shares, number)

    monkeypatch.setattr(Learner, "update", watched)
    begun = recipe(99, gradient_accumulation_steps=3, validation={"translate": False}, max_epochs=2)
    outcome = train(begun, tmp_path)
    assert outcome.reason == "max_epochs"
    places = sorted(place for indices in seen for place in indices)
    assert places == sorted([*range(90)] * 2)
    half = len(seen) // 2
    assert half % 3 != 0
    assert seen[:half] != seen[half:]


def test_a_time_limit_stops_without_changing_the_way(tmp_path: Path) -> None:
    begun = recipe(8)
    train(begun, tmp_path / "whole")
    timed = Recipe.model_validate(
        {**begun.tables(), "training": {**begun.tables()["training"], "max_minutes": 1e-9}}
    )
    outcome = train(timed, tmp_path / "parts")
    assert outcome.reason == "max_minutes"
    assert outcome.update == 0
    train(begun, tmp_path / "parts")
    one, other = (Run(tmp_path / name).store.read("last") for name in ("whole", "parts"))
    assert all(torch.equal(t, other.model[name]) for name, t in one.model.items())


def notes(begun: Recipe, folder: Path) -> str:
    reported: list[Event] = []
    train(begun, folder, report=reported.append)
    (first,) = (event for event in reported if isinstance(event, Started))
    return "\n".join(first.notes)


def test_the_pairs_that_a_training_begins_with_are_those_that_are_trained_on(
    tmp_path: Path,
) -> None:
    tables = recipe(1).tables()
    tables["batching"] |= {"max_length": 4, "overlong": "skip"}
    begun = Recipe.model_validate(tables)
    task, reported = prepare_run(begun, tmp_path), list[Event]()
    trained = sum(map(len, task.batches(0).epoch(0)))
    assert 0 < trained < len(task.splits.train)
    train(begun, tmp_path, report=reported.append)
    (first,) = (event for event in reported if isinstance(event, Started))
    assert first.pairs == trained


def test_targets_without_spaces_between_words_are_noted_at_the_start(tmp_path: Path) -> None:
    lines = ["a b\tฉันชอบแมวมาก\n", "c d\tฉันชอบหมามาก\n"]
    path = tmp_path / "thai.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    tables = recipe(1).tables()
    tables["data"] = {"kind": "files", "train": str(path), "valid": str(path)}
    tables["vocabulary"] = {"kind": "characters"}
    unfit = prepare_run(Recipe.model_validate(tables), tmp_path / "words")
    reported = "\n".join(unfit.notes(unfit.batches(0)))
    assert 'set training.validation.bleu_tokenizer = "char"' in reported
    tables["training"]["validation"] = {"bleu_tokenizer": "char"}
    fit = prepare_run(Recipe.model_validate(tables), tmp_path / "characters")
    assert "bleu_tokenizer" not in "\n".join(fit.notes(fit.batches(0)))


def test_a_schedule_that_is_longer_than_the_training_is_noted_at_the_start(tmp_path: Path) -> None:
    task = prepare_run(recipe(1), tmp_path / "first")
    whole = 2 * math.ceil(len(task.batches(0).epoch(0)) / 2)  # two epochs; two batches each
    linear = {"kind": "linear", "warmup": 2, "total_steps": 5000}
    validation = {"translate": False}
    begun = recipe(10**6, max_epochs=2, schedule=linear, validation=validation)
    reported = notes(begun, tmp_path / "linear")
    assert train(begun, tmp_path / "linear").update == whole
    assert train(begun, tmp_path / "linear").planned == whole
    assert (
        "WARNING: training.schedule.total_steps = 5000, but the training ends after about "
        f"{whole} updates. Set it lower"
    ) in reported
    warm = {"kind": "inverse-square-root", "warmup": 4000}
    reported = notes(recipe(3, schedule=warm, validation=validation), tmp_path / "warm")
    assert (
        "training.schedule.warmup = 4000, but the training ends after about 3 updates" in reported
    )


def test_a_run_that_goes_on_beyond_its_schedule_is_reported_how_many_updates_teach_nothing(
    tmp_path: Path,
) -> None:
    plain: dict[str, Any] = {
        "schedule": {"kind": "cosine", "total_steps": 4}, "validation": {"translate": False},
    }  # fmt: skip
    assert "teach nothing" not in notes(recipe(4, **plain), tmp_path)
    assert "ends after about 40: 36 updates would teach nothing" in notes(
        recipe(40, **plain), tmp_path
    )


def test_r_drop_that_begins_after_the_end_is_reported(tmp_path: Path) -> None:
    twice: dict[str, Any] = {
        "rdrop_alpha": 1.0, "scheduled_sampling": {"kind": "constant", "p": 1.0},
        "validation": {"translate": False},
    }  # fmt: skip
    tables = recipe(4, **twice).tables()
    for after, reported in ((3, False), (4, True)):
        tables["training"]["rdrop_after"] = after
        begun = Recipe.read(tables, "the test")
        said = "begins after update 4 of about 4, so it has no effect"
        assert (said in notes(begun, tmp_path / str(after))) is reported


def test_sources_that_a_validation_cuts_are_reported_and_need_no_positions(tmp_path: Path) -> None:
    sizes = {"embed_dim": 8, "num_heads": 2, "ffn_dim": 8, "encoder_layers": 1, "decoder_layers": 1}
    cut = {"method": "greedy", "max_source_length": 2}
    tables = recipe(2, validation={"sentences": 5, "decoding": cut}).tables()
    tables["batching"]["max_length"] = 3
    tables["model"] = {"kind": "transformer", "positions": "learned", "max_positions": 4, **sizes}
    reported = notes(Recipe.read(tables, "the test"), tmp_path / "cut")
    assert (
        "longer than training.validation.decoding.max_source_length = 2: a validation" in reported
    )
    tables["training"]["validation"]["decoding"]["max_source_length"] = 4
    with pytest.raises(AttlasError, match=r"model\.max_positions of 5 at least.*max_source_length"):
        train(Recipe.read(tables, "the test"), tmp_path / "whole")


def test_a_training_with_subword_sampling_is_planned_by_the_batches_that_it_draws(
    tmp_path: Path,
) -> None:
    tables = recipe(10**6, max_epochs=2, validation={"translate": False}).tables()
    tables["vocabulary"] = {"kind": "bpe", "size": 300, "sampling": 0.5}
    begun = Recipe.model_validate(tables)
    task = prepare_run(begun, tmp_path)
    plain, drawn = len(task.encoded().epoch(0)), len(task.batches(1).epoch(1))
    assert drawn > plain  # rare pieces are short, so there are more of them
    assert train(begun, tmp_path).planned == 2 * math.ceil(drawn / 2)  # two batches an update


@pytest.mark.parametrize(
    "schedule", [{"kind": "constant"}, {"kind": "cosine", "total_steps": 4}, {"warmup": 3}]
)
def test_a_schedule_as_long_as_the_training_is_not_noted(
    tmp_path: Path, schedule: dict[str, Any]
) -> None:
    schedule = {"kind": "constant", **schedule}
    assert "schedule" not in notes(recipe(4, schedule=schedule), tmp_path)


def test_a_training_that_only_the_time_limits_has_no_planned_length(tmp_path: Path) -> None:
    tables = recipe(4).tables()
    tables["training"] |= {"max_steps": None, "max_minutes": 1e-9}
    tables["training"]["schedule"] = {"kind": "cosine", "total_steps": 5000}
    outcome = train(Recipe.model_validate(tables), tmp_path)
    assert (outcome.reason, outcome.planned) == ("max_minutes", None)


def test_an_update_that_ends_an_epoch_is_reported_as_of_that_epoch(tmp_path: Path) -> None:
    reported: list[Event] = []
    begun = recipe(10**6, max_epochs=2, log_every=1, validation={"translate": False})
    train(begun, tmp_path, report=reported.append)
    events = [event for event in reported if isinstance(event, Trained)]
    epochs, done = [event.epoch for event in events], [event.done for event in events]
    assert sorted(set(epochs)) == [0, 1]
    assert epochs.count(0) == epochs.count(1)
    assert done == sorted(done)
    assert (done[epochs.count(0) - 1], done[-1]) == (0.5, 1.0)


def test_the_demo_is_not_cut_short_on_a_slow_machine() -> None:
    training = read_recipe("demo").training
    assert training.max_minutes is None
    assert training.schedule.length == ("total_steps", training.max_steps)


def test_a_disk_that_refuses_is_an_error_and_the_run_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_mask = os.write

    def full(descriptor: int, content: bytes) -> int:
        if (tmp_path / "last").exists() and len(content) > 5000:
            raise OSError(28, "No space left on device")
        return token_mask(descriptor, content)

    begun = recipe(6, save_every=2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(AttlasError, match="got no space left on device; make room"):
            train(begun, tmp_path)
    assert Run(tmp_path).store.named("last") == "00000002"
    Run(tmp_path).model("last")
    assert train(begun, tmp_path).update == 6


def test_a_run_may_sample_its_subwords_anew_in_every_epoch(tmp_path: Path) -> None:
    begun = changed(
        recipe(4), vocabulary={"kind": "unigram", "size": 300, "shared": True, "sampling": 0.3}
    )
    task = prepare_run(begun, tmp_path)
    first, again, other = (task.batches(epoch) for epoch in (0, 0, 1))

    def ids(batches: Any) -> list[list[int]]:
        return [batches.encoded.source[place].tolist() for place in range(90)]

    assert ids(first) == ids(again)
    assert ids(first) != ids(other)


def test_curves_for_tensorboard_are_written_on_demand(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    train(recipe(2, tensorboard=True), tmp_path)
    assert list((tmp_path / "tensorboard").glob("events.*"))


def test_curves_without_tensorboard_are_an_error_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(AttlasError, match=r"pip install 'attlas\[tensorboard\]'"):
        train(recipe(2, tensorboard=True), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_progress_shows_what_is_to_be_reported_at_the_end(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    begun = recipe(
        2, keep_last=4, averaging={"kind": "last", "count": 4}, validation={"translate": False}
    )
    with Progress(console) as report:
        train(begun, tmp_path, report=report)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue().splitlines()
    assert shown[-2].startswith("WARNING: training.averaging needs the last 4 checkpoints")
    assert shown[-1].startswith("finished after 2 updates")


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_shows_each_validation_and_the_end(tmp_path: Path, terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    with Progress(console) as report:
        train(recipe(6, log_every=1), tmp_path, report=report)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "90 of 90 pairs kept" in shown
    assert "update 4: validation loss" in shown
    assert "exactly right" in shown
    assert "tokens/s" in shown
    assert "finished after 6 updates" in shown


def test_a_validation_in_numbers_that_the_device_lacks_is_refused_before_the_first_update(
    tmp_path: Path,
) -> None:
    reported = r"training\.validation\.decoding\.autocast = 'bf16' or 'none'"
    with pytest.raises(AttlasError, match=reported):
        train(recipe(2, validation={"decoding": {"autocast": "fp16"}}), tmp_path)
    assert Run(tmp_path).checkpoints() == []
    assert train(recipe(2), tmp_path).update == 2


def test_a_training_without_an_update_measures_what_it_has(tmp_path: Path) -> None:
    outcome = train(recipe(5, max_minutes=1e-9), tmp_path)
    assert outcome.update == 0
    assert outcome.checkpoint in Run(tmp_path).checkpoints()
    Run(tmp_path).model("best")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (65.0, "1:05 min"), (7385.0, "2:03 h")]
)
def test_a_duration_is_said_as_people_say_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_journal_is_cut_back_and_says_what_it_lost(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"one\ntwo\nthr")
    with MetricsFile(path, 8) as journal:
        assert journal.missing == 0
    assert path.read_bytes() == b"one\ntwo\n"
    with MetricsFile(path, 100) as journal:
        assert journal.missing == 92
    assert path.read_bytes() == b"one\ntwo\n"
    path.write_bytes(b"one\ntwo\nthr")  # shortened in the middle of a line
    with MetricsFile(path, 100) as journal:
        assert journal.missing == 92
        journal.write(Interrupted(update=1, epoch=0, seconds=0.0))
    assert path.read_bytes().startswith(b'one\ntwo\n{"event": "interrupted"')
    path.write_bytes(b"x" * 200_000)
    with MetricsFile(path, 300_000) as journal:
        assert journal.missing == 300_000
    assert path.read_bytes() == b""


@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_a_small_model_learns_a_toy_task_from_end_to_end(tmp_path: Path, task: str) -> None:
    begun = read_recipe(
        "reverse",
        [
            f"data.task={task}", "data.length=[1, 6]", "data.symbols=8", "data.train=3000",
            "data.valid=100", "data.test=100", "batching.max_tokens=512", "model.hidden_dim=48",
            "model.encoder_hidden_dim=24", "model.embed_dim=24", "training.learning_rate=1e-2",
            "training.schedule.total_steps=230", "training.max_epochs=7", "training.device=cpu",
            "training.threads=1",
        ],
    )  # fmt: skip
    outcome = train(begun, tmp_path)
    assert outcome.best is not None
    assert outcome.best >= 0.95
    run = Run(tmp_path)
    found = evaluate(run.model(), begun.data.load().test, run.vocabularies(), begun.decoding)
    assert found.accuracy >= 0.95
    assert found.bleu.value > 90
    assert len(found.translations) == 100
    assert begun.batching == BatchingConfig.read(run.table("batching"), "there")


@pytest.mark.parametrize("translate", [True, False])
def test_a_pair_longer_than_the_learned_positions_is_reported_before_the_training(
    tmp_path: Path, translate: bool
) -> None:
    tables = recipe(2).tables()
    sizes = {"embed_dim": 8, "num_heads": 2, "ffn_dim": 8, "encoder_layers": 1, "decoder_layers": 1}
    tables["model"] = {"kind": "transformer", "positions": "learned", "max_positions": 3, **sizes}
    tables["training"]["validation"] |= {"translate": translate, "criterion": "loss"}
    with pytest.raises(AttlasError, match=r"model\.max_positions of \d+ at least") as reported:
        train(Recipe.read(tables, "the test"), tmp_path / "short")
    needed = int(re.search(r"max_positions of (\d+)", str(reported.value)).group(1))  # type: ignore[union-attr]
    tables["model"]["max_positions"] = needed
    assert train(Recipe.read(tables, "the test"), tmp_path / "long").update == 2


def test_the_first_weights_are_the_same_for_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orthogonal matrices come of products that several threads round differently."""
    seen: list[int] = []
    built = build
    monkeypatch.setattr(
        "attlas.training.tasks.translation.build",
        lambda *given: seen.append(torch.get_num_threads()) or built(*given),
    )
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        train(recipe(1), tmp_path)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


@pytest.mark.parametrize(
    ("peak", "total", "is_noted"),
    [
        (2**30, 2**33, True),
        (2**30, 2**32, True),
        (2**30, 2**32 - 1, False),
        (None, None, False),  # a CPU
        (0, 2**33, False),
    ],
)
def test_a_training_that_takes_little_of_a_gpu_says_so(peak, total, is_noted):
    note = note_unused_memory(peak, total, 4096)
    assert (note is not None) == is_noted
    if note is not None:
        assert note.startswith("the training took 1,024 MiB of the GPU's ")
        assert "a larger batching.max_tokens than 4,096 would fit" in note
