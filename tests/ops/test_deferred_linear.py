"""A deferred gradient is the gradient."""

import gc

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attlas.ops.deferred_linear import DeferredLinear

_sizes = st.integers(1, 4)


def recurrence(linear: object, state: Tensor, steps: int) -> Tensor:
    """h_t = tanh(W h_{t−1} + b), whose every step reads the same matrix."""
    for _ in range(steps):
        state = torch.tanh(linear(state))  # type: ignore[operator]
    return state.square().sum()


@given(_sizes, _sizes, st.integers(0, 5), st.booleans(), st.integers(0, 2**31))
def test_every_gradient_equals_that_of_the_plain_linear_map(
    batch: int, width: int, steps: int, biased: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(  # noqa: E731 (three tensors of one kind)
        *shape, generator=generator, dtype=torch.float64
    ).requires_grad_()
    weight, bias, start = draw(width, width), draw(width) if biased else None, draw(batch, width)
    wanted = [x for x in (weight, bias, start) if x is not None]
    plain = torch.autograd.grad(
        recurrence(lambda x: F.linear(x, weight, bias), start, steps), wanted, allow_unused=True
    )
    deferred = torch.autograd.grad(
        recurrence(DeferredLinear(weight, bias), start, steps), wanted, allow_unused=True
    )
    for one, other in zip(plain, deferred, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(other, one, rtol=1e-10, atol=1e-10)


def test_a_graph_that_is_kept_can_be_walked_back_twice() -> None:
    weight = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    loss = recurrence(DeferredLinear(weight), torch.ones(2, 3, dtype=torch.float64), 4)
    (once,) = torch.autograd.grad(loss, weight, retain_graph=True)
    (twice,) = torch.autograd.grad(loss, weight)
    assert torch.equal(once, twice)


@given(_sizes, st.integers(1, 4), st.booleans(), st.integers(0, 2**31))
def test_every_second_derivative_equals_that_of_the_plain_linear_map(
    width: int, steps: int, biased: bool, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    weight, bias, start = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((width, width), (width,), (3, width))
    )
    wanted = [weight, start, bias] if biased else [weight, start]
    linears = [
        lambda x: F.linear(x, weight, bias if biased else None),
        DeferredLinear(weight, bias if biased else None),
    ]
    found = []
    for linear in linears:
        loss = recurrence(linear, start, steps)
        first = torch.autograd.grad(loss, wanted, create_graph=True)
        found += [  # of each first derivative alone, then of all and the loss
            torch.autograd.grad(one.square().sum(), wanted, retain_graph=True) for one in first
        ]
        whole = loss + sum(one.square().sum() for one in first)
        second = torch.autograd.grad(whole, wanted, create_graph=True)
        third = torch.autograd.grad(sum(one.sum() for one in second), wanted, retain_graph=True)
        found += [second, third, torch.autograd.grad(loss, wanted)]
    half = len(found) // 2
    torch.testing.assert_close(found[half:], found[:half], rtol=1e-8, atol=1e-8)


def test_without_gradients_nothing_is_kept() -> None:
    weight = torch.randn(3, 3, requires_grad=True)
    with torch.no_grad():
        outputs = DeferredLinear(weight)(torch.ones(2, 3))
    assert not outputs.requires_grad
    torch.testing.assert_close(outputs, F.linear(torch.ones(2, 3), weight))


def alive(*shape: int) -> int:
    """How many tensors of this shape there are; other tests leave theirs behind."""
    gc.collect()
    # By type(): isinstance also asks x.__class__, at which some deprecated objects warn.
    return sum(issubclass(type(x), Tensor) and x.shape == shape for x in gc.get_objects())


def test_the_pairs_die_with_the_graph() -> None:
    before = alive(37, 3)
    weight = torch.randn(3, 3, requires_grad=True)
    state = torch.ones(37, 3, requires_grad=True)
    loss = recurrence(DeferredLinear(weight), state, 3)
    torch.autograd.grad(loss, state, retain_graph=True)  # the parameters are not asked for
    del loss
    assert alive(37, 3) - before == 1  # the state itself


def test_autocast_keeps_its_own_way() -> None:
    weight = torch.randn(3, 3, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = DeferredLinear(weight)(torch.ones(2, 3))
    assert outputs.dtype is torch.bfloat16
    outputs.sum().backward()
    assert weight.grad is not None


# torch's derivatives forwards are scripts.
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_transforms_of_functions_go_through_it() -> None:
    weight, state = torch.randn(3, 3, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)

    def total(of: Tensor) -> Tensor:
        return recurrence(DeferredLinear(of), state, 3)

    wanted = weight.clone().requires_grad_()
    (expected,) = torch.autograd.grad(total(wanted), wanted)
    torch.testing.assert_close(torch.func.grad(total)(weight), expected)
    along = torch.randn_like(weight)
    slope = torch.func.jvp(total, (wanted.detach().requires_grad_(),), (along,))[1]
    torch.testing.assert_close(slope, (expected * along).sum())
