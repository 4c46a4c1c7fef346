"""Products by oneDNN are those of torch's own linear map."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attlas import _hardware as processor
from attlas.ops import linear as module
from attlas.ops.linear import Linear, gradient_of_weight, linear
from support.products import by_onednn
from support.warm_processes import python

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch has no oneDNN"
)

_sizes = st.integers(1, 20)


@pytest.fixture(autouse=True)
def _facts() -> Iterator[None]:
    """What a test says of the processor is forgotten after it."""
    yield
    processor._fact.cache_clear()


def drawn(seed: int, *shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


@given(
    st.lists(_sizes, min_size=1, max_size=2), _sizes, _sizes, st.booleans(), st.integers(0, 2**31)
)
def test_output_and_gradients_are_those_of_torch(
    rows: list[int], inputs: int, outputs: int, biased: bool, seed: int
) -> None:
    x, weight, *bias = drawn(
        seed, (*rows, inputs), (outputs, inputs), *([(outputs,)] if biased else [])
    )
    with by_onednn() as products:
        y = linear(x, weight, *bias)
        found = torch.autograd.grad(y.sin().sum(), [x, weight, *bias])
    assert len(products) == 3  # forwards, and twice on the way back
    exact = [part.detach().double().requires_grad_() for part in (x, weight, *bias)]
    expected = F.linear(*exact)
    torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-4)
    for one, other in zip(found, torch.autograd.grad(expected.sin().sum(), exact), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-3)


def test_its_gradient_can_be_differentiated() -> None:
    parts = drawn(1, (5, 7), (4, 7), (4,))

    def second(of: Callable[..., Tensor], x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        (first,) = torch.autograd.grad(of(x, *rest).tanh().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), [x, *rest])

    with by_onednn():
        found = second(linear, *parts)
    for one, other in zip(found, second(F.linear, *parts), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_views_of_some_columns_are_multiplied_as_what_they_show() -> None:
    x, weight = drawn(2, (9, 12), (6, 20))
    with by_onednn() as products:
        ours = linear(x[:, 3:], weight[:, :9])
        turned = linear(x[:, :6], weight.t()[4:10].t())
        whole = linear(x.t(), weight[:, :9].contiguous())
    assert len(products) == 3
    torch.testing.assert_close(ours, x[:, 3:] @ weight[:, :9].t())
    torch.testing.assert_close(turned, x[:, :6] @ weight.t()[4:10])
    torch.testing.assert_close(whole, x.t() @ weight[:, :9].t())


@pytest.mark.parametrize("shapes", [((9, 3), (9, 5)), ((9, 5), (9, 3))])
def test_the_gradient_of_a_weight_is_that_product_whichever_side_is_wider(
    shapes: tuple[tuple[int, int], tuple[int, int]],
) -> None:
    gradient, x = drawn(3, *shapes)
    with by_onednn():
        found = gradient_of_weight(gradient, x)
    torch.testing.assert_close(found, gradient.t() @ x)
    assert found.is_contiguous()  # as a weight is: fused optimisers do not ask


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # by torch itself
def test_it_is_torchs_own_wherever_torch_must_see_it() -> None:
    x, weight, bias = (part.detach() for part in drawn(4, (8, 6), (5, 6), (5,)))
    expected = F.linear(x, weight, bias)
    with by_onednn() as products:
        linear(x.double(), weight.double(), bias.double())
        with torch.autocast("cpu", torch.bfloat16):
            assert linear(x, weight, bias).dtype == torch.bfloat16
        each = torch.func.vmap(lambda row: linear(row.unsqueeze(0), weight, bias))(x)
        torch.testing.assert_close(each.squeeze(1), expected)
        _, along = torch.func.jvp(lambda one: linear(one, weight, bias), (x,), (x,))
        torch.testing.assert_close(along, x @ weight.t())
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x)
            along = torch.autograd.forward_ad.unpack_dual(linear(dual, weight, bias)).tangent
        torch.testing.assert_close(along, x @ weight.t())
        exported = torch.export.export(Linear(6, 5), (x,))
        assert "mkldnn" not in str(exported.graph)
        assert linear(x.to("meta"), weight.to("meta")).shape == (8, 5)
        try:  # its `flags` would change the precision of products too
            torch._C._set_mkldnn_enabled(False)
            linear(x, weight, bias)
        finally:
            torch._C._set_mkldnn_enabled(True)
    assert not products
    with by_onednn(chosen=False) as products:
        assert torch.equal(linear(x, weight, bias), expected)
    assert not products


def test_a_bias_that_is_laid_out_or_shaped_otherwise_is_added_as_torch_adds_it() -> None:
    x, weight, grid, one = (part.detach() for part in drawn(7, (8, 6), (5, 6), (5, 3), (1,)))
    with by_onednn() as products:
        for bias in (grid[:, 1], one.expand(5)):
            torch.testing.assert_close(linear(x, weight, bias), F.linear(x, weight, bias))
        for bias in (one, one[0], grid.t()[:1], torch.randn(8, 5)):
            assert not module._pays_by_onednn(x, weight, bias)
        for other in (weight[0], weight.t(), weight.unsqueeze(0)):  # torch's own says what is wrong
            assert not module._pays_by_onednn(x, other, None)
    assert not products


def test_what_needs_no_gradient_is_not_kept() -> None:
    x, weight, bias = drawn(8, (8, 6), (5, 6), (5,))
    with by_onednn():
        given = x.clone()
        frozen = linear(given, weight.detach(), bias)
        with torch.no_grad():
            given.add_(1.0)
        frozen.sum().backward()
        fixed = x.detach()
        y = linear(fixed, weight, bias)
        with torch.no_grad():
            weight.add_(1.0)
        y.sum().backward()
    torch.testing.assert_close(weight.grad, fixed.sum(0).expand(5, -1))


TRACED = """
import sys, warnings
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from attlas.ops import linear as module
from support.products import by_onednn

warnings.simplefilter("ignore")
layer, x = module.Linear(6, 5), torch.randn(8, 6)
with by_onednn() as products:
    with FlopCounterMode(display=False) as counter:
        layer(x)
    assert counter.get_total_flops() == 2 * 8 * 6 * 5
    torch.fx.symbolic_trace(nn.Sequential(layer))
    torch.jit.trace(layer, x, check_trace=False)
    torch.compile(layer, fullgraph=True, backend="eager")(x)
    rows = torch.export.Dim("rows", min=1, max=100)
    exported = torch.export.export(layer, (x,), dynamic_shapes=({0: rows},))
    assert exported.module()(x[:1]).shape == (1, 5)
assert not products
"""


def test_who_traces_or_counts_sees_torchs_own() -> None:
    """In a process of its own, where nobody checks shapes, which tracing cannot see through."""
    done = python(f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n{TRACED}")
    assert done.returncode == 0, done.stderr


def test_few_kernels_are_kept_unless_somebody_said_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each shape is one: a thousand of them double the memory of a training."""
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    module.keep_few_kernels()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "32"
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")  # put back by the fixture


def test_it_is_said_before_torch_makes_a_kernel_of_its_own():
    """Of an LSTM, say: then it has been asked how many to keep."""
    code = """
import os
import attlas.layers
assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "32"
"""
    left = {k: v for k, v in os.environ.items() if not k.endswith("_CACHE_CAPACITY")}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, env=left)
    assert done.returncode == 0, done.stderr


def test_small_products_are_torchs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "onednn_is_faster", lambda: True)
    products: list[tuple[int, ...]] = []
    product = module._product
    monkeypatch.setattr(
        module, "_product", lambda x, *rest: products.append(tuple(x.shape)) or product(x, *rest)
    )
    for rows, side in ((15, 2048), (16, 1024), (17, 1023), (63, 512), (64, 512)):
        x, weight = (part.detach() for part in drawn(5, (rows, side), (side, side)))
        torch.testing.assert_close(linear(x, weight), F.linear(x, weight), rtol=1e-4, atol=1e-3)
    assert products == [(16, 1024), (17, 1023), (64, 512)]


def test_the_layer_is_torchs_by_its_numbers_and_names() -> None:
    torch.manual_seed(0)
    ours = Linear(3, 4)
    torch.manual_seed(0)
    theirs = nn.Linear(3, 4)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert all(map(torch.equal, ours.parameters(), theirs.parameters()))
    assert isinstance(ours, nn.Linear)


@pytest.mark.parametrize(
    ("maker", "capability", "onednn_is_faster"),
    [
        ("AuthenticAMD", "AVX512", True),
        ("AuthenticAMD", "AVX2", False),
        ("GenuineIntel", "AVX512", False),
        ("", "AVX512", False),
    ],
)
def test_onednn_leads_where_mkl_leaves_avx512_alone(
    maker: str, capability: str, onednn_is_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "processor_maker", lambda: maker)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert module.onednn_is_faster.__wrapped__() == (
        onednn_is_faster and torch.backends.mkl.is_available()
    )  # type: ignore[no-untyped-call]


def test_a_processor_is_named_by_its_own_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "cpuinfo"
    facts.write_text("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC: 9\n")
    monkeypatch.setattr(processor, "_FACTS", facts)
    processor._fact.cache_clear()
    assert processor.processor_maker() == "AuthenticAMD"
    assert processor.processor_name() == "AMD EPYC: 9"
    facts.write_text("cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n")
    processor._fact.cache_clear()
    assert processor.processor_name() == "AMD EPYC (family 25, model 17)"


def test_a_processor_without_facts_is_named_by_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "_FACTS", tmp_path / "none")
    monkeypatch.setattr("platform.processor", lambda: "AMD64 Family 25 Model 1, AuthenticAMD")
    processor._fact.cache_clear()
    assert processor.processor_maker() == "AuthenticAMD"
    assert processor.processor_name() == "AMD64 Family 25 Model 1, AuthenticAMD"
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert processor.processor_maker() == ""
    assert processor.processor_name() == "arm64"
