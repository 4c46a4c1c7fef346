"""The callbacks of trainers: their protocols, without the trainers' own dependencies."""

import copy
import inspect
import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn
from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState

import attlas
from attlas.errors import UnsupportedError
from attlas.monitoring import lightning_callback, read_history, transformers_callback
from support import small_models


def test_the_callback_of_transformers_steps_with_the_optimizer(tmp_path: Path):
    """The handler of transformers' `Trainer` calls it; two forward passes are one step."""
    model = small_models.model("llama").train()
    callback = transformers_callback(every=2)
    handler = CallbackHandler([callback], model, None, None, None)
    args = SimpleNamespace(output_dir=str(tmp_path / "output"))
    state, control = TrainerState(), TrainerControl()
    handler.on_train_begin(args, state, control)
    ids = torch.arange(4, 12).reshape(1, 8)
    for _ in range(4):
        handler.on_step_begin(args, state, control)
        for _ in range(2):
            model(input_ids=ids)
            handler.on_substep_end(args, state, control)
        state.global_step += 1
        handler.on_step_end(args, state, control)
    handler.on_train_end(args, state, control)
    records = read_history(tmp_path / "output" / "watch.jsonl")
    assert [record["step"] for record in records] == [1, 2, 4]
    assert {head["queries"] for record in records for head in record["heads"]} == {16}
    assert not model._forward_hooks
    assert callback.watch.history == records


def test_a_trainer_that_goes_on_counts_from_its_step(tmp_path: Path):
    model = small_models.model("llama").train()
    callback = transformers_callback(every=2, path=tmp_path / "x.jsonl")
    handler = CallbackHandler([callback], model, None, None, None)
    state, control, args = TrainerState(), TrainerControl(), SimpleNamespace(output_dir="nowhere")
    state.global_step = 6
    handler.on_train_begin(args, state, control)
    for _ in range(2):
        model(input_ids=torch.arange(4, 12).reshape(1, 8))
        handler.on_step_end(args, state, control)
    handler.on_train_end(args, state, control)
    assert [record["step"] for record in read_history(tmp_path / "x.jsonl")] == [8]


def test_a_trainer_that_has_failed_is_watched_anew(tmp_path: Path):
    """No event says so: `Trainer` calls `on_train_begin` once more, as after too large a batch."""
    model = small_models.model("llama").train()
    callback = transformers_callback(every=1)
    handler = CallbackHandler([callback], model, None, None, None)
    args = SimpleNamespace(output_dir=str(tmp_path))
    ids = torch.arange(4, 12).reshape(1, 8)
    for _ in range(2):
        state, control = TrainerState(), TrainerControl()
        handler.on_train_begin(args, state, control)
        assert len(model._forward_hooks) == 1
        for _ in range(2):
            model(input_ids=ids)
            state.global_step += 1
            handler.on_step_end(args, state, control)
        model(input_ids=ids)  # and fails
    assert [record["heads"][0]["queries"] for record in callback.watch.history] == [8, 8]
    handler.on_train_end(args, state, control)
    assert not model._forward_hooks


class Lightning(nn.Module):
    """As a LightningModule is: its training step calls what it likes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).square().mean()


def faked(monkeypatch: pytest.MonkeyPatch, package: str = "lightning.pytorch"):
    """A package with the class `Callback` alone, which the tests have not installed."""
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    fake = ModuleType(package)
    fake.Callback = type("Callback", (), {})
    if "." in package:
        monkeypatch.setitem(sys.modules, "lightning", ModuleType("lightning"))
    monkeypatch.setitem(sys.modules, package, fake)
    return fake.Callback


def trainer_of(folder: Path, global_step: int = 0):
    return SimpleNamespace(log_dir=str(folder), default_root_dir="nowhere", global_step=global_step)


def batches(callback, trainer, module, count: int, optimizers: int = 1, summed: int = 1):
    """What the trainer of Lightning does: its step counts each step of each optimizer."""
    batch = torch.randn(2, 5, 16)
    for number in range(count):
        module.training_step(batch, number)
        if number % summed == summed - 1:
            trainer.global_step += optimizers
        callback.on_train_batch_end(trainer, module, None, batch, number)


def steps(folder: Path) -> list[int]:
    return [record["step"] for record in read_history(folder / "watch.jsonl")]


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_the_callback_of_lightning_steps_with_the_optimizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
):
    base = faked(monkeypatch, package)
    callback = lightning_callback(every=2)
    assert isinstance(callback, base)
    trainer, module = trainer_of(tmp_path), Lightning().train()
    callback.on_train_start(trainer, module)
    batches(callback, trainer, module, 8, summed=2)
    callback.on_train_end(trainer, module)
    records = read_history(tmp_path / "watch.jsonl")
    assert [record["step"] for record in records] == [1, 2, 4]
    assert {head["queries"] for record in records for head in record["heads"]} == {20}
    assert module.training_step.__func__ is Lightning.training_step


def test_with_two_optimizers_a_training_goes_on_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`global_step` of Lightning is then twice the number of batches."""
    faked(monkeypatch)
    first, trainer, module = lightning_callback(every=2), trainer_of(tmp_path), Lightning().train()
    first.on_train_start(trainer, module)
    batches(first, trainer, module, 3, optimizers=2)
    stored = first.state_dict()
    batches(first, trainer, module, 1, optimizers=2)  # after the checkpoint
    first.on_train_end(trainer, module)
    assert steps(tmp_path) == [1, 2, 4]
    second, trainer = lightning_callback(every=2), trainer_of(tmp_path, global_step=6)
    second.load_state_dict(stored)
    second.on_train_start(trainer, module)
    batches(second, trainer, module, 3, optimizers=2)
    second.on_train_end(trainer, module)
    assert steps(tmp_path) == [1, 2, 4, 6]
    assert lightning_callback().state_dict() == {}


def test_a_training_of_lightning_that_fails_is_watched_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    faked(monkeypatch)
    callback, trainer, module = lightning_callback(every=1), trainer_of(tmp_path), Lightning()
    callback.on_train_start(trainer, module.train())
    batches(callback, trainer, module, 2)
    callback.on_exception(trainer, module, RuntimeError("no room"))
    assert not module._forward_hooks
    assert module.training_step.__func__ is Lightning.training_step
    callback.on_train_start(trainer_of(tmp_path), module)
    batches(callback, trainer_of(tmp_path), module, 1)
    callback.on_train_end(trainer, module)
    assert steps(tmp_path) == [1]


def test_a_training_step_says_which_arguments_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Short(Lightning):
        def training_step(self, batch):
            return super().training_step(batch, 0)

    faked(monkeypatch)
    module = Short()
    lightning_callback(every=1).on_train_start(trainer_of(tmp_path), module.train())
    assert [*inspect.signature(module.training_step).parameters] == ["batch"]
    module.training_step(torch.randn(2, 5, 16)).backward()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_of_a_module_has_a_training_step_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied
):
    faked(monkeypatch)
    callback, trainer, module = lightning_callback(every=1), trainer_of(tmp_path), Lightning()
    callback.on_train_start(trainer, module.train())
    other = copied(module)
    other.training_step(torch.randn(2, 5, 16), 0).backward()
    assert other.layer.linear1.weight.grad is not None
    assert module.layer.linear1.weight.grad is None
    batches(callback, trainer, module, 1)
    assert callback.watch.history[0]["heads"][0]["queries"] == 10


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnsupportedError, match="pip install lightning"):
        lightning_callback()
    with pytest.raises(UnsupportedError, match="pip install transformers"):
        attlas.monitoring.transformers_callback()
