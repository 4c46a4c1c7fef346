"""Products of bfloat16 between numbers of float32: what they give, and where they are used."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attlas.ops import linear as linear_module
from attlas.ops import linear as module
from attlas.ops.deferred_linear import DeferredLinear
from attlas.ops.linear import (
    Linear,
    bf16_linear,
    bf16_matmul,
    has_bf16_instructions,
    is_bf16_matmul,
    linear,
)

EIGHT_BITS = 2.0**-8  # how far a number of 1 and more, below 2, is from the nearest that has eight


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products are not worth it, and are here what is quick to check."""
    monkeypatch.setattr(linear_module, "_LEAST_HALVES", 0)


def drawn(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(shape).requires_grad_() for shape in shapes]


@given(
    rows=st.integers(16, 40),
    inputs=st.integers(1, 30),
    outputs=st.integers(1, 30),
    biased=st.booleans(),
    seed=st.integers(0, 99),
)
def test_outputs_and_gradients_are_those_of_float32_to_eight_bits(
    rows: int, inputs: int, outputs: int, biased: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    x, weight, bias = drawn((rows, inputs), (outputs, inputs), (outputs,))
    given_ = (x, weight, bias) if biased else (x, weight)
    toward = torch.randn(rows, outputs)
    with bf16_matmul():
        y = linear(*given_)
    found = torch.autograd.grad(y, given_, toward)
    exact = nn.functional.linear(*given_)
    expected = torch.autograd.grad(exact, given_, toward)
    # Both factors are off by so much at the most, and so is what comes out.
    sizes = [
        x.abs() @ weight.abs().t() + (bias.abs() if biased else 0.0),
        toward.abs() @ weight.abs(),
        toward.abs().t() @ x.abs(),
        toward.abs().sum(0),
    ]
    assert len(sizes) >= 1 + len(given_)
    for one, other, size in zip((y, *found), (exact, *expected), sizes, strict=False):
        assert one.dtype == torch.float32
        assert ((one - other).abs() <= 3.1 * EIGHT_BITS * size + 1e-6).all()


def test_it_is_what_torch_makes_of_rounded_numbers() -> None:
    x, weight, bias = (part.detach() for part in drawn((20, 6), (5, 6), (5,)))
    half = torch.bfloat16
    expected = nn.functional.linear(x.to(half), weight.to(half), bias.to(half)).float()
    with bf16_matmul():
        assert torch.equal(Linear.forward(layer(weight, bias), x), expected)
    assert torch.equal(bf16_linear(x, weight, bias), expected)
    assert not torch.equal(linear(x, weight, bias), expected)


def layer(weight: Tensor, bias: Tensor) -> Linear:
    made = Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        made.weight.copy_(weight)
        made.bias.copy_(bias)
    return made


def test_it_is_for_this_thread_and_until_the_block_ends() -> None:
    assert not is_bf16_matmul()
    with bf16_matmul():
        with bf16_matmul():
            assert is_bf16_matmul()
        assert is_bf16_matmul()
        with ThreadPoolExecutor(1) as other:
            assert not other.submit(is_bf16_matmul).result()
    assert not is_bf16_matmul()
    with pytest.raises(ZeroDivisionError), bf16_matmul():
        _ = 1 / 0
    assert not is_bf16_matmul()


def test_few_rows_and_other_numbers_are_multiplied_as_ever() -> None:
    x, weight = (part.detach() for part in drawn((20, 6), (5, 6)))
    with bf16_matmul():
        assert torch.equal(linear(x[:3], weight), nn.functional.linear(x[:3], weight))
        precise = linear(x.double(), weight.double())
    assert torch.equal(precise, nn.functional.linear(x.double(), weight.double()))


def test_its_gradient_can_be_differentiated() -> None:
    torch.manual_seed(3)
    x, weight = drawn((20, 6), (5, 6))

    def second() -> tuple[Tensor, ...]:
        (first,) = torch.autograd.grad(linear(x, weight).tanh().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), [x, weight])

    with bf16_matmul():
        found = second()
    for one, other in zip(found, second(), strict=True):
        torch.testing.assert_close(one, other, rtol=0.1, atol=0.15)


@pytest.mark.parametrize("twice", [False, True])
def test_a_map_in_a_loop_walks_back_as_it_came(
    twice: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(4)
    x, weight, bias = drawn((20, 18), (18, 18), (18,))
    made = []
    monkeypatch.setattr(
        linear_module, "bf16_linear", lambda *given: made.append(0) or bf16_linear(*given)
    )

    def gradients() -> tuple[Tensor, ...]:
        step = DeferredLinear(weight, bias)
        return torch.autograd.grad(
            step(step(x)).square().sum(), [x, weight, bias], create_graph=twice
        )

    with bf16_matmul():
        step = DeferredLinear(weight, bias)
        y = step(step(x))
    forwards = len(made)
    found = torch.autograd.grad(y.square().sum(), [x, weight, bias], create_graph=twice)
    assert (forwards, len(made)) == (2, 6 if twice else 5)  # one product of both steps, or two
    assert not is_bf16_matmul()
    for one, other in zip(found, gradients(), strict=True):
        close = 0.05 * other.detach().abs().max().item()
        torch.testing.assert_close(one, other, rtol=0.05, atol=close)


def test_parameters_are_rounded_once_in_a_block_and_anew_when_they_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, weight, bias = (part.detach() for part in drawn((20, 6), (5, 6), (5,)))
    made = layer(weight, bias)
    rounded = []
    really = Tensor.bfloat16
    monkeypatch.setattr(Tensor, "bfloat16", lambda one: rounded.append(one) or really(one))

    def times(parameter: Tensor) -> int:
        return sum(one is parameter for one in rounded)

    with bf16_matmul(), torch.inference_mode():
        first, again = made(x), made(x)
        assert torch.equal(first, again)
        assert (times(made.weight), times(made.bias)) == (1, 1)
        with bf16_matmul():
            made(x)  # a block of its own
        assert (times(made.weight), times(made.bias)) == (2, 2)
        made(x)
        assert times(made.weight) == 2
    with bf16_matmul(), torch.no_grad():
        assert torch.equal(made(x), first)
        made.weight.mul_(2.0)
        changed = made(x)
        assert (times(made.weight), times(made.bias)) == (4, 3)
    with bf16_matmul():
        made.requires_grad_(False)
        with torch.inference_mode():
            made(x)
        learnt = x.clone().requires_grad_()
        made(learnt).sum().backward()  # what was rounded in inference mode is of no use here
        assert learnt.grad is not None
        made.requires_grad_(True)
        assert torch.equal(made(x), changed)
        made(x).sum().backward()  # each has a gradient of its own
        assert made.weight.grad is not None
    torch.testing.assert_close(
        changed, nn.functional.linear(x, 2 * weight, bias), rtol=0.05, atol=0.05
    )


@pytest.mark.parametrize(
    ("machine", "instructions", "reported"),
    [
        ("x86_64", (), False),
        ("AMD64", ("_is_avx512_bf16_supported",), True),
        ("x86_64", ("_is_amx_tile_supported",), True),
        ("aarch64", (), None),
    ],
)
def test_whether_it_is_quicker_is_asked_of_the_processor(
    machine: str,
    instructions: tuple[str, ...],
    reported: bool | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module.platform, "machine", lambda: machine)
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda name=name: name in instructions)
    has_bf16_instructions.cache_clear()
    assert has_bf16_instructions() is reported
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name)  # they are torch's own
    has_bf16_instructions.cache_clear()
    assert has_bf16_instructions() is None
    has_bf16_instructions.cache_clear()
