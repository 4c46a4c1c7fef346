import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from attlas.layers import MultiheadAttention
from attlas.layers import scaled_dot_product as fused_attention
from attlas.ops.attention import attention_weights_of, dense_attention, weighted_values
from attlas.ops.banded import band_is_faster, banded_attention
from attlas.ops.cache import KeyValueCache
from attlas.ops.dropout import dropout_generator
from attlas.patterns import both, causal, either, landmarks, strided, window

BANDS = [
    window(0),
    window(1),
    window(7),
    window(40),
    both(causal, window(5)),
    both(window(9), strided(3)),
    either(window(2), both(causal, window(11))),
    either(window(2), landmarks(0)),
    either(window(3), landmarks(0, 63, 64, 1000)),
    both(causal, either(window(4), landmarks(0, 50))),
    landmarks(2, 90),
]


@given(
    pattern=st.sampled_from(BANDS),
    queries=st.integers(1, 130),
    slots=st.integers(1, 130),
    start=st.floats(0, 1),
    num_kv_heads=st.sampled_from([1, 2, 4]),
    hidden=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 99),
)
def test_the_band_is_exact_in_output_and_gradient(
    pattern, queries, slots, start, num_kv_heads, hidden, seed
):
    torch.manual_seed(seed)
    # Any first position with which the band still meets the memory.
    back, ahead = pattern.bound.back, pattern.bound.ahead
    lowest, highest = 1 - queries - ahead, slots + back - 1
    query_offset = lowest + round(start * (highest - lowest))
    query = torch.randn(2, 4, queries, 3, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(2, num_kv_heads, slots, 3, dtype=torch.float64, requires_grad=True)
    values = torch.randn(2, num_kv_heads, slots, 5, dtype=torch.float64, requires_grad=True)
    token_mask = None if hidden == 0.0 else torch.rand(2, slots) >= hidden
    memory = KeyValueCache(keys, values, token_mask)
    seen = pattern.mask(queries, slots, query_offset)[None, None]
    seen = seen if token_mask is None else seen & token_mask[:, None, None]
    expected = [query, keys, values]
    banded, dense, explicit = (
        (context, *torch.autograd.grad(context.sin().sum(), expected))
        for context in (
            banded_attention(query, memory, pattern, query_offset, 0.7, 0.0),
            dense_attention(query, memory, pattern, query_offset, 0.7, 0.0),
            weighted_values(attention_weights_of(query, keys, seen, 0.7), values),
        )
    )
    torch.testing.assert_close(banded, explicit, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(dense, explicit, rtol=1e-9, atol=1e-11)


class LargestTensor(TorchDispatchMode):
    """Remembers the size of the largest tensor that any operation makes, backwards as well."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else [made]:
            if isinstance(one, torch.Tensor):
                self.numbers = max(self.numbers, one.untyped_storage().nbytes() // 4)
        return made


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize(
    "pattern", [window(32), either(both(causal, window(64)), landmarks(0, 5))], ids=str
)
def test_memory_grows_with_the_length_and_not_with_its_square(pattern, dropout):
    torch.manual_seed(0)
    attention = MultiheadAttention(8, 2, pattern=pattern, dropout=dropout)
    largest = {}
    for length in (4096, 16384):
        source, token_mask = (
            torch.randn(1, length, 8, requires_grad=True),
            torch.rand(1, length) > 0.1,
        )
        with LargestTensor() as largest[length]:
            attention.attend(source, attention.project_kv(source, token_mask)).sum().backward()
        # The band is 64 wide: blocks of 64 queries meet 128 keys and 2 marks; two heads.
        assert largest[length].numbers <= 2 * length * 130
        assert torch.isfinite(source.grad).all()
    assert largest[16384].numbers <= 4 * largest[4096].numbers


def test_a_narrow_band_goes_to_the_banded_kernel_and_a_wide_one_does_not(monkeypatch):
    used = []
    for name in ("banded_attention", "dense_attention"):
        kernel = getattr(fused_attention, name)

        def counting(*arguments, name=name, kernel=kernel):
            used.append(name)
            return kernel(*arguments)

        monkeypatch.setattr(fused_attention, name, counting)
    source = torch.randn(1, 300, 8)
    for pattern in (window(16), window(200), causal, both(causal, window(30))):
        attention = MultiheadAttention(8, 2, pattern=pattern)
        attention.attend(source, attention.project_kv(source))
    assert used == ["banded_attention", "dense_attention", "dense_attention", "banded_attention"]
    step = MultiheadAttention(8, 2, pattern=both(causal, window(30)))
    step.attend(source[:, :1], step.project_kv(source))
    assert used[-1] == "banded_attention"


def test_the_band_pays_only_where_it_is_known_narrow_and_meets_the_memory():
    assert band_is_faster(1000, 1000, window(10), 0)
    assert band_is_faster(1, 1000, either(window(10), landmarks(*range(100))), 999)
    assert not band_is_faster(1000, 1000, causal, 0)
    assert not band_is_faster(1000, 1000, strided(2), 0)
    assert not band_is_faster(20, 20, window(10), 0)
    assert not band_is_faster(10, 1000, window(10), 2000)
    assert not band_is_faster(10, 1000, window(10), -30)
    assert not band_is_faster(0, 1000, window(10), 0)


def test_a_query_past_the_memory_reads_zeros_in_either_kernel():
    attention = MultiheadAttention(8, 2, pattern=window(3), bias=False)
    query, memory = torch.randn(1, 20, 8), attention.project_kv(torch.randn(1, 200, 8))
    assert (attention.attend(query, memory, query_offset=500) == 0).all()
    partly = attention.attend(query, memory, query_offset=190)
    assert (partly[:, :13] != 0).any(-1).all()
    assert (partly[:, 13:] == 0).all()


def test_dropout_in_the_band_keeps_the_mean():
    torch.manual_seed(0)
    memory = KeyValueCache(torch.zeros(1, 1, 400, 4), torch.ones(1, 1, 400, 1))
    query = torch.zeros(1, 1, 400, 4)
    context = banded_attention(query, memory, window(16), 0, 0.5, 0.25)
    assert context.std() > 0.01
    assert abs(context.mean().item() - 1) < 0.02


@pytest.mark.parametrize("kernel", [banded_attention, dense_attention])
@pytest.mark.parametrize(
    "pattern",
    [window(7), both(causal, window(5)), either(window(3), landmarks(0, 63))],
    ids=str,
)
@pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_dropout_is_a_mask_on_the_explicit_weights_in_output_and_gradient(
    kernel, pattern, num_kv_heads, hidden
):
    torch.manual_seed(0)
    slots, p = 150, 0.25
    query = torch.randn(2, 4, slots, 3, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(2, num_kv_heads, slots, 3, dtype=torch.float64, requires_grad=True)
    values = torch.randn(2, num_kv_heads, slots, 5, dtype=torch.float64, requires_grad=True)
    token_mask = None if hidden == 0.0 else torch.rand(2, slots) >= hidden
    seen = pattern.mask(slots, slots)[None, None]
    seen = seen if token_mask is None else seen & token_mask[:, None, None]
    weights = attention_weights_of(query, keys, seen, 0.7)

    def dropped(read_values):
        with dropout_generator(torch.Generator().manual_seed(1)):
            return kernel(query, KeyValueCache(keys, read_values, token_mask), pattern, 0, 0.7, p)

    # Where the values are an identity, the context is the weights that were left.
    identity = torch.eye(slots, dtype=torch.float64).expand(2, num_kv_heads, slots, slots)
    left = (dropped(identity) / weights).detach().nan_to_num()
    scales = left[weights > 0]
    kept = scales > 0.5
    torch.testing.assert_close(scales, kept.double() / (1 - p))
    assert abs(kept.double().mean().item() - (1 - p)) < 0.03
    expected = [query, keys, values]
    found, explicit = (
        (context, *torch.autograd.grad(context.sin().sum(), expected))
        for context in (dropped(values), weighted_values(weights * left, values))
    )
    torch.testing.assert_close(found, explicit, rtol=1e-9, atol=1e-11)
