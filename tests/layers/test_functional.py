import inspect
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel

from attlas.errors import AttlasError
from attlas.layers import scaled_dot_product_attention as sdpa
from attlas.layers import scaled_dot_product_attention_with_weights as sdpa_with_weights
from attlas.patterns import both, causal, everywhere, landmarks, strided, window
from attlas.reference import scaled_dot_product

PATTERNS = [everywhere, causal, window(1), strided(2), both(causal, window(2)), landmarks(1)]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def close(one, other, tolerance=1e-12):
    torch.testing.assert_close(
        torch.as_tensor(one), torch.as_tensor(other), atol=tolerance, rtol=tolerance
    )


def drawn(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@st.composite
def questions(draw):
    """Arrays of 2 to 4 axes, and some of the options that go with them."""
    axes = draw(st.integers(2, 4))
    sizes = st.integers(1, 3)
    queries, slots, width, value_dim = (draw(st.integers(1, 5)) for _ in range(4))
    batch, num_kv_heads, sharing = draw(sizes), draw(sizes), draw(sizes)
    of_query = (batch, num_kv_heads * sharing)[: axes - 2]
    of_key = (batch, num_kv_heads)[: axes - 2]
    seed = draw(st.integers(0, 2**31))
    noise = np.random.default_rng(seed)
    arrays = [
        noise.normal(size=(*of_query, queries, width)),
        noise.normal(size=(*of_key, slots, width)),
        noise.normal(size=(*of_key, slots, value_dim)),
    ]
    options = {}
    if draw(st.booleans()):
        options["pattern"] = draw(st.sampled_from(PATTERNS))
    if draw(st.booleans()):
        options["query_offset"] = draw(st.integers(-2, 5))
    if draw(st.booleans()):
        options["token_mask"] = noise.random((*of_key[:1], slots)) < 0.7
    options["enable_gqa"] = sharing > 1 and axes == 4
    kind = draw(st.sampled_from([None, "bools", "integers", "numbers", "numbers and -inf"]))
    if kind is not None:
        shape = [1 if draw(st.booleans()) else size for size in (*of_query, queries, slots)]
        values = np.asarray(noise.normal(size=shape[draw(st.integers(0, len(shape))) :]))
        options["attn_mask"] = {
            "bools": np.asarray(values < 0.5),
            "integers": np.asarray(values < 0.5).astype(np.int64),
            "numbers": values,
            "numbers and -inf": np.where(values < 0.5, values, -np.inf),
        }[kind]
    if draw(st.booleans()):
        options["scale"] = draw(st.floats(0.1, 2.0))
    return arrays, options


def expected(arrays, options):
    """The reference, query by query of every head; scale and bias are folded into the arrays."""
    query, key, value = (np.reshape(a, (1,) * (4 - a.ndim) + a.shape) for a in arrays)
    if arrays[0].ndim == 3:
        query, key, value = (np.moveaxis(a, 1, 0) for a in (query, key, value))
    batch, heads, queries, width = query.shape
    num_kv_heads, slots = key.shape[1:3]
    shape = (batch, heads, queries, slots)
    seen = np.ones(shape, dtype=bool)
    pattern, query_offset = options.get("pattern", everywhere), options.get("query_offset")
    seen &= pattern.mask(queries, slots, query_offset).numpy()
    if "token_mask" in options:
        seen &= options["token_mask"].reshape(batch, 1, 1, slots)
    bias = np.zeros(shape)
    if "attn_mask" in options:
        pairs = np.broadcast_to(options["attn_mask"], (*arrays[0].shape[:-1], slots))
        pairs = pairs[:, None] if pairs.ndim == 3 else pairs
        if pairs.dtype == np.float64:
            seen &= pairs > -np.inf
            bias = np.broadcast_to(np.where(pairs > -np.inf, pairs, 0.0), shape)
        else:
            seen &= pairs == 1
    scale = options.get("scale", width**-0.5)
    contexts, weights = np.empty((*shape[:3], value.shape[-1])), np.empty(shape)
    for b in range(batch):
        for h in range(heads):
            k = h // (heads // num_kv_heads)
            # q · k with a bias is the product of longer vectors: [q, bias row] · [k, one-hot key].
            longer = width + slots
            requested = np.concatenate([query[b, h] * scale, bias[b, h]], -1) * np.sqrt(longer)
            keys = np.concatenate([key[b, k], np.eye(slots)], -1)
            contexts[b, h], weights[b, h] = scaled_dot_product(
                requested, keys, value[b, k], seen[b, h]
            )
    axes = arrays[0].ndim
    kept = {2: (0, 0), 3: (slice(None), 0), 4: ()}[axes]
    return contexts[kept], weights[kept]


@given(questions())
def test_numpy_arrays_of_any_axes_agree_with_the_reference(question):
    arrays, options = question
    context, weights = sdpa_with_weights(*arrays, **options)
    assert isinstance(context, np.ndarray)
    assert isinstance(weights, np.ndarray)
    wanted_context, wanted_weights = expected(arrays, options)
    close(context, wanted_context)
    close(weights, wanted_weights)
    close(sdpa(*arrays, **options), wanted_context)


@given(questions())
def test_tensors_and_numpy_arrays_give_the_same(question):
    arrays, options = question
    tensors = [torch.from_numpy(array) for array in arrays]
    of_torch = {
        name: torch.from_numpy(option) if isinstance(option, np.ndarray) else option
        for name, option in options.items()
    }
    context = sdpa(*tensors, **of_torch)
    assert isinstance(context, torch.Tensor)
    assert np.array_equal(context.numpy(), sdpa(*arrays, **options))


@given(questions())
def test_gradients_with_and_without_weights_agree(question):
    arrays, options = question
    of_torch = {
        name: torch.from_numpy(option) if isinstance(option, np.ndarray) else option
        for name, option in options.items()
    }
    gradients = []
    for read in (
        sdpa,
        lambda *a, **o: sdpa_with_weights(*a, **o)[0],
    ):
        tensors = [torch.from_numpy(array).requires_grad_() for array in arrays]
        context = read(*tensors, **of_torch)
        (context * torch.arange(context.numel()).reshape(context.shape)).sum().backward()
        gradients.append([tensor.grad for tensor in tensors])
    for fused, explicit in zip(*gradients, strict=True):
        close(fused, explicit, 1e-10)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_tensor_keeps_its_dtype(dtype):
    query, source = drawn(2, 3, 4, 8).to(dtype), drawn(2, 3, 5, 8, seed=1).to(dtype)
    context, weights = sdpa_with_weights(query, source, source, pattern=causal)
    assert context.dtype == weights.dtype == sdpa(query, source, source).dtype == dtype
    close(weights.double().sum(-1), torch.ones(2, 3, 4, dtype=torch.float64), 2e-2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("options", [{}, {"softcap": 20.0}, {"bias": True}], ids=str)
def test_the_weights_in_half_precision_are_those_of_the_exact_scores(dtype, options):
    arrays = [(3 * drawn(2, 4, 64, 64, seed=seed)).to(dtype) for seed in range(3)]
    if "bias" in options:
        options = {"attn_mask": drawn(64, 64, seed=3).to(dtype)}
    exact = {name: x.double() if name == "attn_mask" else x for name, x in options.items()}
    context, weights = sdpa_with_weights(*arrays, **options)
    wanted_context, wanted = sdpa_with_weights(*[array.double() for array in arrays], **exact)
    rounding = torch.finfo(dtype).eps
    torch.testing.assert_close(weights.double(), wanted, rtol=rounding, atol=1e-7)
    # Each weight and the result are rounded once: a sum of 64 values, hardly any above 12.
    assert (context.double() - wanted_context).abs().max() < 12 * 2 * rounding
    if not options:
        fused = sdpa(*arrays).double()
        assert (context.double() - fused).abs().max() < 12 * 2 * rounding


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f8"])
def test_a_numpy_array_keeps_its_precision(dtype):
    query = drawn(3, 4).numpy().astype(dtype)
    result = sdpa(query, query, query)
    assert result.dtype == np.dtype(dtype).newbyteorder("=")
    close(result.astype("float64"), sdpa(*[query.astype("float64")] * 3), 2e-3)


def test_read_only_strided_and_reversed_arrays_are_read_as_they_are():
    whole = drawn(8, 6).numpy()
    awkward = whole[::-2, 1:5]
    awkward.flags.writeable = False
    copied = awkward.copy()
    assert np.array_equal(
        sdpa(awkward, awkward, awkward),
        sdpa(copied, copied, copied),
    )
    assert np.array_equal(awkward, copied)


def test_queries_are_the_newest_positions_unless_first_says_otherwise():
    query, source = drawn(2, 4), drawn(5, 4, seed=1)
    _, weights = sdpa_with_weights(query, source, source, pattern=causal)
    assert ((weights > 0) == causal.mask(2, 5)).all()
    _, weights = sdpa_with_weights(query, source, source, pattern=causal, query_offset=0)
    assert ((weights > 0) == causal.mask(2, 5, query_offset=0)).all()


def test_numbers_of_numpy_are_numbers():
    query = drawn(3, 4).numpy()
    options = {"query_offset": np.int64(1), "scale": np.float64(0.5)}
    given_numpy = inspect.unwrap(sdpa)(query, query, query, pattern=causal, **options)
    assert np.array_equal(
        given_numpy,
        sdpa(query, query, query, pattern=causal, query_offset=1, scale=0.5),
    )


def test_a_narrow_window_over_long_arrays_agrees_with_its_mask():
    arrays = [drawn(1, 2, 300, 4, seed=seed) for seed in range(3)]
    token_mask = torch.arange(300).unsqueeze(0) < 270
    banded = sdpa(*arrays, pattern=window(2), token_mask=token_mask)
    close(
        banded,
        sdpa(*arrays, attn_mask=window(2).mask(300, 300), token_mask=token_mask),
    )
    close(
        banded,
        sdpa_with_weights(*arrays, pattern=window(2), token_mask=token_mask)[0],
    )


@pytest.mark.parametrize("junk", [float("nan"), float("inf"), -float("inf"), 1e30])
@pytest.mark.parametrize("hide", ["token_mask", "mask", "bias"])
@pytest.mark.parametrize(
    "read",
    [
        sdpa,
        lambda *a, **o: sdpa_with_weights(*a, **o)[0],
    ],
)
def test_junk_in_slots_that_nobody_sees_changes_nothing(junk, hide, read):
    seen = torch.tensor([[True, False, True, True], [True, True, False, False]])
    whole = seen[:, None].expand(2, 3, 4)
    bias = torch.zeros(2, 3, 4, dtype=torch.float64).masked_fill(~whole, -float("inf"))
    name = "token_mask" if hide == "token_mask" else "attn_mask"
    options = {name: {"token_mask": seen, "mask": whole, "bias": bias}[hide]}
    results = []
    for content in (0.0, junk):
        query = drawn(2, 3, 4).requires_grad_()
        key, value = (
            drawn(2, 4, 4, seed=seed).masked_fill(~seen[:, :, None], content).requires_grad_()
            for seed in (1, 2)
        )
        context = read(query, key, value, **options)
        context.square().sum().backward()
        results.append([context, query.grad, key.grad, value.grad])
    for clean, dirty in zip(*results, strict=True):
        assert torch.equal(clean, dirty)


@given(
    pattern=st.sampled_from(PATTERNS),
    query_offset=st.integers(-3, 6),
    hide=st.sampled_from(["nothing", "mask", "token_mask", "softcap"]),
    junk=st.sampled_from([float("nan"), float("inf"), -float("inf")]),
    at_once=st.sampled_from([1, 3, 2**24]),
)
@pytest.mark.parametrize(
    "read",
    [
        sdpa,
        lambda *a, **o: sdpa_with_weights(*a, **o)[0],
    ],
)
def test_junk_where_a_pattern_lets_nobody_look_changes_nothing(
    read, pattern, query_offset, hide, junk, at_once
):
    seen = pattern.mask(3, 7, query_offset)
    shown = drawn(2, 3, 7, seed=5) < 0.5 if hide == "mask" else torch.ones(2, 3, 7).bool()
    token_mask = drawn(2, 7, seed=6) < 0.5 if hide == "token_mask" else torch.ones(2, 7).bool()
    nobodys = ~(seen & shown & token_mask[:, None]).any(1)
    options = {
        "mask": {"attn_mask": shown},
        "token_mask": {"token_mask": token_mask},
        "softcap": {"softcap": 2.0},
    }
    results = []
    for content in (0.0, junk):
        query = drawn(2, 3, 4).requires_grad_()
        key, value = (
            drawn(2, 7, 4, seed=seed).masked_fill(nobodys[..., None], content).requires_grad_()
            for seed in (1, 2)
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("attlas.layers._arrays._PAIRS_AT_ONCE", at_once)
            context = read(
                query,
                key,
                value,
                pattern=pattern,
                query_offset=query_offset,
                **options.get(hide, {}),
            )
        context.square().sum().backward()
        results.append([context, query.grad, key.grad, value.grad])
    for clean, dirty in zip(*results, strict=True):
        assert torch.equal(clean, dirty)


def test_junk_that_somebody_sees_is_not_hidden():
    source = drawn(4, 3)
    source[2, 1] = float("nan")
    context = sdpa(source, source, source, pattern=window(1))
    assert context[1:].isnan().any(-1).all()


@pytest.mark.parametrize("options", [{}, {"bias": True}, {"softcap": 2.0}])
def test_a_query_that_sees_nothing_reads_zeros_with_finite_gradients(options):
    mask = torch.tensor([[False, False, False], [True, False, True]])
    if "bias" in options:
        options = {"attn_mask": torch.where(mask, 0.5, -float("inf")).double()}
    else:
        options = {**options, "attn_mask": mask}
    query, source = drawn(2, 4).requires_grad_(), drawn(3, 4, seed=1).requires_grad_()
    context = sdpa(query, source, source, **options)
    assert (context[0] == 0).all()
    assert (context[1] != 0).any()
    context.sum().backward()
    assert query.grad.isfinite().all()
    assert source.grad.isfinite().all()
    _, weights = sdpa_with_weights(query, source, source, **options)
    close(weights.sum(-1).detach(), torch.tensor([0.0, 1.0], dtype=torch.float64))


def test_no_slots_at_all_read_zeros():
    query, nothing = drawn(2, 3, 4), drawn(2, 0, 4)
    assert torch.equal(sdpa(query, nothing, nothing), torch.zeros(2, 3, 4).double())
    context, weights = sdpa_with_weights(query, nothing, nothing)
    assert torch.equal(context, torch.zeros(2, 3, 4).double())
    assert weights.shape == (2, 3, 0)


def test_no_queries_read_nothing():
    source = drawn(5, 4)
    assert sdpa(source[:0], source, source, pattern=causal).shape == (0, 4)
    assert sdpa_with_weights(source[:0], source, source)[1].shape == (0, 5)


def test_a_softcap_bounds_the_scores_before_the_bias():
    query, key = np.array([[30.0]]), np.array([[0.0], [1.0]])
    _, weights = sdpa_with_weights(query, key, key, softcap=2.0, attn_mask=np.array([[0.0, 0.5]]))
    score = 2.0 * np.tanh(30.0 / 2.0) + 0.5
    close(weights, np.array([[1.0, np.exp(score)]]) / (1.0 + np.exp(score)))


def test_a_causal_call_over_many_positions_holds_no_map():
    # 40,000² bools alone would be 1.6 GB.
    arrays = [torch.zeros(1, 1, 40_000, 1) for _ in range(3)]
    assert sdpa(*arrays, pattern=both(causal, window(8))).shape == (
        1,
        1,
        40_000,
        1,
    )


F64 = np.ones((2, 4, 3, 8))
Z = np.zeros


@pytest.mark.parametrize(
    ("arrays", "options", "text"),
    [
        (
            (Z((2, 4)), torch.zeros(3, 4), Z((3, 4))),
            {},
            "expected NumPy arrays alone or torch tensors alone; got query: NumPy, key: torch, "
            "value: NumPy; convert them with numpy.asarray or torch.as_tensor",
        ),
        (
            ([[1.0]], Z((3, 4)), Z((3, 4))),
            {},
            "expected NumPy arrays alone or torch tensors alone; got query: list, key: NumPy, "
            "value: NumPy; convert them with numpy.asarray or torch.as_tensor",
        ),
        (
            (Z((2, 4)), np.ma.masked_array(Z((3, 4))), Z((3, 4))),
            {},
            "expected NumPy arrays alone or torch tensors alone; got query: NumPy, key: "
            "MaskedArray, "
            "value: NumPy; convert them with numpy.asarray or torch.as_tensor",
        ),
        (
            (Z((2, 4), int), Z((3, 4)), Z((3, 4))),
            {},
            "expected query of float16, bfloat16 (torch), float32 or float64; got query of int64; "
            "convert it to floating point first",
        ),
        (
            (Z((2, 4)), Z((3, 4)), Z((3, 4), bool)),
            {},
            "expected value of float16, bfloat16 (torch), float32 or float64; got value of bool; "
            "convert it to floating point first",
        ),
        (
            (torch.zeros(2, 4), torch.zeros(3, 4), torch.zeros(3, 4, dtype=torch.complex64)),
            {},
            "expected value of float16, bfloat16 (torch), float32 or float64; got value of "
            "torch.complex64; convert it to floating point first",
        ),
        (
            (Z((2, 4)), Z((3, 4), "float32"), Z((3, 4))),
            {},
            "expected one dtype; got query: float64, key: float32, value: float64; convert them to "
            "the one in which to compute",
        ),
        (
            (torch.zeros(2, 4), torch.zeros(3, 4, device="meta"), torch.zeros(3, 4)),
            {},
            "expected one device; got query: cpu, key: meta, value: cpu; move them to one with "
            ".to(device)",
        ),
        (
            (Z(4), Z((3, 4)), Z((3, 4))),
            {},
            "expected a query of shape (queries, dim) or (batch, queries, dim) or (batch, heads, "
            "queries, dim); got query (4,), key (3, 4), value (3, 4); add or remove axes",
        ),
        (
            (Z((5, 2, 4)), Z((2, 3, 3, 4)), Z((2, 3, 3, 4))),
            {},
            "expected query (batch, heads, queries, dim), key (batch, kv_heads, keys, dim) and "
            "value (batch, kv_heads, keys, value_dim); got query (5, 2, 4), key (2, 3, 3, 4), "
            "value (2, 3, 3, 4); give all three the same axes",
        ),
        (
            (Z((3, 2, 4)), Z((2, 3, 4)), Z((2, 3, 4))),
            {},
            "expected query (batch, queries, dim), key (batch, keys, dim) and value (batch, "
            "keys, value_dim); got query (3, 2, 4), key (2, 3, 4), value (2, 3, 4); make batch "
            "the same everywhere",
        ),
        (
            (Z((2, 4)), Z((3, 4)), Z((5, 4))),
            {},
            "expected query (queries, dim), key (keys, dim) and value (keys, value_dim); got "
            "query (2, 4), key (3, 4), value (5, 4); make keys the same everywhere",
        ),
        (
            (Z((2, 4)), Z((3, 5)), Z((3, 4))),
            {},
            "expected query (queries, dim), key (keys, dim) and value (keys, value_dim); got "
            "query (2, 4), key (3, 5), value (3, 4); make dim the same everywhere",
        ),
        (
            (Z((1, 4, 2, 3)), Z((1, 2, 2, 3)), Z((1, 4, 2, 3))),
            {},
            "expected query (batch, heads, queries, dim), key (batch, kv_heads, keys, dim) and "
            "value (batch, kv_heads, keys, value_dim); got query (1, 4, 2, 3), key (1, 2, 2, "
            "3), value (1, 4, 2, 3); make kv_heads the same everywhere",
        ),
        (
            (Z((1, 4, 2, 3)), Z((1, 3, 2, 3)), Z((1, 3, 2, 3))),
            {"enable_gqa": True},
            "expected heads that share num_kv_heads evenly in query (batch, heads, queries, dim), "
            "key "
            "(batch, kv_heads, keys, dim) and value (batch, kv_heads, keys, value_dim); "
            "got query (1, 4, 2, 3), key (1, 3, 2, 3), value (1, 3, 2, 3); choose num_kv_heads "
            "that "
            "divide the 4 heads",
        ),
        (
            (Z((1, 4, 2, 3)), Z((1, 2, 2, 3)), Z((1, 2, 2, 3))),
            {},
            "expected as many heads in query (batch, heads, queries, dim), key (batch, kv_heads, "
            "keys, dim) and value (batch, kv_heads, keys, value_dim); got query (1, 4, 2, 3), key "
            "(1, 2, 2, 3), value (1, 2, 2, 3); pass enable_gqa=True where heads share keys",
        ),
        (
            (F64, F64, F64),
            {"is_causal": True, "pattern": window(2)},
            "expected is_causal, or a pattern with its query_offset; got both; pass "
            "pattern=both(causal, …) and query_offset=0",
        ),
        (
            (F64, F64, F64),
            {"dropout_p": 1.5},
            "expected a dropout from 0 to 1; got 1.5; use e.g. 0.1",
        ),
        (
            (Z((2, 0)), Z((3, 0)), Z((3, 4))),
            {},
            "expected a width of at least 1; got query (2, 0), key (3, 0), value (3, 4); give "
            "every "
            "position a vector",
        ),
        (
            (F64, F64, F64),
            {"attn_mask": Z((2, 3, 3), bool)},
            "expected attn_mask of a shape that broadcasts to that of the weights, (2, 4, 3, "
            "3); got shape (2, 3, 3); order the axes as in the weights, (batch, heads, queries, "
            "keys); each may be 1, and the first ones may be missing",
        ),
        (
            (F64, F64, F64),
            {"attn_mask": Z((3, 4))},
            "expected attn_mask of a shape that broadcasts to that of the weights, (2, 4, 3, "
            "3); got shape (3, 4); order the axes as in the weights, (batch, heads, queries, "
            "keys); each may be 1, and the first ones may be missing",
        ),
        (
            (F64, F64, F64),
            {"attn_mask": Z((3, 3), int) + 2},
            "expected attn_mask of bools, or of 0 and 1; got integers from 2 to 2; compare the "
            "ids with that of padding: ids != padding",
        ),
        (
            (F64, F64, F64),
            {"attn_mask": Z((3, 3), "float16")},
            "expected one dtype; got query: float64, key: float64, value: float64, attn_mask: "
            "float16; convert them to the one in which to compute",
        ),
        (
            (F64, F64, F64),
            {"token_mask": Z((2, 3))},
            "expected token_mask of bool, True = a token; got token_mask of float64; compare it to "
            "something; numbers that are added to the scores are an attn_mask",
        ),
        (
            (F64, F64, F64),
            {"token_mask": Z((3, 2), bool)},
            "expected token_mask of shape (2, 3), (batch, keys); got shape (3, 2); give one bool "
            "per position "
            "of the key",
        ),
        (
            (Z((2, 4)), Z((3, 4)), Z((3, 4))),
            {"token_mask": Z((2, 3), bool)},
            "expected token_mask of shape (3,), (keys); got shape (2, 3); give one bool per "
            "position of the "
            "key",
        ),
        (
            (F64, F64, F64),
            {"pattern": "causal"},
            "expected a pattern, such as causal or window(3); got 'causal'; take one from "
            "attlas.patterns; an array of bools is a mask",
        ),
        (
            (F64, F64, F64),
            {"query_offset": 0.5},
            "expected a whole number as query_offset; got 0.5; count positions from 0",
        ),
        (
            (F64, F64, F64),
            {"scale": float("nan")},
            "expected a finite number as scale; got nan; leave it out for 1 / √dim",
        ),
        (
            (F64, F64, F64),
            {"softcap": float("inf")},
            "expected a softcap above 0; got inf; leave it out for the default",
        ),
        (
            (F64, F64, F64),
            {"scale": "a"},
            "expected a finite number as scale; got 'a'; leave it out for 1 / √dim",
        ),
        (
            (F64, F64, F64),
            {"scale": np.ones(1)},
            "expected a finite number as scale; got array([1.]); leave it out for 1 / √dim",
        ),
        (
            (F64, F64, F64),
            {"scale": torch.ones((), requires_grad=True)},
            "expected a scale without a gradient; got a tensor that requires one; multiply the "
            "query by it and pass scale=1.0, so that it learns",
        ),
    ],
)
@pytest.mark.parametrize("read", [sdpa, sdpa_with_weights])
def test_what_does_not_fit_together_is_said(read, arrays, options, text):
    with pytest.raises(AttlasError) as raised:
        # Without the tests' type checker, which users do not have either.
        inspect.unwrap(read)(*arrays, **options)
    assert str(raised.value) == text


OPTIONS = {
    "plain": {},
    "scale": {"scale": 2.0},
    "softcap": {"softcap": 2.0},
    "token_mask": {"token_mask": np.arange(200) < 180},
    "mask": {"attn_mask": (np.arange(200) % 3 > 0)[None]},
    "sees nothing": {"attn_mask": np.zeros((200, 200), dtype=bool)},
    "bias": {"attn_mask": np.linspace(-1, 1, 200 * 200).reshape(200, 200)},
    "softcap and bias": {"softcap": 2.0, "attn_mask": np.linspace(-1, 1, 200).reshape(1, 200)},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("pattern", [everywhere, causal, window(2)])
def test_a_query_that_is_no_number_reads_none(bad, pattern, options):
    query, others = np.random.default_rng(0).normal(size=(2, 200, 4))
    query[150, 2] = bad
    read = sdpa(query, others, others, pattern=pattern, **options)
    with_weights, weights = sdpa_with_weights(query, others, others, pattern=pattern, **options)
    for result in (read, with_weights, weights):
        assert np.isnan(result[150]).all()
        assert np.isfinite(np.delete(result, 150, axis=0)).all()
    np.testing.assert_allclose(read, with_weights, rtol=1e-6)


@pytest.mark.parametrize("query_offset", [2**63 - 2, -(2**63), 10**30])
def test_a_first_position_beyond_whole_numbers_of_torch_is_an_error(query_offset):
    with pytest.raises(AttlasError, match="expected a query_offset within"):
        sdpa(Z((3, 4)), Z((3, 4)), Z((3, 4)), pattern=window(2), query_offset=query_offset)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bias_that_is_no_number_is_an_error(bad):
    bias = np.zeros((3, 3))
    bias[1, 2] = bad
    with pytest.raises(AttlasError, match=r"attn_mask of finite numbers, or −∞ .*; got NaN or "):
        sdpa(Z((3, 4)), Z((3, 4)), Z((3, 4)), attn_mask=bias)


def test_a_truth_value_is_no_position():
    with pytest.raises(AttlasError, match="a whole number as query_offset; got True"):
        sdpa(Z((3, 4)), Z((3, 4)), Z((3, 4)), query_offset=True)


@pytest.mark.parametrize("shape", [(2, 3), (4,), (1, 3, 3)])
def test_a_mask_that_does_not_broadcast_to_the_weights_is_refused(shape):
    wanted = r"attn_mask of a shape that broadcasts to that of the weights, \(3, 3\); got shape"
    with pytest.raises(AttlasError, match=wanted):
        sdpa(Z((3, 4)), Z((3, 4)), Z((3, 4)), attn_mask=Z(shape, bool))


BROADCAST = [(), (1,), (5,), (1, 1), (4, 1), (1, 5), (4, 5), (1, 1, 5), (3, 4, 1), (3, 4, 5)]
BROADCAST += [(1, 3, 1, 5), (2, 1, 4, 1), (2, 1, 1, 5), (2, 3, 4, 5)]


@pytest.mark.parametrize("shape", BROADCAST)
@pytest.mark.parametrize("name", ["mask", "bias"])
@pytest.mark.parametrize("as_numpy", [False, True])
def test_a_mask_and_a_bias_broadcast_as_in_torchs_own_function(shape, name, as_numpy):
    query, key, value = drawn(2, 3, 4, 8), drawn(2, 3, 5, 8, seed=1), drawn(2, 3, 5, 8, seed=2)
    pairs = drawn(*shape, seed=3)
    if name == "mask":
        pairs = torch.arange(pairs.numel()).reshape(shape) % 4 != 2
    whole = pairs.expand(2, 3, 4, 5)  # of fewer axes torch's function fails for want of an axis
    referee = F.scaled_dot_product_attention(query, key, value, whole)
    given = [one.numpy() if as_numpy else one for one in (query, key, value, pairs)]
    context, weights = sdpa_with_weights(*given[:3], attn_mask=given[3])
    close(sdpa(*given[:3], attn_mask=given[3]), referee)
    close(context, referee)
    close(np.asarray(weights) @ value.numpy(), referee)


def test_under_autocast_arrays_come_back_in_the_dtype_in_which_they_came():
    query, key, value = (drawn(2, 3, 4, seed=seed).float().numpy() for seed in range(3))
    with torch.autocast("cpu"):
        found = sdpa(query, key, value)
        context, _ = sdpa_with_weights(*map(torch.from_numpy, (query, key, value)))
    assert found.dtype == np.float32
    assert context.dtype == torch.float32
    close(found, sdpa(query, key, value), 0.05)


# What torch's function takes, we take, with its result.


def masks():
    """A mask of bools and one of numbers; each query sees a key that is not after it."""
    allowed = drawn(2, 3, 4, 5, seed=3) < 0.5
    allowed[..., 0] = True
    return [allowed, torch.where(allowed, drawn(2, 3, 4, 5, seed=4), -torch.inf)]


@pytest.mark.parametrize("mask", range(2))
@pytest.mark.parametrize("axes", [4, 3, 2])
def test_a_mask_and_is_causal_join_as_in_torchs_kernel(mask, axes):
    query, key, value = drawn(2, 3, 4, 8), drawn(2, 3, 5, 8, seed=1), drawn(2, 3, 5, 8, seed=2)
    given = (query, key, value, masks()[mask])
    referee = F.scaled_dot_product_attention(*given, is_causal=True)
    where = (0,) * (4 - axes)  # torch joins them only with four axes
    given = tuple(one[where] for one in given)
    close(sdpa(*given, is_causal=True), referee[where])
    context, weights = sdpa_with_weights(*given, is_causal=True)
    close(context, referee[where])
    assert not weights.triu(1).any()
    if mask == 0:
        close(sdpa(*(one.numpy() for one in given), is_causal=True), referee[where])


@pytest.mark.parametrize("scale", [0.0, -0.0, -0.7, 2, True, 1e-320])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": masks()[0]}])
def test_every_finite_scale_is_taken_as_by_torchs_function(scale, options):
    drawn_inputs = [drawn(2, 3, 4, 8), drawn(2, 3, 5, 8, seed=1), drawn(2, 3, 5, 8, seed=2)]
    results = []
    for function in (sdpa, F.scaled_dot_product_attention):
        given = [one.clone().requires_grad_() for one in drawn_inputs]
        # torch's own causal kernel for a CPU makes NaN of a scale ≤ 0; its explicit twin does not.
        with sdpa_kernel(SDPBackend.MATH):
            context = inspect.unwrap(function)(*given, scale=scale, **options)
        context.square().sum().backward()
        results.append([context, *(one.grad for one in given)])
    close_all(*results)
    with_kernel = inspect.unwrap(sdpa)(*drawn_inputs, scale=scale, **options)
    close(with_kernel, results[1][0])
    with_weights, _ = inspect.unwrap(sdpa_with_weights)(*drawn_inputs, scale=scale, **options)
    close(with_weights, results[1][0])


def close_all(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        close(one, other)


@pytest.mark.parametrize("scale", [torch.tensor(0.3), torch.tensor(-2), np.array(0.3), np.int64(2)])
def test_a_scale_may_be_an_array_without_axes(scale):
    query, key = drawn(4, 8), drawn(5, 8, seed=1)
    close(
        inspect.unwrap(sdpa)(query, key, key, scale=scale),
        sdpa(query, key, key, scale=+float(scale)),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("hidden", [-torch.inf, -1e9])
def test_a_mask_of_float32_goes_with_every_dtype_as_in_torchs_function(dtype, hidden):
    query, key, value = (drawn(2, 3, n, 8, seed=n).to(dtype) for n in (4, 5, 5))
    mask = torch.where(masks()[0], drawn(2, 3, 4, 5, seed=4), hidden).float()
    referee = F.scaled_dot_product_attention(query, key, value, mask)
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float64: 1e-12}[dtype]
    for context in (
        sdpa(query, key, value, mask),
        sdpa_with_weights(query, key, value, mask)[0],
    ):
        assert context.dtype == dtype
        close(context, referee, tolerance)
    if dtype != torch.bfloat16:
        arrays = [one.numpy() for one in (query, key, value, mask)]
        close(sdpa(*arrays), referee, tolerance)


@pytest.mark.parametrize(
    "heads",
    [(4, 2, 4), (4, 2, 1), (4, 1, 2), (4, 4, 2), (6, 2, 3), (4, 2, 2), (4, 1, 1), (2, 2, 2)],
)
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": drawn(4, 5, seed=9)}])
def test_keys_and_values_may_differ_in_heads_as_in_torchs_function(heads, lead, options):
    sizes = zip(heads, (4, 5, 5), strict=True)
    query, key, value = (drawn(*lead, h, n, 8, seed=n + h) for h, n in sizes)
    referee = F.scaled_dot_product_attention(query, key, value, **options, enable_gqa=True)
    close(sdpa(query, key, value, **options, enable_gqa=True), referee)
    context, weights = sdpa_with_weights(query, key, value, **options, enable_gqa=True)
    close(context, referee)
    assert weights.shape == (*lead, heads[0], 4, 5)


def test_heads_that_do_not_share_evenly_are_refused_also_where_keys_and_values_differ():
    query, key, value = Z((1, 4, 2, 3)), Z((1, 2, 2, 3)), Z((1, 3, 2, 3))
    with pytest.raises(AttlasError, match="make kv_heads the same everywhere"):
        sdpa(query, key, value, enable_gqa=True)


# A mask of the numbers 0 and 1 is most often meant as one of truth.


@pytest.mark.parametrize("read", [sdpa, sdpa_with_weights])
def test_a_mask_of_the_numbers_0_and_1_is_added_with_a_warning(read):
    query = drawn(2, 4, 3, 8).float()
    mask = torch.tril(torch.ones(3, 3))
    for array, cure in ((query, "pass mask.bool()"), (query.numpy(), "pass mask.astype(bool)")):
        numbers = mask if array is query else mask.numpy()
        with pytest.warns(UserWarning, match="0 and 1 alone, and they are added") as reported:
            found = read(array, array, array, numbers)
        assert len(reported) == 1
        assert cure in str(reported[0].message)
        context = found if read is sdpa else found[0]
        close(context, F.scaled_dot_product_attention(query, query, query, mask), 1e-6)


CALLER = """
import torch, attlas
x, mask = torch.zeros(1, 3, 8), torch.tril(torch.ones(3, 3))
layer = attlas.layers.MultiheadAttention(8, 2, batch_first=True)
for _ in range(3):
    attlas.scaled_dot_product_attention(x, x, x, mask)
attlas.scaled_dot_product_attention_with_weights(x, x, x, mask)
layer(x, x, x, attn_mask=mask)
"""


def test_the_warning_of_a_mask_of_0_and_1_comes_once_for_each_line_that_passes_it(tmp_path):
    script = tmp_path / "caller.py"  # a process of its own: the tests' type checker adds calls
    script.write_text(CALLER)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=60
    )
    lines = re.findall(r"caller\.py:(\d+): UserWarning: attn_mask holds", done.stderr)
    assert lines == ["6", "7", "8"]


@pytest.mark.parametrize(
    "mask",
    [
        torch.zeros(3, 3),
        torch.ones(3, 3),
        torch.eye(3) / 2,
        torch.eye(3) * 2 - 1,
        torch.zeros(3, 3).masked_fill(torch.eye(3) == 0, -torch.inf),
        torch.linspace(0, 1, 9).view(3, 3),
        torch.tril(torch.ones(3, 3)).bool(),
        torch.tril(torch.ones(3, 3)).long(),
        torch.ones(1, 1),
    ],
)
def test_other_masks_give_no_warning(mask):
    query = drawn(2, 4, 3, 8).float()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdpa(query, query, query, mask)


def test_a_large_mask_is_not_looked_through():
    mask = torch.ones(1, 2**22 + 1)
    mask[0, 0] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdpa(torch.zeros(1, 1), torch.zeros(2**22 + 1, 1), torch.zeros(2**22 + 1, 1), mask)
