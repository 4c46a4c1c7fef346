"""Updates as CUDA graphs, by their twin on a CPU, which calls what a GPU replays."""

import gc
import json
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from attlas._hardware import capturable
from attlas.data import Batch, BatchingConfig
from attlas.errors import AttlasError
from attlas.monitoring import read_history
from attlas.ops.cuda_graphs import Capture, padded_length
from attlas.runs import CheckpointStore, Run
from attlas.training import Recipe, train, trainer
from attlas.training.cuda_graphs import (
    BatchShapes,
    GraphLearner,
    check_capturable,
    check_recipe_capturable,
)
from attlas.training.distributed import ProcessGroup
from attlas.training.learner import Learner, NotFiniteError
from attlas.training.tasks import TranslationTask

CPU = torch.device("cpu")
MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rotary": {
        "positions": "rotary",
        "num_kv_heads": 1,
        "norm_type": "rms",
        "activation": "swiglu",
    },
    "learned": {"positions": "learned", "max_positions": 12, "norm": "post"},
    "windows": {"encoder_patterns": ["window(1)"]},
    "landmarks": {"encoder_patterns": ["either(window(1), landmarks(0))"]},
}  # fmt: skip
DROPPING = {"dropout": 0.1, "attention_dropout": 0.1, "word_dropout": 0.1}


def recipe(model: dict[str, Any] | None = None, updates: int = 12, **training: Any) -> Recipe:
    return Recipe.read(
        {
            "seed": 3,
            "data": {
                "kind": "toy", "length": [1, 9], "symbols": 12, "train": 240, "valid": 12,
                "test": 1,
            },
            "vocabulary": {"kind": "words", "size": 32},
            "batching": {"max_tokens": 96, "max_length": 16},
            "model": {
                "kind": "transformer", "embed_dim": 16, "num_heads": 2, "ffn_dim": 32,
                "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0, **(model or {}),
            },
            "training": {
                "max_steps": updates, "device": "cpu", "learning_rate": 2**-7,
                "label_smoothing": 0.1, "log_every": 5,
                "validation": {"criterion": "accuracy", "every": 8, "decoding": {
                    "max_len_a": 1.0}},
                **training,
            },
        },
        "the test",
    )  # fmt: skip


def task_of(plan: Recipe) -> TranslationTask:
    splits = plan.data.load()
    return TranslationTask(plan, splits, TranslationTask.vocabularies_of(plan, splits))


def batches_of(task: TranslationTask, count: int) -> list[Batch]:
    made = task.batches(0)
    order = list(made.epoch(0))
    return [made.batch(order[index % len(order)]) for index in range(count)]


def graph_learner(model: Any, task: TranslationTask) -> GraphLearner[Any]:
    plan = task.recipe
    shapes = BatchShapes(plan.batching, model.max_positions)
    return GraphLearner(model, plan.training, plan.seed, CPU, task.loss, shapes)


@pytest.fixture
def twins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training with `cuda_graphs` runs on a CPU, by the twins of the graphs."""

    def check(plan: Recipe, device: torch.device, group: ProcessGroup) -> None:
        check_recipe_capturable(plan)

    monkeypatch.setattr(trainer, "check_capturable", check)


# Shapes.


def test_lengths_are_rounded_up_to_four_in_an_octave() -> None:
    found = sorted({padded_length(length) for length in range(1, 129)})
    assert found == [4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128]
    assert all(length <= padded_length(length) < 1.25 * length + 4 for length in range(1, 3000))


@pytest.mark.parametrize("rows", [None, 7])
def test_every_batch_fits_into_its_shape_and_shapes_are_few(rows: int | None) -> None:
    plan = recipe()
    batching = BatchingConfig(max_tokens=200, max_length=16, rows=rows)
    task = task_of(plan.model_copy(update={"batching": batching}))
    shapes, kinds = BatchShapes(batching), set()
    for epoch in range(3):
        made = task.batches(epoch)
        for indices in made.epoch(epoch):
            batch = made.batch(indices)
            full = shapes.pad(batch)
            kinds.add(shapes.of(batch))
            assert full.tokens == batch.tokens
            assert full.indices == batch.indices
            assert torch.equal(full.source[: len(indices), : batch.source.shape[1]], batch.source)
            assert int(full.source_mask.sum()) == int(batch.source_mask.sum())
            assert full.source.numel() <= 2 * 200  # 4 / 3, but for texts of two tokens
    assert len(kinds) <= 6


def test_no_side_is_padded_beyond_the_positions_of_the_model() -> None:
    batching = BatchingConfig(max_tokens=200, max_length=16)
    batch = batches_of(task_of(recipe(MODELS["learned"])), 1)[0]
    shape = BatchShapes(batching, 12).of(batch.padded_to(len(batch.source), 11, 12))
    assert (shape.source, shape.target) == (12, 13)
    with pytest.raises(ValueError, match="does not fit"):
        batch.padded_to(1, 12, 13)


# The same numbers.


@pytest.mark.parametrize("is_training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", MODELS)
def test_the_loss_of_a_padded_batch_and_its_gradient_are_those_of_the_batch(
    name: str, is_training: bool
) -> None:
    plan = recipe(MODELS[name])
    task = task_of(plan)
    model = task.build().double().train(is_training)
    parameters = list(model.parameters())
    shapes, chance = BatchShapes(plan.batching, model.max_positions), torch.Generator()
    for batch in batches_of(task, 4):
        plain = task.loss(model, batch, 1, 1.0, chance, parameters)
        with capturable():
            padded = task.loss(model, shapes.pad(batch), 1, 1.0, chance, parameters)
            with torch.no_grad():
                alone = task.loss(model, shapes.pad(batch), 1, 1.0, chance, parameters)
        torch.testing.assert_close(padded, plain, rtol=1e-12, atol=0)
        torch.testing.assert_close(alone, plain.detach(), rtol=1e-12, atol=0)
        wanted, found = (torch.autograd.grad(loss, parameters) for loss in (plain, padded))
        for gradient, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(gradient, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("name", "training"),
    [
        ("plain", {"optimizer": {"kind": "adam"}, "averaging": {"kind": "ema"}}),
        ("plain", {"optimizer": {"kind": "adamw", "weight_decay": 0.125}, "max_grad_norm": 0.0}),
        ("plain", {"optimizer": {"kind": "muon", "weight_decay": 0.125}, "max_grad_norm": 0.25}),
        ("rotary", {"gradient_accumulation_steps": 2}),
        ("learned", {"gradient_accumulation_steps": 3, "max_grad_norm": 0.25}),
        ("windows", {"averaging": {"kind": "ema", "decay": 0.5}}),
    ],
    ids=str,
)
def test_replayed_updates_leave_the_weights_of_ordinary_ones(
    name: str, training: dict[str, Any]
) -> None:
    plan = recipe(MODELS[name], **training)
    task = task_of(plan)
    model = task.build().double()
    plain = Learner(deepcopy(model), plan.training, plan.seed, CPU, task.loss)
    replayed = graph_learner(model, task)
    size = plan.training.gradient_accumulation_steps
    batches = batches_of(task, 12 * size)
    pending = []
    for number in range(1, 13):
        group = batches[(number - 1) * size :][:size]
        wanted = plain.update([group], number)
        pending.append((replayed.submit([group], number), wanted))
    for found, wanted in pending:  # each has its own numbers, though all are read at the end
        assert found.done is None
        update = found.result()
        assert update.loss == pytest.approx(wanted.loss, rel=1e-10)
        assert update.grad_norm == pytest.approx(wanted.grad_norm, rel=1e-10)
        assert (update.tokens, update.weight) == (wanted.tokens, wanted.weight)
        assert update.learning_rate == wanted.learning_rate
    for ours, theirs in zip(replayed.parameters, plain.parameters, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    for state, other in (
        (replayed.checkpoint({}).training, plain.checkpoint({}).training),
        (replayed.checkpoint({}).model, plain.checkpoint({}).model),
    ):
        assert state.keys() == other.keys()
        for key, tensor in state.items():
            torch.testing.assert_close(tensor, other[key], rtol=0, atol=1e-9)
    read = batches[0].source, batches[0].decoder_input
    outputs = [one.model.eval()(*read) for one in (replayed, plain)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-9)


class Recorded:
    """The kernels that work has run, on the tensors that it has used: what a CUDA graph keeps."""

    def __init__(self, work: Callable[[], None]) -> None:
        def called() -> torch.Tensor:
            work()
            return torch.zeros(())

        self._kernels = make_fx(called)()

    def replay(self) -> None:
        """Run them again."""
        with torch.no_grad():
            self._kernels()


@pytest.mark.parametrize(
    ("name", "kind"), [("plain", "adam"), ("landmarks", "adamw"), ("rotary", "muon")]
)
def test_kernels_that_were_recorded_once_make_all_later_updates(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No number of the first update, such as its rate or its weight, is left in them."""

    def record(self: Capture, work: Callable[[], None]) -> Recorded:
        work()
        return Recorded(work)

    monkeypatch.setattr(Capture, "__call__", record)
    schedule = {"kind": "linear", "warmup": 3, "total_steps": 9}
    # Adam makes steps of the decay of a bias that has no gradient, so rounding alone decides them.
    averaging, optimizer = {"kind": "ema"}, {"kind": kind, "weight_decay": 0.125 * (kind != "adam")}
    plan = recipe(MODELS[name], schedule=schedule, averaging=averaging, optimizer=optimizer)
    task = task_of(plan)
    model = task.build().double()
    plain = Learner(deepcopy(model), plan.training, plan.seed, CPU, task.loss)
    replayed = graph_learner(model, task)
    for number, batch in enumerate(batches_of(task, 12), 1):
        wanted, found = (one.update([[batch]], number) for one in (plain, replayed))
        assert found.loss == pytest.approx(wanted.loss, rel=1e-7)
        assert found.grad_norm == pytest.approx(wanted.grad_norm, rel=1e-6)
    state, other = (one.checkpoint({}) for one in (replayed, plain))
    for ours, theirs in ((state.model, other.model), (state.training, other.training)):
        for key, tensor in ours.items():
            torch.testing.assert_close(tensor, theirs[key], rtol=1e-5, atol=1e-7)


def test_a_rate_that_changes_reaches_what_was_captured() -> None:
    plan = recipe(schedule={"kind": "linear", "warmup": 3, "total_steps": 9})
    task = task_of(plan)
    model = task.build().double()
    plain = Learner(deepcopy(model), plan.training, plan.seed, CPU, task.loss)
    replayed = graph_learner(model, task)
    for number, batch in enumerate(batches_of(task, 9), 1):
        wanted, found = (one.update([[batch]], number) for one in (plain, replayed))
        assert found.learning_rate == wanted.learning_rate
    for ours, theirs in zip(replayed.parameters, plain.parameters, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-7)  # rates of float32


@pytest.mark.parametrize("kind", ["adam", "muon"])
def test_a_capture_changes_nothing(kind: str) -> None:
    plan = recipe(DROPPING, optimizer={"kind": kind}, averaging={"kind": "ema"})
    task = task_of(plan)
    batches = batches_of(task, 40)
    learner = graph_learner(task.build(), task)
    shapes = BatchShapes(plan.batching)
    first = shapes.of(batches[0])
    other = next(batch for batch in batches if shapes.of(batch) != first)
    before = deepcopy(learner.checkpoint({}).model)
    learner._graphs.prepare([shapes.pad(batches[0])])
    made = learner.checkpoint({}).training  # the moments of before the first step
    assert all(not tensor.any() for key, tensor in made.items() if key.startswith("optimizer/"))
    assert all(torch.equal(before[k], v) for k, v in learner.checkpoint({}).model.items())
    learner.update([[batches[0]]], 1)
    saved = deepcopy(learner.checkpoint({}))
    learner._graphs.prepare([shapes.pad(other)])
    now = learner.checkpoint({})
    assert all(torch.equal(saved.model[k], v) for k, v in now.model.items())
    assert all(torch.equal(saved.training[k], v) for k, v in now.training.items())


def test_what_is_drawn_is_no_matter_of_what_was_captured_when() -> None:
    plan = recipe(DROPPING)
    task = task_of(plan)
    model, batches = task.build(), batches_of(task, 8)
    shapes = BatchShapes(plan.batching)

    def weights(before: list[Batch]) -> torch.Tensor:
        learner = graph_learner(deepcopy(model), task)
        learner._graphs.prepare([shapes.pad(batch) for batch in before])
        for number, batch in enumerate(batches, 1):
            learner.update([[batch]], number)
        return torch.cat([p.detach().flatten() for p in learner.parameters])

    assert torch.equal(weights([]), weights(batches[::-1]))


def test_muon_takes_a_rate_that_is_a_tensor_as_one_that_is_a_number() -> None:
    plan = recipe(optimizer={"kind": "muon", "weight_decay": 0.125})
    model = task_of(plan).build().double()
    other = deepcopy(model)
    build = plan.training.optimizer.build
    for one, rate in ((model, 2**-5), (other, torch.tensor(2**-5))):
        optimizer = build(one, rate)
        chance = torch.Generator().manual_seed(1)
        for _ in range(3):
            for p in one.parameters():
                p.grad = torch.randn(p.shape, generator=chance, dtype=p.dtype)
            optimizer.step()
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("watched", [False, True])
def test_no_graph_of_autograd_outlives_its_update(watched: bool) -> None:
    """On a GPU it would keep the streams of its parameters, and a later capture would fail."""
    plan = recipe(DROPPING, watch={"every": 1} if watched else {})
    task = task_of(plan)
    alive: list[weakref.ref[Any]] = []

    def loss(*parts: Any) -> torch.Tensor:
        found = task.loss(*parts)
        alive.append(weakref.ref(found.grad_fn))
        return found

    shapes = BatchShapes(plan.batching)
    learner = GraphLearner(task.build(), plan.training, plan.seed, CPU, loss, shapes)
    learner.watch_from(0)
    gc.collect()
    gc.disable()
    try:
        for number, batch in enumerate(batches_of(task, 3), 1):
            learner.update([[batch]], number)
    finally:
        gc.enable()
    assert len(alive) >= 4
    assert [node() for node in alive] == [None] * len(alive)


# What a graph can capture.


class NoHost(TorchDispatchMode):
    """Refuses what has tensors on two devices: it would be a copy that waits."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        leaves = torch.utils._pytree.tree_leaves((args, kwargs, out))
        devices = {leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor)}
        assert len(devices) <= 1, f"{func} of {devices}"
        return out


@pytest.mark.parametrize("dropout", [{}, DROPPING], ids=["no dropout", "dropout"])
@pytest.mark.parametrize("name", MODELS)
def test_no_captured_update_asks_for_a_number(
    name: str, dropout: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On torch's device "meta" there are shapes and no numbers: to ask for one is an error."""
    task = task_of(recipe(MODELS[name] | dropout, max_grad_norm=1.0))
    model = task.build().to("meta")
    parameters = list(model.parameters())
    ids, mask = (torch.ones(8, 12, dtype=kind, device="meta") for kind in (torch.long, torch.bool))
    target = ids[:, :1].expand(-1, 11)
    batch = Batch(ids, mask, target, mask[:, :1].expand(-1, 11), ())
    weight, chance = torch.ones((), dtype=torch.float64, device="meta"), torch.Generator()

    def update() -> torch.Tensor:
        loss = task.loss(model, batch, 1, 1.0, chance, parameters)
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(loss / weight, parameters), strict=True
        ):
            parameter.grad = gradient
        return torch.nn.utils.clip_grad_norm_(parameters, 1.0)

    with pytest.raises(RuntimeError, match="meta"):
        update()

    def refused(*values: Any, **keywords: Any) -> torch.Tensor:
        raise AssertionError("torch.tensor copies from the host")

    with capturable(), NoHost(), monkeypatch.context() as patched:
        patched.setattr(torch, "tensor", refused)
        assert update().device.type == "meta"


def test_muon_asks_for_no_number_either() -> None:
    plan = recipe(optimizer={"kind": "muon"})
    matrix = torch.nn.Linear(4, 4, bias=False).to("meta")
    optimizer = plan.training.optimizer.build(matrix, torch.ones((), device="meta"))
    matrix.weight.grad = torch.zeros_like(matrix.weight)
    optimizer.step()


# A training.


def losses(folder: Path, event: str = "trained") -> list[float]:
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    return [line["loss"] for line in map(json.loads, lines) if line["event"] == event]


@pytest.mark.parametrize("more", [{}, {"gradient_accumulation_steps": 2}], ids=str)
def test_a_training_with_graphs_reports_what_one_without_reports(
    tmp_path: Path, twins: None, more: dict[str, Any]
) -> None:
    for name, graphs in (("graphs", True), ("plain", None)):
        train(recipe(updates=30, cuda_graphs=graphs, **more), tmp_path / name)
    for event in ("trained", "validated", "epoch"):
        key = "training_loss" if event == "epoch" else "loss"
        found, wanted = (
            [line[key] for line in Run(tmp_path / name).events() if line["event"] == event]
            for name in ("graphs", "plain")
        )
        assert wanted
        assert found == pytest.approx(wanted, rel=2e-3)
    one, other = (Run(tmp_path / name).model("last").state_dict() for name in ("graphs", "plain"))
    for name, weights in one.items():
        if not name.endswith("k_proj.bias"):  # its gradient is 0, which Adam makes steps of
            torch.testing.assert_close(weights, other[name], rtol=0, atol=5e-3)
    started = Run(tmp_path / "graphs").events()[0]
    assert any("CUDA graphs" in note for note in started["notes"])


@pytest.mark.parametrize("stop", [1, 6, 13])
def test_a_training_with_graphs_that_was_stopped_ends_with_the_same_bits(
    tmp_path: Path, twins: None, stop: int
) -> None:
    def plan(updates: int) -> Recipe:
        return recipe(
            DROPPING, updates, cuda_graphs=True, averaging={"kind": "ema"}, save_every=4,
            gradient_accumulation_steps=2, optimizer={"kind": "muon"}, watch={"every": 3},
        )  # fmt: skip

    train(plan(20), tmp_path / "whole")
    train(plan(stop), tmp_path / "half")
    train(plan(20), tmp_path / "half")
    whole, half = (CheckpointStore(tmp_path / name).read("00000020") for name in ("whole", "half"))
    for one, other in ((whole.model, half.model), (whole.training, half.training)):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[key], other[key]) for key in one)
    assert losses(tmp_path / "whole") == losses(tmp_path / "half")


def test_a_run_goes_on_without_graphs_and_with_them(tmp_path: Path, twins: None) -> None:
    for updates, graphs in ((4, True), (8, None), (12, True)):
        train(recipe(updates=updates, cuda_graphs=graphs), tmp_path)
    assert Run(tmp_path).events()[-1]["update"] == 12


def test_a_reading_with_graphs_is_one_without(tmp_path: Path, twins: None) -> None:
    for name, graphs in (("graphs", True), ("plain", None)):
        train(recipe(cuda_graphs=graphs, watch={"every": 4}), tmp_path / name)
    found, wanted = (read_history(tmp_path / n / "watch.jsonl") for n in ("graphs", "plain"))
    assert [record["step"] for record in found] == [1, 4, 8, 12]
    for one, other in zip(found, wanted, strict=True):
        for head, theirs in zip(one["heads"], other["heads"], strict=True):
            assert head.keys() == theirs.keys()
            for name, value in theirs.items():
                if name == "context_error":  # a count of roundings, which are others
                    assert max(head[name], value) < 8
                elif isinstance(value, int | float):
                    assert head[name] == pytest.approx(value, rel=1e-2, abs=1e-3), name
                else:
                    assert isinstance(value, str | list | None)


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Makes a weight NaN before an update."""
    submit = GraphLearner.submit

    def at(bad: int) -> None:
        def poison(self: GraphLearner[Any], shares: Any, number: int) -> Any:
            if number == bad:
                with torch.no_grad():
                    self.parameters[0].fill_(torch.nan)
            return submit(self, shares, number)

        monkeypatch.setattr(GraphLearner, "submit", poison)

    return at


@pytest.mark.parametrize(
    ("bad", "told", "more"),
    [
        (3, 5, {}),  # by the line of update 5
        (6, 8, {"log_every": 100}),  # before the validation
        (6, 7, {"log_every": 100, "save_every": 7}),  # before it is saved
        (2, 2, {"log_every": 100, "watch": {"every": 3}}),  # before the next is read
        (13, 14, {"log_every": 100, "updates": 14}),  # at the end
        (9, 9 + 16, {"log_every": 100, "updates": 60, "validation": {"translate": False,
                     "criterion": "loss", "every": 90}, "data": 4000}),
    ],
)  # fmt: skip
def test_no_checkpoint_and_no_reading_is_of_weights_that_are_not_finite(
    tmp_path: Path, twins: None, poisoned: Callable[[int], None], bad: int, told: int,
    more: dict[str, Any],
) -> None:  # fmt: skip
    options = {"updates": 14, **more}
    size = options.pop("data", 240)
    plan = recipe(**options, cuda_graphs=True)
    plan = plan.model_copy(update={"data": plan.data.model_copy(update={"train": size})})
    poisoned(bad)
    begun: list[int] = []
    original = GraphLearner.submit

    def counted(self: GraphLearner[Any], shares: Any, number: int) -> Any:
        begun.append(number)
        return original(self, shares, number)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(GraphLearner, "submit", counted)
        with pytest.raises(NotFiniteError, match=f"a finite loss at update {bad};") as caught:
            train(plan, tmp_path)
    assert "checkpoint" in str(caught.value)
    assert begun[-1] == told
    store = CheckpointStore(tmp_path)
    assert all(name < bad for name in store.numbered())
    for name in store.numbered():
        assert all(t.isfinite().all() for t in store.read(f"{name:08d}").model.values())
    if (tmp_path / "watch.jsonl").exists():
        assert all(record["step"] < bad for record in read_history(tmp_path / "watch.jsonl"))


def test_ctrl_c_saves_nothing_that_is_not_finite(
    tmp_path: Path, twins: None, poisoned: Callable[[int], None]
) -> None:
    poisoned(6)
    stopped = False

    def stop(event: Any) -> None:
        nonlocal stopped
        if not stopped and getattr(event, "update", 0) >= 5:
            stopped = True
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe(cuda_graphs=True), tmp_path, report=stop)
    assert all(name < 6 for name in CheckpointStore(tmp_path).numbered())


# What is refused.


def test_a_cpu_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(AttlasError, match=r"a CUDA device for training\.cuda_graphs = true"):
        train(recipe(cuda_graphs=True), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_several_processes_are_refused() -> None:
    with pytest.raises(AttlasError, match=r"one process for training\.cuda_graphs = true"):
        check_capturable(recipe(), torch.device("cuda"), ProcessGroup(0, 2))
    check_capturable(recipe(), torch.device("cuda"), ProcessGroup())


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        (recipe(scheduled_sampling={"kind": "constant", "p": 0.5}), "scheduled_sampling of p = 1"),
        (recipe(scheduled_sampling={"kind": "exponential", "k": 0.5}), "scheduled_sampling of p"),
        (recipe({"dropout": 0.1}, rdrop_alpha=1.0), "training.rdrop_alpha = 0"),
        (recipe(autocast="fp16"), "training.autocast = 'none', 'bf16' or 'auto'"),
    ],
)
def test_what_is_not_the_same_work_every_time_is_refused(plan: Recipe, named: str) -> None:
    with pytest.raises(AttlasError, match=named):
        check_recipe_capturable(plan)


def test_a_recurrent_model_is_refused() -> None:
    tables = recipe().tables()
    tables["model"] = {"kind": "recurrent", "embed_dim": 8, "hidden_dim": 8}
    with pytest.raises(AttlasError, match=r"model\.kind = .transformer. beside training"):
        check_recipe_capturable(Recipe.read(tables, "the test"))


SWITCHES = """
import torch
from attlas._hardware import tf32_products
from attlas.monitoring.precision import unit_roundoff

backends = torch.backends

def switches():
    gpu = [backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn]
    return [switch.fp32_precision for switch in (*gpu, backends.mkldnn.matmul, backends.cudnn)]

def older():
    found = []
    for read in (torch.get_float32_matmul_precision, lambda: backends.cudnn.allow_tf32):
        try:
            found.append(read())
        except RuntimeError:
            found.append("mixed")
    return found

{setting}
before, older_before = switches(), older()
for enabled in (True, False, True):
    with tf32_products(enabled):
        assert switches()[:3] == ["tf32" if enabled else "ieee"] * 3, switches()
        if older_before != ["mixed", "mixed"] and "fp32_precision" not in {setting!r}:
            assert older() == ["high" if enabled else "highest", enabled]
        with tf32_products(not enabled):
            assert switches()[:3] == ["ieee" if enabled else "tf32"] * 3, switches()
        assert switches()[:3] == ["tf32" if enabled else "ieee"] * 3, switches()
    assert switches() == before, (before, switches())
    assert older() == older_before, (older_before, older())
print(unit_roundoff(torch.zeros(1)))
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("setting", "bits"),
    [
        ("", 24),
        ("torch.set_float32_matmul_precision('high')", 11),
        ("torch.set_float32_matmul_precision('medium')", 8),
        ("backends.cudnn.allow_tf32 = False", 24),
        ("backends.fp32_precision = 'tf32'", 11),
        ("backends.fp32_precision = 'ieee'", 24),
        ("backends.cuda.matmul.fp32_precision = 'tf32'", 24),  # which is not that of a CPU
        ("backends.mkldnn.matmul.fp32_precision = 'bf16'", 8),
        ("backends.cudnn.rnn.fp32_precision = 'ieee'", 24),
    ],
)
def test_tf32_is_switched_both_ways_and_left_as_it_was(setting: str, bits: int) -> None:
    """By either API of torch; each in a process of its own, which it holds for."""
    script = SWITCHES.format(setting=setting)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 2.0**-bits
