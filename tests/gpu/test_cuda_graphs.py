"""Updates as CUDA graphs: as those without, and the same every time."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

from attlas.data import Batch
from attlas.runs import CheckpointStore
from attlas.training import Recipe, train
from attlas.training.cuda_graphs import BatchShapes, GraphLearner
from attlas.training.learner import Learner
from attlas.training.tasks import TranslationTask

MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rotary": {
        "positions": "rotary", "num_kv_heads": 1, "norm_type": "rms", "activation": "swiglu",
    },
    "learned": {"positions": "learned", "max_positions": 12, "norm": "post"},
    "landmarks": {"encoder_patterns": ["either(window(1), landmarks(0))"]},
}  # fmt: skip
DROPPING = {"dropout": 0.1, "attention_dropout": 0.1, "word_dropout": 0.1}


def recipe(model: dict[str, Any], **training: Any) -> Recipe:
    return Recipe.read(
        {
            "seed": 3,
            "data": {
                "kind": "toy", "length": [1, 9], "symbols": 12, "train": 600, "valid": 12,
                "test": 1,
            },
            "vocabulary": {"kind": "words", "size": 32},
            "batching": {"max_tokens": 128, "max_length": 16},
            "model": {
                "kind": "transformer", "embed_dim": 64, "num_heads": 2, "ffn_dim": 64,
                "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0, **model,
            },
            "training": {
                "max_steps": 20, "device": "cuda", "learning_rate": 2**-9, "tf32": False,
                "cuda_graphs": True, "log_every": 5,
                "validation": {"criterion": "loss", "translate": False, "every": 8}, **training,
            },
        },
        "the test",
    )  # fmt: skip


def task_of(plan: Recipe) -> TranslationTask:
    splits = plan.data.load()
    return TranslationTask(plan, splits, TranslationTask.vocabularies_of(plan, splits))


def groups_of(task: TranslationTask, count: int) -> list[list[Batch]]:
    made, size = task.batches(0), task.recipe.training.gradient_accumulation_steps
    order = made.epoch(0)
    places = (range(number * size, (number + 1) * size) for number in range(count))
    return [[made.batch(order[place % len(order)]) for place in group] for group in places]


def graph_learner(model: Any, task: TranslationTask) -> GraphLearner[Any]:
    plan = task.recipe
    shapes = BatchShapes(plan.batching, model.max_positions)
    return GraphLearner(model, plan.training, plan.seed, torch.device("cuda"), task.loss, shapes)


@pytest.mark.parametrize(
    "training",
    [
        {},
        {"optimizer": {"kind": "muon"}, "averaging": {"kind": "ema"}},
        {"optimizer": {"kind": "adamw", "weight_decay": 0.1}, "gradient_accumulation_steps": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", MODELS)
def test_replayed_updates_have_the_losses_of_ordinary_ones(
    name: str, training: dict[str, Any]
) -> None:
    plan = recipe(MODELS[name], **training)
    task = task_of(plan)
    model = task.build()
    device = torch.device("cuda")
    plain = Learner(deepcopy(model), plan.training, plan.seed, device, task.loss)
    replayed = graph_learner(model, task)
    groups = groups_of(task, 30)
    pending = [replayed.submit([group], number) for number, group in enumerate(groups, 1)]
    wanted = [plain.update([group], number) for number, group in enumerate(groups, 1)]
    for found, update in zip(pending, wanted, strict=True):
        result = found.result()
        assert result.loss == pytest.approx(update.loss, rel=5e-3)
        assert result.grad_norm == pytest.approx(update.grad_norm, rel=5e-2)
        assert result.tokens == update.tokens
    # The first updates differ by rounding alone.
    assert pending[0].result().loss == pytest.approx(wanted[0].loss, rel=1e-5)
    assert pending[1].result().loss == pytest.approx(wanted[1].loss, rel=1e-4)


def test_what_is_dropped_is_a_function_of_seed_and_update() -> None:
    task = task_of(recipe(DROPPING))
    model, groups = task.build(), groups_of(task, 1)

    def loss(number: int) -> float:
        return graph_learner(deepcopy(model), task).update([groups[0]], number).loss

    one, two, three = map(loss, (1, 2, 3))
    assert len({one, two, three}) == 3
    assert loss(2) == pytest.approx(two, rel=1e-6)


@pytest.mark.parametrize("autocast", ["none", "bf16"])
def test_a_training_that_was_stopped_goes_on_to_the_same_weights(
    autocast: str, tmp_path: Path
) -> None:
    if autocast == "bf16" and not torch.cuda.is_bf16_supported(False):
        pytest.skip("this GPU has no bfloat16")
    plan = recipe(DROPPING, autocast=autocast, averaging={"kind": "ema"}, watch={"every": 6})
    train(plan, tmp_path / "whole")
    for updates in (7, 20):
        limits = plan.training.model_copy(update={"max_steps": updates})
        train(plan.model_copy(update={"training": limits}), tmp_path / "half")
    whole, half = (CheckpointStore(tmp_path / name).read("00000020") for name in ("whole", "half"))
    for name, weights in whole.model.items():
        torch.testing.assert_close(half.model[name], weights, atol=1e-3, rtol=1e-3)


def test_a_training_with_graphs_learns_as_one_without(tmp_path: Path) -> None:
    for name, graphs in (("graphs", True), ("plain", None)):
        train(recipe(DROPPING, max_steps=120, cuda_graphs=graphs), tmp_path / name)
    ours, theirs = (
        CheckpointStore(tmp_path / name).read("00000120") for name in ("graphs", "plain")
    )
    best = [checkpoint.facts["best"][1] for checkpoint in (ours, theirs)]
    assert best[0] == pytest.approx(best[1], rel=0.1)
