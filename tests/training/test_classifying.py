"""Training a classifier: the same trainer, another task."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from attlas.config import read_toml, write_toml
from attlas.data import LabelledVocabularies
from attlas.errors import AttlasError
from attlas.runs import Run
from attlas.training import Event, Progress, Recipe, Trained, Validated, read_recipe, train
from attlas.training.events import Started
from attlas.training.learner import Learner
from attlas.training.loss import rdrop_cross_entropy
from attlas.training.setup import prepare_run
from attlas.training.tasks.classification import ClassificationTask, TextsValidated
from support.killed_trainings import differences, whole
from support.labelled_runs import reviews, tables, trained, write_lines


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("reviews") / "reviews.jsonl", reviews(200))


def recipe(lines: Path, updates: int = 6, **training: Any) -> Recipe:
    return Recipe.read(tables(lines, max_steps=updates, **training), "the test")


def test_a_folder_holds_everything_that_a_classifiers_run_is(lines: Path, tmp_path: Path) -> None:
    outcome = train(recipe(lines), tmp_path / "run")
    run = Run(outcome.path)
    assert Recipe.read(run.config, "config.toml") == recipe(lines)
    assert not {"decoding"} & run.config.keys()
    assert "feeding" not in run.config["training"]
    assert run.config["training"]["validation"] == {"criterion": "accuracy"}
    assert run.classifies
    assert run.labelled_vocabularies().labels.names == ("neg", "pos")
    facts = run.provenance()["data"]
    assert (facts["train"]["texts"], facts["valid"]["texts"]) == (170, 30)
    assert run.classifier("best").training is False


@pytest.mark.slow
@pytest.mark.parametrize("rdrop_alpha", [0.0, 1.0])
def test_it_learns_what_one_word_tells(lines: Path, tmp_path: Path, rdrop_alpha: float) -> None:
    reported: list[Event] = []
    requested = recipe(lines, 250, rdrop_alpha=rdrop_alpha)
    outcome = train(requested, tmp_path, report=reported.append)
    assert outcome.best is not None
    assert outcome.best >= 0.9
    scored = [event for event in reported if isinstance(event, Validated)]
    assert scored[-1].loss < scored[0].loss


def test_what_is_reported_speaks_of_texts(lines: Path, tmp_path: Path) -> None:
    import io

    from rich.console import Console

    reported: list[Event] = []
    console = Console(file=io.StringIO(), width=200)
    with Progress(console) as report:
        train(
            recipe(lines), tmp_path, report=lambda event: (reported.append(event), report(event))[1]
        )
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "170 of 200 texts kept; 30 texts held back" in shown
    assert "170 texts in" in shown
    assert "texts/s" in shown
    assert "of 30 right" in shown
    assert "exactly" not in shown
    (started,) = (event for event in reported if isinstance(event, Started))
    assert (started.pairs, started.example, started.counted) == (170, "text", "text")
    events = [event for event in reported if isinstance(event, Trained)]
    assert {event.teacher_forcing for event in events} == {None}


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c")
@pytest.mark.parametrize(("stop", "rdrop_alpha"), [(1, 0.0), (7, 0.0), (4, 2.0)])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(
    lines: Path, tmp_path: Path, stop: int, rdrop_alpha: float
) -> None:
    def requested(updates: int, **more: int) -> Recipe:
        return recipe(lines, updates, rdrop_alpha=rdrop_alpha, **more)

    undisturbed = whole(tmp_path / "undisturbed", requested(12))
    train(requested(stop), tmp_path / "raised")
    assert differences(whole(tmp_path / "raised", requested(12)), undisturbed) == []

    def press(event: Event) -> None:
        if isinstance(event, Trained) and event.update == stop:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(requested(12, log_every=1), tmp_path / "pressed", report=press)
    assert Run(tmp_path / "pressed").store.numbered()[-1] == stop
    found = whole(tmp_path / "pressed", requested(12))
    assert set(differences(found, undisturbed)) <= {"events"}  # it was told more often


def test_subwords_may_be_drawn_anew_and_the_run_goes_on_to_the_same_bits(
    lines: Path, tmp_path: Path
) -> None:
    def sampling(updates: int) -> Recipe:
        begun = tables(lines, max_steps=updates)
        begun["vocabulary"] = {"kind": "bpe", "size": 300, "sampling": 0.2}
        begun["batching"] = {"max_tokens": 512, "max_length": 200}
        return Recipe.read(begun, "the test")

    undisturbed = whole(tmp_path / "undisturbed", sampling(8))
    train(sampling(3), tmp_path / "stopped")
    assert differences(whole(tmp_path / "stopped", sampling(8)), undisturbed) == []


def test_a_run_does_not_go_on_with_other_texts(lines: Path, tmp_path: Path) -> None:
    train(recipe(lines, 2), tmp_path / "run")
    other = write_lines(tmp_path / "other.jsonl", reviews(200, seed=2))
    with pytest.raises(
        AttlasError, match=r"the train data with which .*\(170 texts of .*other texts"
    ):
        train(recipe(other, 4), tmp_path / "run")


def test_the_measure_is_that_of_each_text_alone_whatever_its_length(
    lines: Path, tmp_path: Path
) -> None:
    begun = tables(lines)
    begun["batching"] = {"max_tokens": 12, "max_length": 10, "overlong": "cut"}
    task = prepare_run(Recipe.read(begun, "the test"), tmp_path)
    assert isinstance(task, ClassificationTask)
    model = task.build().double().train()
    found = task.measure(model)
    assert model.training
    model.eval()
    vocabularies, valid = LabelledVocabularies.load(tmp_path), task.splits.valid
    assert max(len(text.split()) for text in valid.texts) > 12
    losses, right = [], 0
    for text, label in zip(valid.texts, valid.labels, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*vocabularies.text.encode(text), 3]]))
        expected = torch.tensor([vocabularies.labels.names.index(label)])
        losses.append(torch.nn.functional.cross_entropy(logits, expected).item())
        right += int(logits.argmax() == expected)
    assert found.loss == pytest.approx(sum(losses) / len(losses))
    assert found.accuracy == right / len(losses)
    assert found.texts == len(losses) == 30


def test_the_loss_is_the_smoothed_cross_entropy_summed_over_the_texts(
    lines: Path, tmp_path: Path
) -> None:
    task = prepare_run(recipe(lines, label_smoothing=0.1), tmp_path)
    model = task.build().eval()
    batches = task.batches(0)
    batch = batches.batch(batches.epoch(0)[0])
    loss = task.loss(model, batch, 1, 1.0, torch.Generator(), list(model.parameters()))
    expected = torch.nn.functional.cross_entropy(
        model(batch.source, batch.source_mask), batch.labels, label_smoothing=0.1
    )
    assert loss.item() == pytest.approx(expected.item() * batch.tokens, rel=1e-5)


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("decoding.num_beams=3", "no decoding with model.kind = 'classifier'"),
        ("vocabulary.shared=false", "no shared with model.kind = 'classifier'"),
        ("training.scheduled_sampling={kind='constant', p=0.5}", "no scheduled_sampling with"),
        ("training.validation.sentences=3", "no sentences with"),
        ("training.validation.bleu_tokenizer=char", "no bleu_tokenizer with"),
        ("training.validation.decoding.max_len_a=2", "no decoding with"),
        ("training.validation.criterion=bleu", "'accuracy' or 'loss' with .* got 'bleu'"),
        ("training.validation={translate=false}", "no translate with"),
        ("model={kind='recurrent'}", "data.kind = 'labelled' with model.kind = 'recurrent'"),
        ("data={kind='toy'}", "got data.kind = 'toy' with model.kind = 'classifier'"),
        ("data.held_back=2000", "fewer than the 200 texts of"),
        ("model.encoder_layers=2", "encoder_layers"),
    ],
)
def test_a_setting_that_makes_no_sense_for_a_classifier_is_an_error(
    lines: Path, tmp_path: Path, assignment: str, said: str
) -> None:
    path = tmp_path / "my.toml"
    path.write_text(write_toml(tables(lines)))
    with pytest.raises(AttlasError, match=said):
        train(read_recipe(path, [assignment]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_labelled_texts_are_nothing_to_translate(lines: Path) -> None:
    begun = {**tables(lines), "model": {"kind": "transformer"}}
    with pytest.raises(AttlasError, match=r"with model\.kind = 'transformer'"):
        Recipe.read(begun, "the test")


def test_a_recipe_written_is_the_recipe_read(lines: Path, tmp_path: Path) -> None:
    for begun in (recipe(lines), read_recipe("imdb")):
        (tmp_path / "config.toml").write_text(write_toml(begun.tables()))
        assert Recipe.read(read_toml(tmp_path / "config.toml"), "there") == begun


def test_a_text_longer_than_the_learned_positions_is_reported_before_the_training(
    lines: Path, tmp_path: Path
) -> None:
    begun = tables(lines)
    begun["model"] |= {"positions": "learned", "max_positions": 8}
    with pytest.raises(AttlasError, match=r"model\.max_positions of \d\d at least"):
        train(Recipe.read(begun, "the test"), tmp_path)
    begun["model"]["max_positions"] = 64
    assert train(Recipe.read(begun, "the test"), tmp_path).update == 3


def test_sampled_subwords_may_need_as_many_positions_as_are_let_pass(
    lines: Path, tmp_path: Path
) -> None:
    begun = tables(lines)
    begun["vocabulary"] = {"kind": "bpe", "size": 300, "sampling": 0.2}
    begun["batching"] = {"max_tokens": 512, "max_length": 200}
    begun["model"] |= {"positions": "learned", "max_positions": 200}
    with pytest.raises(AttlasError, match=r"model\.max_positions of 201 at least"):
        train(Recipe.read(begun, "the test"), tmp_path)
    begun["model"]["max_positions"] = 201
    assert train(Recipe.read(begun, "the test"), tmp_path).update == 3


def pooling_first(lines: Path, patterns: list[str], layers: int = 1) -> Recipe:
    begun = tables(lines)
    begun["model"] |= {"pooling": "first", "patterns": patterns, "layers": layers}
    return Recipe.read(begun, "the test")


def notes(requested: Recipe, folder: Path) -> list[str]:
    reported: list[Event] = []
    train(requested, folder, report=reported.append)
    return [
        n for event in reported if isinstance(event, Started) for n in event.notes if "first" in n
    ]


@pytest.mark.parametrize(
    ("patterns", "layers"),
    [(["window(3)"], 1), (["window(2)"], 2), (["causal"], 5), (["window(0)"], 1)],
    ids=str,
)
def test_a_first_token_that_sees_hardly_any_text_whole_is_trained_after_a_loud_note(
    lines: Path, tmp_path: Path, patterns: list[str], layers: int
) -> None:
    requested = pooling_first(lines, patterns, layers)
    reach = 0 if patterns == ["causal"] else int(patterns[0][7:-1]) * layers
    lengths = [len(entry["text"].split()) for entry in reviews(200)]
    unseen = [max(0, length - 1 - reach) for length in lengths]
    (note,) = notes(requested, tmp_path / "blind")
    assert Run(tmp_path / "blind").store.named("last") == "00000003"
    assert note.startswith(f"WARNING: {sum(map(bool, unseen))} of 200 texts are not read whole.")
    assert f"it never sees {sum(unseen):,} of {sum(lengths):,} tokens" in note
    assert "set model.pooling = 'mean' or 'attentive', or" in note
    advised = note.rpartition("model.patterns = ")[2]
    assert notes(pooling_first(lines, [advised.strip("[']")], layers), tmp_path / "seeing") == []


def test_a_first_token_that_misses_the_end_of_some_texts_is_reported_with_their_number(
    lines: Path, tmp_path: Path
) -> None:
    longer = sum(len(entry["text"].split()) > 18 for entry in reviews(200))
    assert 0 < longer < 100
    (note,) = notes(pooling_first(lines, ["window(17)"]), tmp_path / "some")
    assert f"{longer:,} of 200 texts are not read whole" in note
    assert "either(window(17), landmarks(0))" in note
    assert notes(pooling_first(lines, ["window(20)"]), tmp_path / "none") == []
    assert notes(pooling_first(lines, ["window(10)"], 2), tmp_path / "together") == []
    assert notes(pooling_first(lines, ["everywhere", "causal"], 2), tmp_path / "before") == []


def test_texts_that_are_not_trained_on_are_not_counted_among_the_unread(
    lines: Path, tmp_path: Path
) -> None:
    begun = pooling_first(lines, ["window(9)"]).tables()
    for overlong in ("cut", "skip"):
        begun["batching"] |= {"max_length": 10, "overlong": overlong}
        task = prepare_run(Recipe.read(begun, "the test"), tmp_path / overlong)
        assert isinstance(task, ClassificationTask)
        valid = sum(len(text.split()) > 10 for text in task.splits.valid.texts)
        assert valid
        reported = task.notes(task.batches(0))[-1]
        assert f"{valid:,} of " in reported
        kept = 200 if overlong == "cut" else 30 + task.batches(0).report.kept
        assert f"of {kept} texts are not read whole" in reported


def test_a_label_that_is_held_back_alone_is_an_error_that_names_it(tmp_path: Path) -> None:
    train_lines = write_lines(tmp_path / "t.jsonl", reviews(30))
    valid = write_lines(tmp_path / "v.jsonl", [{"text": "a film", "label": "so-so"}])
    begun = tables(train_lines)
    begun["data"] = {"kind": "labelled", "train": str(train_lines), "valid": str(valid)}
    with pytest.raises(AttlasError, match="got 'so-so' in line 1"):
        train(Recipe.read(begun, "the test"), tmp_path / "run")


def test_one_label_alone_is_an_error(tmp_path: Path) -> None:
    entries = [{**entry, "label": "pos"} for entry in reviews(40)]
    lines = write_lines(tmp_path / "t.jsonl", entries)
    with pytest.raises(AttlasError, match="at least two different labels"):
        train(recipe(lines), tmp_path / "run")


def test_a_classifiers_run_is_none_that_translates_and_the_other_way_round(tmp_path: Path) -> None:
    run = Run(trained(tmp_path))
    for requested in (run.model, run.vocabularies, lambda: run.table("decoding")):
        with pytest.raises(AttlasError, match="a run that translates; got a classifier at"):
            requested()


def unbalanced(folder: Path, counts: dict[str, int]) -> Path:
    """So many texts of each label, which one word tells."""
    entries = [
        {"text": f"{label} film {number} and more", "label": label}
        for label, count in counts.items()
        for number in range(count)
    ]
    return write_lines(folder / "unbalanced.jsonl", entries)


WEIGHTED = [("none", None), ("balanced", None), ({"few": 3, "some": 0.5}, (3.0, 1.0, 0.5))]


@pytest.mark.parametrize(("weights", "expected"), WEIGHTED)
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_an_update_follows_the_weighted_mean_that_torch_defines(
    tmp_path: Path, weights: Any, expected: tuple[float, ...] | None, label_smoothing: float
) -> None:
    path = unbalanced(tmp_path, {"few": 4, "many": 40, "some": 16})
    given = tables(path, class_weights=weights, label_smoothing=label_smoothing, max_grad_norm=0.0)
    given["model"] |= {"dropout": 0.0, "word_dropout": 0.0}
    given["data"]["held_back"] = 6
    requested = Recipe.read(given, "the test")
    splits = requested.data.load()
    task = ClassificationTask(
        requested, splits, ClassificationTask.vocabularies_of(requested, splits)
    )
    names = task.vocabularies.labels.names
    if weights == "balanced":
        labels = splits.train.labels
        expected = tuple(len(labels) / (3 * labels.count(name)) for name in names)
    weight = None if expected is None else torch.tensor(expected)
    assert names == ("few", "many", "some")
    torch.manual_seed(1)
    model = task.build()
    batches = task.batches(0)
    rows = batches.epoch(0)
    criterion = torch.nn.CrossEntropyLoss(weight, label_smoothing=label_smoothing)
    whole_batch = batches.batch([index for part in rows for index in part])
    loss = criterion(model(whole_batch.source, whole_batch.source_mask), whole_batch.labels)
    right = torch.autograd.grad(loss, list(model.parameters()))

    learner = Learner(model, requested.training, 1, torch.device("cpu"), task.loss)
    found: list[torch.Tensor] = []
    learner.optimizer.step = lambda: found.extend(  # type: ignore[method-assign]
        p.grad.clone() for p in learner.parameters
    )
    shares = [[batches.batch(part) for part in rows]]  # accumulated, of unequal weights
    update = learner.update(shares, 1)
    assert update.loss / update.weight == pytest.approx(loss.item(), rel=1e-5)
    assert update.tokens == len(splits.train)
    for ours, theirs in zip(found, right, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_two_threads_share_a_weighted_update(tmp_path: Path) -> None:
    path = unbalanced(tmp_path, {"few": 6, "many": 60})
    losses: list[list[float]] = []
    for threads in (1, 2):
        reported: list[Event] = []
        given = tables(path, class_weights="balanced", threads=threads, max_steps=4, log_every=1)
        given["model"] |= {"dropout": 0.0, "word_dropout": 0.0}
        train(Recipe.read(given, "the test"), tmp_path / str(threads), report=reported.append)
        losses.append([event.loss for event in reported if isinstance(event, Trained)])
    assert len(losses[0]) == 4
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_a_weighted_run_that_was_stopped_goes_on_to_the_same_bits(
    lines: Path, tmp_path: Path
) -> None:
    def requested(updates: int) -> Recipe:
        return recipe(
            lines, updates, class_weights={"pos": 2.5}, rdrop_alpha=1.0, label_smoothing=0.1
        )

    undisturbed = whole(tmp_path / "undisturbed", requested(9))
    train(requested(4), tmp_path / "stopped")
    assert differences(whole(tmp_path / "stopped", requested(9)), undisturbed) == []
    with pytest.raises(AttlasError, match=r"training\.class_weights"):
        train(recipe(lines, 12, rdrop_alpha=1.0, label_smoothing=0.1), tmp_path / "stopped")


def test_the_readings_of_a_weighted_batch_are_weighted_alike() -> None:
    torch.manual_seed(0)
    logits, labels = torch.randn(5, 2, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 1, 0])
    weights = torch.tensor([0.5, 2.0, 1.5], dtype=torch.float64)
    loss = rdrop_cross_entropy(logits, labels, 0.1, 3.0, weights)
    expected = 0.0
    for row, label in zip(logits, labels.tolist(), strict=True):
        p, q = row.log_softmax(-1)
        for reading in row:
            expected += 0.5 * float(
                torch.nn.functional.cross_entropy(
                    reading[None], torch.tensor([label]), weights, reduction="sum",
                    label_smoothing=0.1,
                )
            )  # fmt: skip
        apart = (p.exp() * (p - q)).sum() + (q.exp() * (q - p)).sum()
        expected += 0.25 * 3.0 * float(weights[label] * apart)
    assert loss.item() == pytest.approx(expected)


def test_the_best_checkpoint_may_be_chosen_by_the_mean_f1(tmp_path: Path) -> None:
    reported: list[Event] = []
    path = unbalanced(tmp_path, {"few": 10, "many": 90})
    requested = Recipe.read(
        tables(path, max_steps=8, class_weights="balanced", validation={"criterion": "macro_f1"}),
        "the test",
    )
    outcome = train(requested, tmp_path / "run", report=reported.append)
    scores = [event.macro_f1 for event in reported if isinstance(event, TextsValidated)]
    assert outcome.best == pytest.approx(max(scores))
    (started,) = (event for event in reported if isinstance(event, Started))
    assert any(note.startswith("class weights: few ") for note in started.notes)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"good": 1.0}, "weights of the labels neg, pos in training.class_weights; got one of 'go"),
        ({"pos": 0}, r"a number above 0 for each label \(the test\); got pos = 0"),
        ({"pos": True}, "got pos = True"),
        ({"pos": float("nan")}, "got pos = nan"),
        ("even", "'none' or 'balanced'"),
    ],
)
def test_class_weights_that_make_no_sense_are_an_error(
    lines: Path, tmp_path: Path, weights: Any, said: str
) -> None:
    with pytest.raises(AttlasError, match=said):
        train(recipe(lines, class_weights=weights), tmp_path / "run")


def test_what_is_of_labels_is_nothing_for_translations() -> None:
    with pytest.raises(AttlasError, match=r"class_weights, which are of labels .* model\.kind"):
        read_recipe("demo", ["training.class_weights=balanced"])
    with pytest.raises(AttlasError, match="'macro_f1', which compares labels"):
        read_recipe("demo", ["training.validation.criterion=macro_f1"])
