"""Maps as arrays of NumPy and torch, tables of pandas and arrays of xarray."""

import copy
import operator as operators
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices

from attlas.errors import AttlasError
from attlas.patterns import causal, everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from support.warm_processes import python

SHAPE = (2, 4, 5, 7)


def factored(dtype=torch.float32, **changes):
    torch.manual_seed(1)
    query, keys = torch.randn(2, 4, 5, 8, dtype=dtype), torch.randn(2, 2, 7, 8, dtype=dtype)
    return FactoredAttentionMap(
        query, keys, 8**-0.5, causal, 2, **{"token_mask": torch.ones(2, 7).bool(), **changes}
    )


def dense(dtype=torch.float32):
    torch.manual_seed(2)
    return DenseAttentionMap(torch.randn(SHAPE, dtype=torch.float64).softmax(-1).to(dtype))


def by_hand(attention_map):
    """softmax(scale · q kᵀ) of the keys j ≤ i + 2, in float64 with NumPy alone."""
    query = attention_map.query.double().numpy()
    keys = attention_map.keys.double().numpy().repeat(2, axis=1)
    scores = np.einsum("bhid,bhjd->bhij", query, keys) * attention_map.scale
    ahead = np.arange(7)[None, :] > np.arange(5)[:, None] + 2
    weights = np.where(ahead, 0.0, np.exp(scores))
    return weights / weights.sum(-1, keepdims=True)


MAPS = [factored(), dense()]


def test_an_array_of_a_factored_map_holds_what_numpy_computes_of_its_queries_and_keys():
    attention_map = factored()
    for made in (np.asarray(attention_map), attention_map.numpy(), np.from_dlpack(attention_map)):
        assert (type(made), made.dtype, made.shape) == (np.ndarray, np.float32, SHAPE)
        np.testing.assert_allclose(made, by_hand(attention_map), atol=1e-6)


@pytest.mark.parametrize("attention_map", MAPS)
def test_torch_and_numpy_take_a_map_as_they_take_a_tensor(attention_map):
    weights = attention_map.weights()
    made = (
        torch.as_tensor(attention_map),
        torch.asarray(attention_map),
        torch.tensor(attention_map),
        torch.from_dlpack(attention_map),
        attention_map.torch(),
    )
    for one in made:
        assert torch.equal(one, weights)
    assert np.array_equal(np.stack([attention_map, attention_map])[1], weights.numpy())
    assert np.mean(attention_map) == np.mean(weights.numpy())
    assert np.argmax(attention_map) == np.argmax(weights.numpy())  # a map has an argmax of its own
    assert attention_map.torch(dtype=torch.float64).dtype == torch.float64
    described = (attention_map.shape, attention_map.ndim, attention_map.dtype, len(attention_map))
    assert described == (tuple(weights.shape), weights.ndim, weights.dtype, len(weights))
    assert all(torch.equal(*pair) for pair in zip(attention_map, weights, strict=True))


@pytest.mark.parametrize("attention_map", MAPS)
def test_numpy_is_given_the_type_and_the_copy_that_it_asks_for(attention_map):
    weights = attention_map.weights().numpy()
    as_double = np.asarray(attention_map, dtype=np.float64)
    assert as_double.dtype == np.float64
    assert np.array_equal(as_double, weights.astype(np.float64))
    copied = np.array(attention_map, copy=True)
    copied[:] = 7.0
    assert np.array_equal(attention_map.numpy(), weights)


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 knows no copy=False that refuses to copy",
)
def test_without_a_copy_a_map_is_given_where_it_is_held_and_refused_where_it_is_computed():
    held = dense()
    shared = np.array(held, copy=False)
    assert np.shares_memory(shared, held.values.numpy())
    for attention_map in (factored(), dense(torch.bfloat16)):
        with pytest.raises(AttlasError, match=r"for copy=False; got .*leave copy out"):
            np.array(attention_map, copy=False)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_precision_of_weights_is_an_array(dtype):
    attention_map = dense(dtype)
    made = np.asarray(attention_map)
    expected = (
        np.float32 if dtype == torch.bfloat16 else np.dtype(str(dtype).removeprefix("torch."))
    )
    assert made.dtype == expected
    assert np.array_equal(made.astype(np.float64), attention_map.values.double().numpy())
    of_factors = np.asarray(factored(dtype))
    assert of_factors.dtype == (np.float64 if dtype == torch.float64 else np.float32)
    np.testing.assert_allclose(of_factors, by_hand(factored(dtype)), atol=1e-6)


def test_weights_with_a_gradient_are_an_array_too():
    values = dense().values.requires_grad_()
    for attention_map in (
        DenseAttentionMap(values),
        replace(factored(), keys=factored().keys.requires_grad_()),
    ):
        made = (np.asarray(attention_map), attention_map.torch(), attention_map[0, 3])
        assert not made[1].requires_grad
        assert not made[2].requires_grad
        np.testing.assert_allclose(made[0][0, 3], made[2].numpy(), atol=1e-6)


def places():
    """An index of numbers, slices and lists, forwards."""
    axis = lambda size: st.one_of(  # noqa: E731
        st.integers(-size, size - 1),
        st.slices(size).filter(lambda one: (one.step or 1) > 0),
        st.lists(st.integers(-size, size - 1), min_size=2, max_size=2),
    )
    return st.tuples(*map(axis, SHAPE)).flatmap(
        lambda whole: st.integers(1, 4).map(lambda count: whole[:count])
    )


def forwards(index):
    items = index if isinstance(index, tuple) else (index,)
    return all(not isinstance(item, slice) or (item.step or 1) > 0 for item in items)


@given(
    st.sampled_from(MAPS),
    st.one_of(
        places(), basic_indices(SHAPE, allow_newaxis=True, allow_ellipsis=True).filter(forwards)
    ),
)
def test_an_index_gives_what_it_gives_of_the_whole_array(attention_map, index):
    expected = attention_map.weights()[index]
    torch.testing.assert_close(attention_map[index], expected)


@pytest.mark.parametrize("attention_map", MAPS)
def test_masks_and_numbers_of_numpy_and_torch_are_indices(attention_map):
    whole = attention_map.weights()
    mask = torch.arange(7) % 2 == 0
    for index in (
        (Ellipsis, mask),
        (0, np.array([1, 3])),
        (np.int64(1), torch.tensor(2)),
        (slice(None), range(1, 3)),
        torch.rand(SHAPE) > 0.5,
        (0, [True, False, True, False]),
    ):
        same = (
            tuple(list(i) if isinstance(i, range) else i for i in index)
            if isinstance(index, tuple)
            else index
        )
        torch.testing.assert_close(attention_map[index], whole[same])


@pytest.mark.parametrize("attention_map", MAPS)
@pytest.mark.parametrize(
    "index", [2, (0, -5), (0, [1, 9]), (0,) * 5, "head", 1.5, {}, slice(None, None, -1)]
)
def test_an_index_that_a_map_has_not_is_an_error_of_both_kinds(attention_map, index):
    with pytest.raises(
        AttlasError, match=r"an index into a map of shape \(2, 4, 5, 7\)"
    ) as reported:
        attention_map[index]
    assert isinstance(reported.value, IndexError)
    assert str(reported.value).startswith("expected an index")


def test_of_a_map_of_any_length_a_part_is_computed_and_the_whole_refused():
    length = 1 << 17  # 2³⁴ weights a head
    query = torch.ones(1, 1, 1, 4).expand(3, 2, length, 4)
    attention_map = FactoredAttentionMap(query, query, 0.5, everywhere, 0)
    row = attention_map[1, 0, 99_999]
    assert row.shape == (length,)
    torch.testing.assert_close(row, torch.full((length,), 1 / length))
    assert attention_map[2, 1, 5:4000:1000, :3].shape == (4, 3)
    for whole in (np.asarray, torch.as_tensor, lambda one: one.numpy(), lambda one: one[0, 0]):
        with pytest.raises(AttlasError, match=r"at most 268,435,456 weights.*take .*part|fewer"):
            whole(attention_map)


def labelled():
    trace = Trace()
    trace.record("encoder.0", dense())
    trace.record("decoder.0", factored())
    trace.record("decoder.0", factored())
    trace.set_kind("encoder.0", cross_attention=True)
    trace.label(source=[list("abcdefg"), list("hijklmn")], target=[list("vwxyz"), []])
    return trace


def test_a_table_has_each_weight_with_its_place_and_its_tokens():
    pytest.importorskip("pandas")
    trace = labelled()
    table = trace.to_dataframe()
    columns = [
        "layer",
        "call",
        "batch",
        "head",
        "query",
        "key",
        "weight",
        "query_token",
        "key_token",
    ]
    assert list(table.columns) == columns
    assert len(table) == 3 * np.prod(SHAPE)
    assert list(trace.to_dataframe(layers="encoder.*").layer.unique()) == ["encoder.0"]
    whole = trace["encoder.0"].weights()
    one = table[(table.layer == "encoder.0") & (table.batch == 0) & (table["head"] == 3)]
    pivoted = one.pivot(index="query", columns="key", values="weight").to_numpy()
    assert np.array_equal(pivoted, whole[0, 3].numpy())
    assert list(one[one["query"] == 4].key_token) == list("abcdefg")
    assert set(one[one["query"] == 4].query_token) == {"z"}
    unnamed = table[(table.layer == "encoder.0") & (table.batch == 1)]
    assert unnamed.query_token.isna().all()
    assert sorted(table[table.layer == "decoder.0"].call.unique()) == [0, 1]
    sums = table.groupby(["layer", "call", "batch", "head", "query"]).weight.sum()
    np.testing.assert_allclose(sums.to_numpy(), 1.0, atol=1e-6)
    assert list(Trace().to_dataframe().columns) == columns


def test_a_table_of_too_many_weights_asks_for_a_layer():
    pytest.importorskip("pandas")
    query = torch.ones(1, 1, 1, 4).expand(1, 1, 1 << 13, 4)
    trace = Trace()
    trace.record("far", FactoredAttentionMap(query, query, 0.5, everywhere, 0))
    trace.record("near", dense())
    with pytest.raises(
        AttlasError, match=r"at most 16,777,216 .*layer 'far' has 67,108,864; choose"
    ):
        trace.to_dataframe()
    assert len(trace.to_dataframe(layers="near")) == np.prod(SHAPE)
    with pytest.raises(AttlasError, match=r"got 'nera'"):
        trace.to_dataframe(layers="nera")


def test_an_array_of_xarray_has_named_axes_and_the_tokens():
    pytest.importorskip("xarray")
    trace = labelled()
    array = trace.to_xarray("encoder.0")
    assert (array.dims, array.name) == (("batch", "head", "query", "key"), "encoder.0")
    assert np.array_equal(array.values, trace["encoder.0"].numpy())
    assert np.array_equal(array.sel(batch=1, head=2).values, trace["encoder.0"][1, 2].numpy())
    assert list(array.key_token.sel(batch=1).values) == list("hijklmn")
    assert list(array.query_token.sel(batch=0).values) == list("vwxyz")
    assert array.query_token.sel(batch=1).isnull().all()
    with pytest.raises(AttlasError, match="a single call of layer"):
        trace.to_xarray("decoder.0")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "requested"), [("pandas", "to_dataframe()"), ("xarray", "to_xarray('a')")]
)
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(extra, requested):
    code = f"""
import sys
sys.modules[{extra!r}] = None
import torch
from attlas.recording import DenseAttentionMap, Trace
trace = Trace()
trace.record("a", DenseAttentionMap(torch.rand(1, 1, 2, 2)))
trace.{requested}
"""
    done = python(code)
    assert (
        f"{extra}); got an installation without it; run: pip install 'attlas[{extra}]'"
        in done.stderr
    )


# Operators, and methods that only arrays have.


@pytest.mark.parametrize("attention_map", MAPS)
def test_comparisons_and_arithmetic_of_a_map_are_those_of_its_weights(attention_map):
    weights = attention_map.weights()
    vector, matrix = torch.linspace(0.5, 1.0, 7), torch.randn(7, 2)
    for found, wanted in (
        (attention_map > 0.1, weights > 0.1),
        (attention_map >= vector, weights >= vector),
        (attention_map < 0.1, weights < 0.1),
        (attention_map <= 0.1, weights <= 0.1),
        (attention_map * 2, weights * 2),
        (2 * attention_map, weights * 2),
        (vector * attention_map, weights * vector),
        (1 - attention_map, 1 - weights),
        (attention_map - attention_map, torch.zeros(SHAPE)),
        (attention_map + 1, weights + 1),
        (attention_map / 2, weights / 2),
        (1 / (attention_map + 1), 1 / (weights + 1)),
        (attention_map**2, weights**2),
        (attention_map @ matrix, weights @ matrix),
    ):
        assert type(found) is torch.Tensor
        torch.testing.assert_close(found, wanted)
    numbers = vector.numpy()
    for found, wanted in (
        (attention_map > numbers, weights > vector),
        (numbers * attention_map, weights * vector),
        (attention_map * np.float32(2), weights * 2),
    ):
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-6)


def test_equality_and_hash_of_a_map_are_those_of_the_object():
    attention_map = dense()
    assert attention_map == attention_map
    assert attention_map != dense()
    assert attention_map in {attention_map}


def test_a_map_and_a_text_have_no_operator_together():
    for operator in ("mul", "lt", "add"):
        with pytest.raises(TypeError):
            getattr(operators, operator)(dense(), "x")


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("mean", "np.asarray(attention_map).mean or attention_map.weights().mean"),
        ("max", "np.asarray(attention_map).max or attention_map.weights().max"),
        ("sum", "np.asarray(attention_map).sum or attention_map.weights().sum"),
        ("astype", "np.asarray(attention_map).astype"),
        ("cpu", "attention_map.weights().cpu"),
    ],
)
@pytest.mark.parametrize("attention_map", MAPS)
def test_a_method_of_arrays_names_the_arrays_that_have_it(attention_map, name, ways):
    with pytest.raises(AttlasError, match=re.escape(f"which only arrays have; write {ways}")) as e:
        getattr(attention_map, name)
    assert isinstance(e.value, AttributeError)
    assert str(e.value).endswith(ways)
    assert not hasattr(attention_map, name)


@pytest.mark.parametrize("attention_map", MAPS)
def test_other_missing_names_are_missing_as_everywhere(attention_map):
    for name in ("nothing", "_nothing", "__nothing__"):
        with pytest.raises(AttributeError, match=rf"object has no attribute '{name}'") as raised:
            getattr(attention_map, name)
        assert not isinstance(raised.value, AttlasError)


@pytest.mark.parametrize("attention_map", MAPS)
def test_a_copy_and_a_pickle_of_a_map_have_its_weights(attention_map):
    for copied in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        torch.testing.assert_close(copied(attention_map).weights(), attention_map.weights())
