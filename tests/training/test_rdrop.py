"""R-Drop's loss against torch's divergences, output and gradient; in training and out of it."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attlas.data import Batch
from attlas.errors import AttlasError
from attlas.ops.dropout import dropout_generator, dropout_mask
from attlas.training import Recipe
from attlas.training.loss import (
    rdrop_cross_entropy,
    rdrop_cross_entropy_and_gradient,
    rdrop_sequence_loss,
    sequence_loss,
)
from attlas.training.scheduled_sampling import teacher_forced
from attlas.training.setup import prepare_run
from support.labelled_runs import reviews, tables, write_lines

pytestmark = pytest.mark.usefixtures("small_chunks")

CASES = given(
    predictions=st.integers(1, 9),
    classes=st.integers(2, 12),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    alpha=st.sampled_from([0.0, 0.5, 5.0]),
    seed=st.integers(0, 1000),
)


def by_torch(logits: Tensor, expected: Tensor, smoothing: float, alpha: float) -> Tensor:
    """As the paper writes it, halved."""
    total = logits.new_zeros(())
    for (ours, theirs), token in zip(logits, expected, strict=True):
        p, q = (one.log_softmax(-1) for one in (ours, theirs))
        for one in (ours, theirs):
            total = total + 0.5 * F.cross_entropy(one, token, label_smoothing=smoothing)
        for one, other in ((p, q), (q, p)):
            total = total + 0.25 * alpha * F.kl_div(other, one, reduction="sum", log_target=True)
    return total


@CASES
def test_it_is_the_formula_of_the_paper_halved(
    predictions: int, classes: int, smoothing: float, alpha: float, seed: int
) -> None:
    torch.manual_seed(seed)
    logits = torch.randn(predictions, 2, classes, dtype=torch.double)
    expected = torch.randint(classes, (predictions,))
    ours = rdrop_cross_entropy(logits, expected, smoothing, alpha)
    assert torch.allclose(ours, by_torch(logits, expected, smoothing, alpha), rtol=1e-12)


@CASES
def test_the_gradient_is_that_of_autograd(
    predictions: int, classes: int, smoothing: float, alpha: float, seed: int
) -> None:
    torch.manual_seed(seed)
    logits = 3 * torch.randn(predictions, 2, classes, dtype=torch.double)
    expected = torch.randint(classes, (predictions,))
    loss, gradient = rdrop_cross_entropy_and_gradient(logits, expected, smoothing, alpha)
    logits.requires_grad_()
    plain = rdrop_cross_entropy(logits, expected, smoothing, alpha)
    (theirs,) = torch.autograd.grad(plain, logits)
    assert torch.allclose(loss, plain, rtol=1e-12)
    assert torch.allclose(gradient, theirs, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("alpha", [0.0, 5.0])
@pytest.mark.parametrize("length", [3, 300, 700])  # in one chunk, and in several
def test_a_sequence_is_the_sum_over_its_real_positions(alpha: float, length: int) -> None:
    torch.manual_seed(length)
    layer = nn.Linear(5, 7).double()
    features = torch.randn(4, length, 5, dtype=torch.double, requires_grad=True)
    expected, token_mask = torch.randint(7, (2, length)), torch.rand(2, length) < 0.7
    parameters = list(layer.parameters())
    loss = rdrop_sequence_loss(layer, features, expected, token_mask, 0.1, alpha, parameters)
    first, second = layer(features).split(2)
    pairs = torch.stack([first[token_mask], second[token_mask]], dim=1)
    plain = rdrop_cross_entropy(pairs, expected[token_mask], 0.1, alpha)
    assert torch.allclose(loss, plain, rtol=1e-12)
    ours = torch.autograd.grad(loss / 3, [features, *parameters])
    theirs = torch.autograd.grad(plain / 3, [features, *parameters])
    for our, their in zip(ours, theirs, strict=True):
        assert torch.allclose(our, their, rtol=1e-9, atol=1e-12)


def test_two_equal_readings_lose_what_one_loses() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(5, 7)
    features, expected = torch.randn(2, 9, 5), torch.randint(7, (2, 9))
    token_mask = torch.rand(2, 9) < 0.7
    twice = rdrop_sequence_loss(
        layer, features.repeat(2, 1, 1), expected, token_mask, 0.1, 5.0, list(layer.parameters())
    )
    once = sequence_loss(layer, features, expected, token_mask, 0.1, list(layer.parameters()))
    assert torch.allclose(twice, once, rtol=1e-5)


def test_a_batch_twice_has_all_rows_and_all_of_them_again() -> None:
    ids = torch.arange(6).reshape(2, 3)
    batch = Batch(ids, ids > 0, ids + 1, ids >= 0, (4, 7))
    twice = batch.twice()
    assert twice.tokens == 2 * batch.tokens
    assert twice.indices == (4, 7, 4, 7)
    for both, one in ((twice.source, batch.source), (twice.target_mask, batch.target_mask)):
        assert torch.equal(both, torch.cat([one, one]))


TABLES: dict[str, dict[str, Any]] = {
    "data": {"kind": "toy", "task": "reverse", "length": [1, 4], "symbols": 5, "train": 40,
             "valid": 4, "test": 4},
    "vocabulary": {"kind": "words", "size": 20},
    "model": {"kind": "transformer", "embed_dim": 8, "num_heads": 2, "ffn_dim": 8,
              "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.1},
    "training": {"max_steps": 2, "rdrop_alpha": 5.0},
}  # fmt: skip


def recipe(**changes: dict[str, object]) -> Recipe:
    return Recipe.read({n: t | changes.get(n, {}) for n, t in TABLES.items()}, "the test")


@pytest.mark.parametrize("dropout", [0.0, 5e-6])
def test_consistency_wants_a_dropout_that_is_not_rounded_to_none(dropout: float) -> None:
    with pytest.raises(AttlasError, match="expected a dropout beside"):
        recipe(model={"dropout": dropout})
    assert dropout_mask(torch.ones(9), dropout) is None
    assert recipe(model={"dropout": dropout, "attention_dropout": 1e-5})


def test_consistency_wants_the_right_tokens_fed() -> None:
    with pytest.raises(AttlasError, match="expected the right tokens fed"):
        recipe(training={"scheduled_sampling": {"kind": "constant", "p": 0.5}})


RECURRENT = {
    "kind": "recurrent",
    "embed_dim": 8,
    "hidden_dim": 8,
    "encoder_hidden_dim": 8,
    "dropout": 0.1,
}


@pytest.fixture(params=["transformer", "recurrent", "classifier"])
def begun(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The tables of a recipe."""
    if request.param == "classifier":
        return tables(write_lines(tmp_path / "reviews.jsonl", reviews(60)), label_smoothing=0.1)
    model = RECURRENT if request.param == "recurrent" else TABLES["model"]
    return {**TABLES, "model": model}


class Reading:
    """A batch of a task, read by a fresh model, each time under the same dropout."""

    def __init__(
        self, begun: dict[str, Any], folder: Path, rdrop_alpha: float, after: int = 0
    ) -> None:
        training = {
            **begun["training"], "rdrop_alpha": rdrop_alpha, "rdrop_after": after,
        }  # fmt: skip
        self.task = prepare_run(Recipe.read({**begun, "training": training}, "the test"), folder)
        torch.manual_seed(0)
        self.model = self.task.build()
        batches = self.task.encoded()
        self.batch = batches.batch(max(batches.epoch(0), key=len))

    def loss(self, number: int = 1) -> Tensor:
        parameters = list(self.model.parameters())
        with dropout_generator(torch.Generator().manual_seed(5)):
            return self.task.loss(
                self.model, self.batch, number, 1.0, torch.Generator(), parameters
            )

    @torch.no_grad()
    def both(self) -> tuple[Tensor, Tensor]:
        """log p of the labels or tokens in one reading of all rows, and in the other."""
        with dropout_generator(torch.Generator().manual_seed(5)):
            if isinstance(self.batch, Batch):
                twice = self.batch.twice()
                logits = self.model.logits(teacher_forced(self.model, twice))[twice.expected_mask]
            else:
                source, token_mask = self.batch.source, self.batch.source_mask
                logits = self.model(
                    torch.cat([source, source]), torch.cat([token_mask, token_mask])
                )
        one, other = logits.log_softmax(-1).chunk(2)
        return one, other


def test_where_nothing_drops_out_a_task_loses_what_it_loses_without(
    begun: dict[str, Any], tmp_path: Path
) -> None:
    losses = []
    for alpha in (0.0, 5.0):
        reading = Reading(begun, tmp_path / str(alpha), alpha)
        reading.model.eval()
        losses.append(reading.loss().item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_in_training_both_readings_of_a_task_differ_and_what_parts_them_is_in_its_loss(
    begun: dict[str, Any], tmp_path: Path
) -> None:
    losses, alphas = {}, (1e-9, 2.0, 5.0)
    for alpha in alphas:
        reading = Reading(begun, tmp_path / str(alpha), alpha)
        losses[alpha] = reading.loss().item()
    p, q = reading.both()
    apart = sum(F.kl_div(a, b, reduction="sum", log_target=True) for a, b in ((p, q), (q, p)))
    assert apart > 1e-3 * reading.batch.tokens
    for alpha in alphas[1:]:
        expected = losses[1e-9] + 0.25 * alpha * float(apart)
        assert losses[alpha] == pytest.approx(expected, rel=1e-5)
    assert losses[5.0] > losses[2.0] > losses[1e-9]


def test_the_updates_before_read_once_and_those_after_twice(
    begun: dict[str, Any], tmp_path: Path
) -> None:
    once, twice = Reading(begun, tmp_path / "once", 0.0), Reading(begun, tmp_path / "twice", 5.0)
    later = Reading(begun, tmp_path / "later", 5.0, after=7)
    assert [later.loss(number).item() for number in (1, 7)] == [once.loss().item()] * 2
    assert [later.loss(number).item() for number in (8, 20)] == [twice.loss().item()] * 2
    assert once.loss() != twice.loss()


def test_updates_to_wait_for_want_something_to_come() -> None:
    with pytest.raises(AttlasError, match=r"expected a training\.rdrop_alpha above 0"):
        recipe(training={"rdrop_alpha": 0.0, "rdrop_after": 3})


def test_the_gradient_of_a_task_draws_both_readings_together(
    begun: dict[str, Any], tmp_path: Path
) -> None:
    """A step along it lessens what parts them, which one along the plain loss's need not."""
    reading = Reading(begun, tmp_path, 1e4)  # so great that nothing else counts
    before = reading.loss()
    parameters = list(reading.model.parameters())
    found = torch.autograd.grad(before, parameters, allow_unused=True)
    length = torch.stack([g.norm() for g in found if g is not None]).norm()
    with torch.no_grad():
        for parameter, gradient in zip(parameters, found, strict=True):
            if gradient is not None:
                parameter -= 1e-2 * gradient / length
    assert reading.loss() < before


def test_half_precise_logits_lose_what_precise_ones_lose() -> None:
    torch.manual_seed(0)
    logits = torch.randn(500, 2, 3).bfloat16()
    expected = torch.randint(3, (500,))
    found = rdrop_cross_entropy(logits, expected, 0.1, 5.0)
    assert found.dtype == torch.float32
    assert torch.equal(found, rdrop_cross_entropy(logits.float(), expected, 0.1, 5.0))


def test_the_gradient_under_autocast_is_that_of_float32() -> None:
    torch.manual_seed(0)
    logits, expected = torch.randn(300, 2, 50), torch.randint(50, (300,))
    logits.scatter_add_(2, expected[:, None, None].expand(-1, 2, 1), torch.full((300, 2, 1), 12.0))
    exact = rdrop_cross_entropy_and_gradient(logits, expected, 0.1, 5.0)
    with torch.autocast("cpu", torch.bfloat16):
        found = rdrop_cross_entropy_and_gradient(logits, expected, 0.1, 5.0)
    assert torch.equal(found[0], exact[0])
    assert torch.equal(found[1], exact[1])


def test_a_classifier_under_autocast_sums_its_loss_in_float32(tmp_path: Path) -> None:
    begun = tables(write_lines(tmp_path / "reviews.jsonl", reviews(60)))
    for alpha in (0.0, 5.0):
        reading = Reading(begun, tmp_path / str(alpha), alpha)
        with torch.autocast("cpu", torch.bfloat16):
            assert reading.model(reading.batch.source, reading.batch.source_mask).dtype == (
                torch.bfloat16
            )
            coarse = reading.loss()
        assert coarse.dtype == torch.float32
        assert coarse.item() == pytest.approx(reading.loss().item(), rel=0.02)
