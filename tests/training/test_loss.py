"""The loss against torch's, output and gradient."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attlas._hardware import capturable
from attlas.errors import AttlasError
from attlas.training.loss import _ELSEWHERE, chunked, cross_entropy_and_gradient, sequence_loss

pytestmark = pytest.mark.usefixtures("small_chunks")


class Layer(nn.Module):
    """A vocabulary layer with a hidden one before it, and a parameter that takes no part."""

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, vocabulary)
        self.idle = nn.Parameter(torch.zeros(3))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.hidden(features)))


@given(
    rows=st.integers(1, 4),
    length=st.integers(1, 400),
    vocabulary=st.integers(2, 9),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    seed=st.integers(0, 1000),
    captured=st.booleans(),
)
def test_the_loss_and_its_gradients_are_those_of_torch_over_the_real_tokens(
    rows: int, length: int, vocabulary: int, smoothing: float, seed: int, captured: bool
) -> None:
    torch.manual_seed(seed)
    layer = Layer(5, vocabulary).double()
    features = torch.randn(rows, length, 5, dtype=torch.double, requires_grad=True)
    expected = torch.randint(vocabulary, (rows, length))
    token_mask = torch.rand(rows, length) < 0.7
    token_mask[0, 0] = True
    parameters = list(layer.parameters())
    used = [p for p in parameters if p is not layer.idle]

    with capturable() if captured else nullcontext():
        loss = sequence_loss(layer, features, expected, token_mask, smoothing, parameters)
    ours = torch.autograd.grad(loss / 3, [features, *used])
    theirs = F.cross_entropy(
        layer(features).flatten(0, 1),
        expected.masked_fill(~token_mask, -100).flatten(),
        ignore_index=-100,
        label_smoothing=smoothing,
        reduction="sum",
    )
    assert torch.allclose(loss, theirs, rtol=1e-12)
    for our, their in zip(ours, torch.autograd.grad(theirs / 3, [features, *used]), strict=True):
        assert torch.allclose(our, their, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("way", [nullcontext, capturable])
def test_without_gradients_the_loss_is_the_same(
    way: Callable[[], AbstractContextManager[None]],
) -> None:
    torch.manual_seed(0)
    layer = Layer(4, 7)
    features, expected = torch.randn(2, 600, 4), torch.randint(7, (2, 600))
    token_mask = torch.rand(2, 600) < 0.5
    with torch.no_grad(), way():
        apart = sequence_loss(layer, features, expected, token_mask, 0.1, [])
    together = sequence_loss(layer, features, expected, token_mask, 0.1, list(layer.parameters()))
    assert apart.item() == pytest.approx(together.item(), rel=1e-6)


def test_junk_in_padding_changes_neither_loss_nor_gradient() -> None:
    torch.manual_seed(0)
    layer = Layer(4, 7)
    features, expected = torch.randn(2, 5, 4), torch.randint(7, (2, 5))
    token_mask = torch.tensor(
        [[True, True, True, False, False], [True, False, False, False, False]]
    )
    junk = features.masked_fill(~token_mask.unsqueeze(-1), float("nan"))
    losses, gradients = [], []
    for some in (features, junk):
        some = some.clone().requires_grad_()
        loss = sequence_loss(layer, some, expected, token_mask, 0.1, list(layer.parameters()))
        losses.append(loss.item())
        gradients.append(torch.autograd.grad(loss, some)[0])
    assert losses[0] == losses[1]
    assert torch.equal(*gradients)
    assert gradients[1][~token_mask].abs().sum() == 0


def test_no_tensor_of_all_tokens_by_the_vocabulary_is_ever_made() -> None:
    sizes: list[int] = []

    class Watched(Layer):
        def forward(self, features: torch.Tensor) -> torch.Tensor:
            sizes.append(len(features))
            return super().forward(features)

    layer = Watched(4, 7)
    features = torch.randn(4, 1000, 4, requires_grad=True)
    token_mask = torch.ones(4, 1000, dtype=torch.bool)
    expected = torch.randint(7, (4, 1000))
    loss = sequence_loss(layer, features, expected, token_mask, 0.0, list(layer.parameters()))
    torch.autograd.backward(loss)
    assert sum(sizes) == 4000  # each token once: nothing is computed again for the gradient
    assert max(sizes) < 1000


@pytest.mark.parametrize(
    ("vocabulary", "rows"),
    [(7, 142), (12, 82), (20, 64), (1000, 64)],  # as many as 1,000 logits; 64 at least; even
)
def test_as_many_rows_are_taken_at_a_time_as_the_budget_of_logits_allows(
    vocabulary: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attlas.training.loss._ON_CPU", 1000)
    layer, sizes = nn.Linear(4, vocabulary), list[int]()

    def logits(features: torch.Tensor) -> torch.Tensor:
        sizes.append(len(features))
        return layer(features)

    features, token_mask = torch.randn(1, 500, 4), torch.ones(1, 500, dtype=torch.bool)
    expected = torch.randint(vocabulary, (1, 500))
    sequence_loss(logits, features, expected, token_mask, 0.0, list(layer.parameters()))
    taken = [size for size in sizes if size]  # it may be asked of no row how many words there are
    assert taken[:-1] == [rows] * (500 // rows)
    assert sum(taken) == 500


@pytest.mark.parametrize(("device", "rows"), [("cpu", 100), ("meta", 300)])
def test_a_device_beside_the_cpu_has_a_budget_of_its_own(
    device: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attlas.training.loss._ON_CPU", 1000)
    monkeypatch.setattr("attlas.training.loss._ELSEWHERE", 3000)
    layer, sizes = nn.Linear(4, 10, device=device), list[int]()

    def logits(features: torch.Tensor) -> torch.Tensor:
        sizes.append(len(features))
        return layer(features)

    features = torch.zeros(650, 4, device=device, requires_grad=True)
    expected = torch.zeros(650, dtype=torch.long, device=device)
    loss = chunked(logits, cross_entropy_and_gradient, features, expected, list(layer.parameters()))
    torch.autograd.backward(loss)
    assert sizes == [0, *[rows] * (650 // rows), 50]
    assert features.grad is not None
    assert features.grad.shape == features.shape


def test_the_budget_of_another_device_gives_the_same_loss_and_gradients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(0)
    layer, sizes = Layer(4, 7).double(), list[int]()
    features = torch.randn(2, 300, 4, dtype=torch.double, requires_grad=True)
    expected, token_mask = torch.randint(7, (2, 300)), torch.rand(2, 300) < 0.8
    used = [p for p in layer.parameters() if p is not layer.idle]

    def logits(some: torch.Tensor) -> torch.Tensor:
        sizes.append(len(some))
        return layer(some)

    def outcome() -> list[torch.Tensor]:
        loss = sequence_loss(logits, features, expected, token_mask, 0.1, list(layer.parameters()))
        return [loss.detach(), *torch.autograd.grad(loss, [features, *used])]

    in_chunks = outcome()
    assert max(sizes) == 64
    monkeypatch.setattr("attlas.training.loss._ON_CPU", _ELSEWHERE)
    torch.testing.assert_close(outcome(), in_chunks, rtol=1e-10, atol=1e-13)
    assert max(sizes) == int(token_mask.sum()) > 64


def test_two_parameters_that_autograd_gives_one_gradient_have_each_the_sum_of_all_chunks() -> None:
    torch.manual_seed(0)
    weight, *biases = (nn.Parameter(torch.randn(shape)) for shape in ((4, 7), (7,), (7,)))
    features, expected = torch.randn(1, 500, 4), torch.randint(7, (1, 500))
    token_mask = torch.ones(1, 500, dtype=torch.bool)

    def logits(some: torch.Tensor) -> torch.Tensor:
        return some @ weight + (biases[0] + biases[1])

    parameters = [weight, *biases]
    ours = torch.autograd.grad(
        sequence_loss(logits, features, expected, token_mask, 0.0, parameters), parameters
    )
    plain = F.cross_entropy(logits(features)[0], expected[0], reduction="sum")
    for our, their in zip(ours, torch.autograd.grad(plain, parameters), strict=True):
        assert torch.allclose(our, their, rtol=1e-4, atol=1e-4)


def test_under_bfloat16_autocast_the_gradient_reaches_the_weights_in_float32() -> None:
    torch.manual_seed(0)
    layer = Layer(4, 7)
    features, expected = torch.randn(2, 600, 4, requires_grad=True), torch.randint(7, (2, 600))
    token_mask = torch.ones(2, 600, dtype=torch.bool)
    exact = sequence_loss(layer, features, expected, token_mask, 0.1, list(layer.parameters()))
    with torch.autocast("cpu", torch.bfloat16):
        loss = sequence_loss(layer, features, expected, token_mask, 0.1, list(layer.parameters()))
    torch.autograd.backward(loss)
    assert layer.out.weight.grad is not None
    assert layer.out.weight.grad.dtype == torch.float32
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), rel=1e-2)


@pytest.mark.parametrize("scale", [2.0**16, 2.0**20 / 600])
def test_gradients_that_vanish_in_float16_are_taken_at_the_scale_they_will_have(
    scale: float,
) -> None:
    torch.manual_seed(0)
    weight = torch.randn(7, 4) * 1e-9
    features = torch.randn(2, 300, 4, dtype=torch.float16, requires_grad=True)
    expected, token_mask = torch.randint(7, (2, 300)), torch.ones(2, 300, dtype=torch.bool)

    def logits(some: torch.Tensor) -> torch.Tensor:
        return some.float() @ weight.T

    def gradient(loss: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(loss * scale, features)[0]

    plain = gradient(
        F.cross_entropy(logits(features[token_mask]), expected[token_mask], reduction="sum")
    )
    assert plain.abs().max() > 0
    chunked = gradient(sequence_loss(logits, features, expected, token_mask, 0.0, [], scale))
    assert torch.allclose(chunked, plain, rtol=1e-2, atol=1e-6)
    late = gradient(sequence_loss(logits, features, expected, token_mask, 0.0, []))
    assert not torch.allclose(late, plain, rtol=1e-2, atol=1e-6)


def test_a_gradient_that_is_to_be_differentiated_is_refused() -> None:
    layer, rows = torch.nn.Linear(4, 7), torch.randn(1, 5, 4, requires_grad=True)
    expected, token_mask = torch.randint(7, (1, 5)), torch.ones(1, 5, dtype=torch.bool)
    loss = sequence_loss(layer, rows, expected, token_mask, 0.0, list(layer.parameters()), 1.0)
    with pytest.raises(AttlasError, match="not differentiated again; got create_graph=True"):
        torch.autograd.grad(loss, rows, create_graph=True)
