"""What the functions of the reference take, and what they say of the rest."""

import inspect
import re

import numpy as np
import pytest
import torch

from attlas import reference
from attlas.errors import AttlasError

Q = np.random.default_rng(0).normal(size=(2, 3, 4))


def test_a_list_of_numbers_is_read_as_float64():
    weights = reference.softmax([1.0, 2.0])
    assert weights.dtype == np.float64
    np.testing.assert_allclose(weights, np.exp([1, 2]) / np.exp([1, 2]).sum())
    context, _ = reference.scaled_dot_product([[1, 0]], [[1, 0], [0, 1]], [[1, 2], [3, 4]])
    assert context.shape == (1, 2)


def test_float32_and_tensors_are_computed_in_float64():
    exact = Q[0].astype(np.float32).astype(np.float64)
    for given in (Q[0].astype(np.float32), torch.from_numpy(Q[0].astype(np.float32))):
        context, weights = reference.scaled_dot_product(given, given, given)
        assert (context.dtype, weights.dtype) == (np.float64, np.float64)
        expected = reference.scaled_dot_product(exact, exact, exact)
        np.testing.assert_array_equal(context, expected[0])


def test_a_mask_may_be_0_and_1_and_broadcast():
    scores = [[1.0, 2.0, 3.0]] * 2
    expected = reference.softmax(scores, np.array([[True, False, True]] * 2))
    for mask in ([1, 0, 1], [[1, 0, 1]], np.array([True, False, True])):
        np.testing.assert_array_equal(reference.softmax(scores, mask), expected)


def test_parameters_may_be_lists_too():
    p = reference.GRUParameters(*[[[0.5]]] * 6, *[[0.1]] * 4)
    arrays = reference.GRUParameters(*(np.array(field) for field in p))
    found = reference.gru([[1.0], [2.0]], [0.0], p)
    np.testing.assert_array_equal(
        found, reference.gru(np.array([[1.0], [2.0]]), np.zeros(1), arrays)
    )


WRONG = [
    (
        lambda: reference.scaled_dot_product(Q, Q, Q),
        "expected Q of shape (queries, d_k); got shape (2, 3, 4); one text at a time: pass Q[0] "
        "of a batch",
    ),
    (lambda: reference.scaled_dot_product(Q[0, 0], Q[0], Q[0]), "got shape (4,); give it the axes"),
    (
        lambda: reference.scaled_dot_product(Q[0], Q[0][:, :2], Q[0]),
        "expected K of shape (keys, d_k) with d_k = 4, as in the arguments before; got shape (3, "
        "2); make d_k the same everywhere",
    ),
    (lambda: reference.scaled_dot_product(Q[0], Q[0], Q[0][:2]), "make keys the same everywhere"),
    (
        lambda: reference.scaled_dot_product(Q[0], Q[0], Q[0], np.ones((2, 2), bool)),
        "expected mask of shape (queries, keys) with queries = 3",
    ),
    (lambda: reference.softmax("ab"), "expected scores of numbers; got <U2"),
    (lambda: reference.softmax([[1, 2], [3]]), "expected scores of numbers; got a list (setting"),
    (lambda: reference.sigmoid([1j]), "expected a of numbers; got complex128 of shape (1,)"),
    (
        lambda: reference.softmax([1, 2], [0.5, 1]),
        "expected mask of bools, or of 0 and 1; got float64 of shape (2,); True is where looking",
    ),
    (lambda: reference.softmax([1, 2], [2, 1]), "expected mask of bools, or of 0 and 1; got int64"),
    (
        lambda: reference.softmax([1, 2, 3], [True, False]),
        "expected mask of a shape that broadcasts to (3,); got shape (2,)",
    ),
    (lambda: reference.embed([0.5], [[1, 2]]), "expected ids of whole numbers; got float64"),
    (
        lambda: reference.softmax(torch.ones(2, requires_grad=True)),
        "expected scores of numbers; got a Tensor (Can't call numpy()",
    ),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_what_is_no_such_array_gets_a_sentence(call, text):
    with pytest.raises(AttlasError, match=re.escape(text)):
        call()


def test_a_missing_argument_is_pythons_own_error():
    with pytest.raises(TypeError, match=r"scaled_dot_product\(\) missing 2 required"):
        inspect.unwrap(reference.scaled_dot_product)(Q[0])


@pytest.mark.parametrize("name", [n for n in reference.__all__ if n[0].islower()])
def test_every_function_of_arrays_reads_them(name):
    function = getattr(reference, name)
    if name in ("patterns", "sinusoidal"):  # they take numbers and rules
        return
    assert "takes_arrays" in inspect.getsource(function).splitlines()[0]
