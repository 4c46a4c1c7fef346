"""The callbacks of trainers: their protocols, without the trainers' own dependencies."""

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


class Lightning(nn.Module):
    """As a LightningModule is: its training step calls what it likes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).square().mean()


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_the_callback_of_lightning_steps_with_the_optimizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    fake = ModuleType(package)
    fake.Callback = type("Callback", (), {})
    if "." in package:
        monkeypatch.setitem(sys.modules, "lightning", ModuleType("lightning"))
    monkeypatch.setitem(sys.modules, package, fake)
    callback = lightning_callback(every=2)
    assert isinstance(callback, fake.Callback)
    trainer = SimpleNamespace(log_dir=str(tmp_path), default_root_dir="nowhere", global_step=0)
    module, batch = Lightning().train(), torch.randn(2, 5, 16)
    callback.on_train_start(trainer, module)
    for number in range(8):  # gradients of two batches are summed
        module.training_step(batch, number)
        trainer.global_step += number % 2
        callback.on_train_batch_end(trainer, module, None, batch, number)
    callback.on_train_end(trainer, module)
    records = read_history(tmp_path / "watch.jsonl")
    assert [record["step"] for record in records] == [1, 2, 4]
    assert {head["queries"] for record in records for head in record["heads"]} == {20}
    assert module.training_step.__func__ is Lightning.training_step


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnsupportedError, match="pip install lightning"):
        lightning_callback()
    with pytest.raises(UnsupportedError, match="pip install transformers"):
        attlas.monitoring.transformers_callback()
