"""One update: accumulation, clipping, smoothing, bad losses, precision."""

import weakref
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attlas._parallel import ThreadGroup
from attlas.data import Batch, padded
from attlas.data.vocabulary import BEGIN, END
from attlas.errors import AttlasError
from attlas.models import RecurrentConfig, RecurrentModel, SequenceToSequence, build
from attlas.models.rnn import encoder
from attlas.ops import linear
from attlas.ops.linear import bf16_linear, is_bf16_matmul
from attlas.training import precision
from attlas.training.config import TrainingConfig
from attlas.training.distributed import Command, ProcessGroup
from attlas.training.learner import Learner
from attlas.training.loss import cross_entropy, rdrop_sequence_loss, sequence_loss
from attlas.training.precision import Precision
from attlas.training.scheduled_sampling import scheduled_sampling_logits, teacher_forced
from support.products import by_onednn

PAIRS = [
    ([5, 6, 7], [9, 9]),
    ([8], [4, 5, 6, 7, 8]),
    ([4, 4], []),
    ([4, 6, 5, 8, 9], [7]),
    ([9], [8, 8, 8]),
]


def batch(*places: int) -> Batch:
    source = padded([[*PAIRS[place][0], END] for place in places])
    target = padded([[BEGIN, *PAIRS[place][1], END] for place in places])
    return Batch(*source, *target, places)


class CrossEntropy:
    """The loss of a translation, as small as it can be written."""

    def __init__(self, settings: TrainingConfig) -> None:
        self.settings = settings

    def __call__(
        self,
        model: SequenceToSequence[Any],
        some: Batch,
        number: int,
        scale: float,
        generator: torch.Generator,
        parameters: list[torch.nn.Parameter],
    ) -> torch.Tensor:
        token_mask, smoothing = some.expected_mask, self.settings.label_smoothing
        right = self.settings.scheduled_sampling.probability(number - 1)
        if right < 1.0:
            logits = scheduled_sampling_logits(model, some, right, "sample", generator)
            return cross_entropy(logits[token_mask], some.expected[token_mask], smoothing)
        if self.settings.rdrop_alpha:
            return rdrop_sequence_loss(
                model.logits, teacher_forced(model, some.twice()), some.expected, token_mask,
                smoothing,
                self.settings.rdrop_alpha, parameters, scale,
            )  # fmt: skip
        features = teacher_forced(model, some)
        return sequence_loss(
            model.logits, features, some.expected, token_mask, smoothing, parameters, scale
        )


Some = Learner[SequenceToSequence[Any], Batch]


def learner(
    *, thread_group: ThreadGroup | None = None, dropout: float = 0.0, **settings: Any
) -> Some:
    torch.manual_seed(0)
    config = RecurrentConfig(embed_dim=6, hidden_dim=8, encoder_hidden_dim=4, dropout=dropout)
    model: RecurrentModel = build(config, 10, 10)
    training = TrainingConfig.read({"max_steps": 1, **settings}, "the test")
    return Learner(model, training, 1, torch.device("cpu"), CrossEntropy(training), thread_group)


def gradients(of: Some) -> dict[str, torch.Tensor]:
    found = {name: p.grad for name, p in of.model.named_parameters() if p.grad is not None}
    assert len(found) == len(list(of.model.parameters()))
    return found


@pytest.mark.parametrize("settings", [{}, {"label_smoothing": 0.1}, {"rdrop_alpha": 5.0}], ids=str)
@pytest.mark.parametrize("split", [[(0,), (1,), (2,), (3,), (4,)], [(0, 1, 2), (3, 4)]])
def test_batches_of_any_sizes_together_give_the_gradient_of_one_big_batch(
    split: list[tuple[int, ...]], settings: dict[str, float]
) -> None:
    apart, together = learner(**settings), learner(**settings)
    seen = apart.update([[batch(*places) for places in split]], 1)
    expected = together.update([[batch(0, 1, 2, 3, 4)]], 1)
    for name, gradient in gradients(apart).items():
        assert torch.allclose(gradient, gradients(together)[name], rtol=1e-4, atol=1e-7), name
    assert seen.loss == pytest.approx(expected.loss, rel=1e-6)
    assert seen.tokens == expected.tokens == 16


@pytest.mark.parametrize(("size", "rdrop_alpha"), [(1, 0.0), (2, 0.0), (3, 0.0), (2, 5.0)])
def test_shares_of_a_thread_group_give_the_gradient_of_one_big_batch(
    size: int, rdrop_alpha: float
) -> None:
    apart = learner(thread_group=ThreadGroup(size), rdrop_alpha=rdrop_alpha)
    together = learner(rdrop_alpha=rdrop_alpha)
    seen = apart.update([[batch(0, 3)], [batch(1, 4)], [batch(2)]][:size], 1)
    expected = together.update([[batch(0, 3), batch(1, 4), batch(2)][:size]], 1)
    for name, gradient in gradients(apart).items():
        assert torch.allclose(gradient, gradients(together)[name], rtol=1e-4, atol=1e-7), name
    assert seen.loss == pytest.approx(expected.loss, rel=1e-6)
    assert seen.tokens == expected.tokens


@pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch has no oneDNN"
)
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("size", [1, 2], ids=["alone", "a thread group"])
def test_an_update_leaves_the_same_weights_whichever_library_multiplies(
    optimizer: str, size: int
) -> None:
    def weights(by: bool) -> torch.Tensor:
        with by_onednn(by) as products:
            one = learner(
                thread_group=ThreadGroup(size), optimizer={"kind": optimizer}, learning_rate=0.1
            )
            for number in range(1, 4):
                one.update([[batch(0, 1, 2), batch(3)], [batch(3, 4)]][:size], number)
        assert bool(products) == by
        return torch.cat([p.detach().flatten() for p in one.model.parameters()])

    # A step of Adam is as long for a gradient of 1e-8 as for one of 1, so rounding may turn some.
    different = (weights(True) - weights(False)).abs() > 1e-3
    assert different.float().mean() < 0.02


@pytest.mark.parametrize(("right", "rdrop_alpha"), [(1.0, 0.0), (0.5, 0.0), (1.0, 5.0)])
def test_what_a_thread_group_draws_is_no_matter_of_who_comes_first(
    right: float, rdrop_alpha: float
) -> None:
    scheduled_sampling = {"kind": "constant", "p": right}

    def weights() -> torch.Tensor:
        one = learner(
            thread_group=ThreadGroup(2),
            dropout=0.5,
            scheduled_sampling=scheduled_sampling,
            rdrop_alpha=rdrop_alpha,
        )
        for number in range(1, 6):
            one.update([[batch(0, 1, 2), batch(3)], [batch(3, 4)]], number)
        return torch.cat([p.detach().flatten() for p in one.model.parameters()])

    first = weights()
    assert all(torch.equal(first, weights()) for _ in range(5))


def test_the_shares_of_an_update_drop_different_places() -> None:
    one, other = learner(thread_group=ThreadGroup(2), dropout=0.5), learner(dropout=0.5)
    twice = one.update([[batch(0)], [batch(0)]], 1).loss
    assert twice != pytest.approx(2 * other.update([[batch(0)]], 1).loss, rel=1e-6)


def test_the_loss_of_an_update_is_the_smoothed_cross_entropy_of_its_tokens() -> None:
    one = learner(label_smoothing=0.1)
    some = batch(0, 1)
    logits = one.model(some.source, some.decoder_input, token_mask=some.source_mask)
    wanted = torch.nn.functional.cross_entropy(
        logits[some.expected_mask], some.expected[some.expected_mask], label_smoothing=0.1,
        reduction="sum",
    )  # fmt: skip
    assert one.update([[some]], 1).loss == pytest.approx(wanted.item(), rel=1e-6)


def test_a_gradient_is_clipped_to_its_norm_and_zero_means_any() -> None:
    clipped, free = learner(max_grad_norm=0.01), learner(max_grad_norm=0.0)
    assert clipped.update([[batch(0)]], 1).grad_norm == pytest.approx(
        free.update([[batch(0)]], 1).grad_norm
    )
    norms = [
        torch.stack([g.norm() for g in gradients(one).values()]).norm().item()
        for one in (clipped, free)
    ]
    assert norms[0] == pytest.approx(0.01, rel=1e-3)
    assert norms[1] > 0.02


def test_the_rate_follows_the_schedule() -> None:
    one = learner(learning_rate=0.5, schedule={"kind": "constant", "warmup": 10})
    assert one.update([[batch(0)]], 3).learning_rate == pytest.approx(0.15)
    assert one.optimizer.param_groups[0]["lr"] == pytest.approx(0.15)


def test_a_step_is_that_of_torch_s_own_adam() -> None:
    ours, theirs = (
        learner(learning_rate=0.01, max_grad_norm=0.0),
        learner(learning_rate=0.01, max_grad_norm=0.0),
    )
    plain = torch.optim.Adam(theirs.model.parameters(), lr=0.01, fused=False)
    for number in (1, 2, 3):
        ours.update([[batch(0, 1)]], number)
        plain.zero_grad()
        some = batch(0, 1)
        logits = theirs.model(some.source, some.decoder_input, token_mask=some.source_mask)[
            some.expected_mask
        ]
        loss = torch.nn.functional.cross_entropy(logits, some.expected[some.expected_mask])
        torch.autograd.backward(loss)
        plain.step()
    other = theirs.model.state_dict()
    for name, tensor in ours.model.state_dict().items():
        assert torch.allclose(tensor, other[name], atol=1e-5), name


class Oddly(torch.nn.Module):
    """Of one parameter the gradient has padded rows; of three it is the same tensor, or a part of
    it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 4))
        self.whole = torch.nn.Parameter(torch.randn(5))
        self.head, self.tail = (torch.nn.Parameter(torch.randn(size)) for size in (2, 3))

    def forward(self, some: Batch) -> torch.Tensor:
        wide = torch.cat([self.weight, torch.zeros(3, 1)], 1)
        slopes = torch.linspace(-1, 1, 15).view(3, 5) * some.source.sum()
        return (wide * slopes).sum() + (torch.cat([self.head, self.tail]) + self.whole).cos().sum()


@pytest.mark.parametrize("max_grad_norm", [0.0, 0.5])
@pytest.mark.parametrize(
    "shares", [[[(0,)]], [[(0,), (1,)]], [[(0,)], []], [[(0,), (1,)], [(2,)]]], ids=str
)
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_gradients_may_come_padded_or_share_their_memory(
    optimizer: str, shares: list[list[tuple[int]]], max_grad_norm: float
) -> None:
    torch.manual_seed(0)
    ours, settings = (
        Oddly(),
        {"max_steps": 1, "max_grad_norm": max_grad_norm, "optimizer": {"kind": optimizer}},
    )
    training = TrainingConfig.read(settings, "the test")
    theirs = deepcopy(ours)
    padded_rows, whole, head, tail = torch.autograd.grad(ours(batch(0)), list(ours.parameters()))
    assert padded_rows.stride() == (5, 1)
    places = {one.untyped_storage().data_ptr() for one in (whole, head, tail)}
    assert len(places) == 1

    def loss(model: Oddly, some: Batch, *_: object) -> torch.Tensor:
        return model(some)

    learns = Learner(ours, training, 1, torch.device("cpu"), loss, ThreadGroup(len(shares)))
    plain = training.optimizer.build(theirs, training.learning_rate)
    given = [[batch(*one) for one in share] for share in shares]
    every = [one for share in given for one in share]
    for number in (1, 2, 3):
        learns.update(given, number)
        for group in plain.param_groups:
            group["lr"] = training.learning_rate * training.schedule.factor(number)
        plain.zero_grad()
        total = torch.stack([theirs(one) for one in every]).sum()
        (total / sum(one.tokens for one in every)).backward()  # lays gradients out as parameters
        for parameter in theirs.parameters():
            assert parameter.grad is not None
            parameter.grad = parameter.grad.clone()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), max_grad_norm or float("inf"))
        plain.step()
        for parameter, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(parameter, expected)


def test_an_lstm_that_reads_padded_batches_steps_as_one_that_packs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = RecurrentConfig(embed_dim=6, hidden_dim=8, encoder_hidden_dim=4, cell="lstm")
    training = TrainingConfig.read({"max_steps": 1}, "the test")
    found = []
    for pads in (True, False):
        monkeypatch.setattr(encoder, "padded_lstm_is_faster", lambda *_, pads=pads: pads)
        torch.manual_seed(0)
        model = build(config, 10, 10)
        learns = Learner(model, training, 1, torch.device("cpu"), CrossEntropy(training))
        for number in (1, 2, 3):
            learns.update([[batch(0, 1, 2, 3, 4)]], number)
        found.append(model.state_dict())
    for name, tensor in found[0].items():
        torch.testing.assert_close(tensor, found[1][name], msg=name)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_at_once_and_leaves_the_weights(bad: float) -> None:
    one = learner()
    before = {name: tensor.clone() for name, tensor in one.model.state_dict().items()}
    logits = one.model.logits
    one.model.logits = lambda features: logits(features) * bad  # type: ignore[method-assign]
    with pytest.raises(
        AttlasError, match="a finite loss at update 7; got nan; train in another folder"
    ):
        one.update([[batch(0)]], 7)
    assert all(torch.equal(t, before[name]) for name, t in one.model.state_dict().items())


def test_a_gradient_that_is_not_finite_stops_at_once_and_leaves_the_weights() -> None:
    one = learner()
    before = {name: tensor.clone() for name, tensor in one.model.state_dict().items()}
    one.parameters[0].register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(AttlasError, match=r"a finite gradient at update 7; got (nan|inf)"):
        one.update([[batch(0)]], 7)
    assert all(torch.equal(t, before[name]) for name, t in one.model.state_dict().items())


def test_an_update_is_a_function_of_its_number_also_with_dropout_and_sampling() -> None:
    def weights(first: int) -> torch.Tensor:
        torch.manual_seed(first)  # what was drawn before must not matter
        one = learner(scheduled_sampling={"kind": "constant", "p": 0.5})
        one.model.train()
        torch.rand(first)
        one.update([[batch(0, 1, 2)]], 5)
        return torch.cat([p.detach().flatten() for p in one.model.parameters()])

    assert torch.equal(weights(1), weights(9))


def test_a_restored_learner_takes_the_same_next_step() -> None:
    settings = {"averaging": {"kind": "ema", "decay": 0.5}, "optimizer": {"kind": "adamw"}}
    one, other = learner(**settings), learner(**settings)
    for number in (1, 2):
        one.update([[batch(0, 1)]], number)
    other.restore(one.checkpoint({}), Path("here"))
    for some in (one, other):
        some.update([[batch(2, 3)]], 3)
    first, second = one.checkpoint({}), other.checkpoint({})
    for before, after in ((first.model, second.model), (first.training, second.training)):
        assert before.keys() == after.keys()
        assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The products of bfloat16 that are made, however small they are."""
    made: list[int] = []

    def product(*given: torch.Tensor) -> torch.Tensor:
        made.append(given[0].numel())
        return bf16_linear(*given)

    monkeypatch.setattr(linear, "_LEAST_HALVES", 0)
    monkeypatch.setattr(linear, "_FEWEST_ROWS", 1)
    monkeypatch.setattr(linear, "bf16_linear", product)
    return made


@pytest.mark.parametrize("size", [1, 2], ids=["alone", "a thread group"])
def test_bfloat16_autocast_learns_in_float32_weights(size: int, halves: list[int]) -> None:
    shares = [[batch(0, 1)], [batch(2, 3, 4)]][:size]
    exact, coarse = (
        learner(thread_group=ThreadGroup(size)),
        learner(thread_group=ThreadGroup(size), autocast="bf16"),
    )
    exactly = exact.update(shares, 1).loss
    assert not halves
    assert coarse.update(shares, 1).loss == pytest.approx(exactly, rel=0.02)
    assert halves
    assert {p.dtype for p in coarse.model.parameters()} == {torch.float32}
    for name, gradient in gradients(coarse).items():
        wanted = gradients(exact)[name]
        close = 0.05 * wanted.abs().max().item()
        assert torch.allclose(gradient, wanted, rtol=0.1, atol=close), name
        assert not torch.equal(gradient, wanted), name


@pytest.mark.parametrize("autocast", ["none", "bf16"])
def test_bfloat16_on_a_cpu_is_for_the_products_of_linear_maps_and_for_nothing_else(
    autocast: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested, kept = [], []
    one = learner(autocast=autocast)
    own = one.loss

    def heard(*given):
        requested.append(is_bf16_matmul())
        kept.append(torch.is_autocast_enabled("cpu"))
        return own(*given)

    monkeypatch.setattr(one, "loss", heard)
    one.update([[batch(0, 1)], [batch(2)]], 1)
    assert requested == [autocast == "bf16"] * 2
    assert kept == [False] * 2
    assert not is_bf16_matmul()


@pytest.mark.parametrize("instructions", [False, True, None])
def test_bfloat16_without_instructions_for_it_is_reported_and_not_chosen(
    instructions: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "has_bf16_instructions", lambda: instructions)
    here, alone = torch.device("cpu"), ProcessGroup()
    assert Precision("none", here).slower is None
    reported = Precision("bf16", here).slower
    assert "no instructions for bfloat16" in reported if instructions is False else reported is None
    chosen = Precision.settled("auto", here, alone)
    assert chosen.numbers == ("bfloat16" if instructions else "float32")
    assert chosen.slower is None
    assert Precision.settled("auto", torch.device("meta"), alone).numbers == "float32"


class Led(ProcessGroup):
    """A process of a process group whose first one says so."""

    def __init__(self, says: int) -> None:
        super().__init__(1, 2)
        self.says = says

    def broadcast(self, number: int) -> int:
        assert number != self.says
        return self.says


def test_what_auto_is_the_first_process_says_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for says, numbers in enumerate(("float32", "bfloat16")):
        monkeypatch.setattr(precision, "has_bf16_instructions", lambda says=says: not says)
        settled = Precision.settled("auto", torch.device("cpu"), Led(says))
        assert settled.numbers == numbers


@pytest.mark.parametrize("begun", [False, True])
def test_a_training_keeps_the_numbers_in_which_it_began(
    begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "has_bf16_instructions", lambda: begun)
    one = learner(autocast="auto")
    one.update([[batch(0, 1)]], 1)
    checkpoint = one.checkpoint({})
    monkeypatch.setattr(precision, "has_bf16_instructions", lambda: not begun)
    other = learner(autocast="auto")
    assert other.precision.numbers == ("float32" if begun else "bfloat16")
    other.restore(checkpoint, Path("here"))
    assert other.precision.numbers == ("bfloat16" if begun else "float32")
    reported = other.precision.slower
    assert "in which this training began" in reported if begun else reported is None
    # Before it was noted, what is chosen now is all that is known.
    older = {"scaler": checkpoint.facts["scaler"]}
    again = learner(autocast="auto")
    again.restore(replace(checkpoint, facts=older), Path("here"))
    assert again.precision.numbers == ("float32" if begun else "bfloat16")


def test_a_training_does_not_go_on_in_numbers_that_the_device_lacks() -> None:
    one = learner()
    checkpoint = one.checkpoint({})
    elsewhere = replace(checkpoint, facts={**checkpoint.facts, "numbers": "float16"})
    with pytest.raises(
        AttlasError, match=r"float16, in which this training began.*continue on such a device"
    ):
        one.restore(elsewhere, Path("here"))


def test_float16_without_cuda_is_an_error_that_names_the_way_out() -> None:
    with pytest.raises(AttlasError, match=r"use training\.autocast = 'bf16' or 'none'"):
        learner(autocast="fp16")


def test_a_scaled_gradient_is_the_plain_one_and_the_step_the_same() -> None:
    plain, scaled = learner(label_smoothing=0.1), learner(label_smoothing=0.1)
    scaled.precision.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    for one in (plain, scaled):
        one.update([[batch(0, 1), batch(2, 3, 4)]], 1)
    for name, gradient in gradients(scaled).items():
        assert torch.allclose(gradient, gradients(plain)[name], rtol=1e-4, atol=1e-7), name


class Parts:
    """As if every tensor were spread over a process_group: each one asked for is put together
    anew."""

    parted = True

    def __init__(self) -> None:
        self.made: list[weakref.ref[torch.Tensor]] = []
        self.most = 0  # at a time

    def whole(self, tensor: torch.Tensor) -> torch.Tensor:
        found = tensor.detach().clone()
        self.made.append(weakref.ref(found))
        self.most = max(self.most, sum(one() is not None for one in self.made))
        return found


def forward_by_length(rank: int) -> tuple[Some, Parts]:
    """A learner that has made an update, as one of two processes."""
    one, parts = learner(averaging={"kind": "ema"}), Parts()
    one.update([[batch(0, 1)]], 1)
    one.process_group, one._distributed = ProcessGroup(rank, 2), parts  # type: ignore[assignment]
    return one, parts


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """What is told the other processes, which are not there."""
    words: list[Command] = []
    monkeypatch.setattr(ProcessGroup, "send", lambda process_group, word: words.append(word))
    return words


def test_the_first_process_keeps_what_is_put_together_and_the_others_one_tensor_at_a_time(
    said: list[Command],
) -> None:
    (leader, _), (other, parts) = forward_by_length(0), forward_by_length(1)
    wanted = learner(averaging={"kind": "ema"})
    wanted.update([[batch(0, 1)]], 1)
    kept, plain = leader.checkpoint({}), wanted.checkpoint({})
    assert said[0] == Command.GATHER_ALL
    for ours, theirs in ((kept.model, plain.model), (kept.training, plain.training)):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    assert other.gather_all() == ({}, {})
    assert len(parts.made) == len(kept.model) + len(kept.training)
    assert parts.most == 1


def test_for_a_validation_the_weights_alone_are_put_together(said: list[Command]) -> None:
    one, parts = forward_by_length(0)
    found = one.as_whole(lambda: learner().model)
    assert said == [Command.GATHER_WEIGHTS]
    assert found is not one.model
    weights = one.model.state_dict()
    assert all(torch.equal(t, weights[name]) for name, t in found.state_dict().items())
    assert len(parts.made) == len(weights)
