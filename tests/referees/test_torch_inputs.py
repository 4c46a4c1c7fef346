"""torch's own test inputs for the layer and the function that take the place of torch's."""

import sys
import unittest
from types import ModuleType

import pytest
import torch
from torch import nn

import attlas
from attlas.layers import MultiheadAttention


@pytest.fixture(scope="module")
def databases():
    """torch's lists of modules and of functions with inputs for each."""
    with pytest.MonkeyPatch.context() as patch:
        expecttest = ModuleType("expecttest")  # torch's test cases want it, and its inputs do not
        expecttest.TestCase = unittest.TestCase
        patch.setitem(sys.modules, "expecttest", expecttest)
        patch.setattr(sys, "argv", sys.argv[:1])  # it reads the command line
        modules = pytest.importorskip("torch.testing._internal.common_modules")
        functions = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    return modules.module_db, functions.op_db


@pytest.mark.parametrize("training", [True, False])
def test_the_layer_gives_what_torchs_gives_for_torchs_own_inputs(databases, training):
    info = next(one for one in databases[0] if one.module_cls is nn.MultiheadAttention)
    options = {"device": "cpu", "dtype": torch.float64, "requires_grad": True}
    count = 0
    for case in info.module_inputs_func(info, training=training, **options):
        built, call = case.constructor_input, case.forward_input
        torch.manual_seed(0)
        theirs = nn.MultiheadAttention(*built.args, **built.kwargs).double().train(training)
        ours = MultiheadAttention(*built.args, **built.kwargs).double().train(training)
        ours.load_state_dict(theirs.state_dict())
        expected, found = theirs(*call.args, **call.kwargs), ours(*call.args, **call.kwargs)
        torch.testing.assert_close(found[0], expected[0])
        assert (found[1] is None) == (expected[1] is None)
        if found[1] is not None:
            torch.testing.assert_close(found[1], expected[1])
        count += 1
    assert count > 50


def test_the_function_gives_what_torchs_gives_for_torchs_own_inputs(databases):
    name = "nn.functional.scaled_dot_product_attention"
    operation = next(one for one in databases[1] if one.name == name)
    count = 0
    for case in operation.sample_inputs("cpu", torch.float64, requires_grad=True):
        if case.kwargs.get("dropout_p"):
            continue  # random
        expected = operation(case.input, *case.args, **case.kwargs)
        found = attlas.scaled_dot_product_attention(case.input, *case.args, **case.kwargs)
        read, weights = attlas.scaled_dot_product_attention_with_weights(
            case.input, *case.args, **case.kwargs
        )
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(read, expected)
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
        count += 1
    assert count > 8


@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 8), (2, 7, 8), (2, 7, 8)),
        ((5, 8), (2, 3, 7, 8), (2, 3, 7, 8)),
        ((3, 5, 8), (2, 3, 7, 8), (3, 7, 8)),
        ((2, 3, 5, 8), (7, 8), (7, 8)),
        ((4, 2, 3, 5, 8), (2, 3, 7, 8), (3, 7, 8)),
        ((3, 5, 8), (4, 2, 3, 7, 8), (1, 2, 3, 7, 8)),
    ],
)
def test_missing_axes_are_the_first_ones_as_in_torch(shapes):
    torch.manual_seed(0)
    query, key, value = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    expected = nn.functional.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(attlas.scaled_dot_product_attention(query, key, value), expected)
    if key.ndim == 3:
        mask = torch.rand(5, 7) < 0.7
        mask[:, 0] = True
        expected = nn.functional.scaled_dot_product_attention(query, key, value, mask)
        found = attlas.scaled_dot_product_attention(query, key, value, mask)
        torch.testing.assert_close(found, expected)
