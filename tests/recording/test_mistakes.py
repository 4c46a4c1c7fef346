"""Mistakes with `observe` and `intervene`, and the sentence that each gets."""

import gc
import inspect
import warnings
from contextlib import ExitStack

import pytest
import torch
from torch import nn

import attlas
from attlas.errors import AttlasError
from attlas.recording import intervene, observe, permuted, uniform, without
from support.warm_processes import python

WITH = r"write `with attlas.observe\(model\) as trace:` and call the model inside the block"


UNCHECKED = inspect.unwrap(observe), inspect.unwrap(intervene)
"""As they are for users: the tests check the types of everything that is given to a function."""


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval()


@pytest.mark.parametrize(
    "use",
    [
        lambda block: block(torch.randn(1, 3, 8)),  # trace = observe(model)(x)
        lambda block: block["self_attn"],
        lambda block: block.items(),
        lambda block: block.save("trace.safetensors"),
        lambda block: block.label([["a"]]),
        lambda block: list(block),
        lambda block: len(block),
        lambda block: "self_attn" in block,
    ],
)
def test_a_block_that_was_not_entered_says_so_whatever_is_asked_of_it(model, use):
    block = observe(model)
    model(torch.randn(1, 3, 8))
    with pytest.raises(AttlasError, match=WITH):
        use(block)
    assert repr(block) == "<write: with attlas.observe(model) as trace:>"


def test_a_block_that_nobody_entered_is_reported_of_when_it_is_dropped(model):
    def drop(make):
        block = make()
        model(torch.randn(1, 3, 8))
        del block
        gc.collect()

    with pytest.warns(RuntimeWarning, match=f"the block was never entered: {WITH}"):
        drop(lambda: observe(model))
    with pytest.warns(RuntimeWarning, match=r"with attlas.intervene\(model, change\)"):
        drop(lambda: intervene(model, uniform))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ExitStack() as blocks, torch.no_grad():
            trace = blocks.enter_context(observe(model))
            model(torch.randn(1, 3, 8))
        gc.collect()
    assert list(trace) == ["self_attn"]


def test_the_block_is_no_trace_and_is_entered_once(model):
    block = observe(model)
    with block as trace:
        model(torch.randn(1, 3, 8))
    assert not hasattr(block, "items")
    with pytest.raises(AttlasError, match="use what `as` names"):
        block["self_attn"]
    with pytest.raises(AttlasError, match=r"entered before; call the function again"), block:
        pass
    assert list(trace) == ["self_attn"]


class Pipeline:
    def __init__(self, model):
        self.model = model


@pytest.mark.parametrize(
    ("make", "reported"),
    [
        (lambda model: nn.Transformer, r"the class Transformer; make a model of it first: Transf"),
        (lambda model: model.forward, r"its method 'forward'; pass the model itself, and call"),
        (
            lambda model: Pipeline(model),
            r"a Pipeline; pass the model itself: its attribute `model`",
        ),
        (lambda model: "runs/demo", r"the text 'runs/demo'; load the model first"),
        (lambda model: torch.randn(2), r"a Tensor; pass the model itself"),
        (lambda model: None, r"a NoneType; pass the model itself"),
        (lambda model: [model], r"a list; pass the model itself"),
    ],
)
def test_what_is_no_model_is_reported_at_once_with_what_was_meant(model, make, reported):
    given = make(model)
    for door in (UNCHECKED[0], lambda one: UNCHECKED[1](one, uniform)):
        with pytest.raises(AttlasError, match=f"a model, a torch.nn.Module; got {reported}"):
            door(given)


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (without, r"got without, which makes one; call it, as in without\(0\)"),
        (permuted, r"got permuted, which makes one; call it, as in permuted\(seed=1\)"),
        (lambda weights: weights, r"got <lambda>\(weights\); write it as `def change\(weights, al"),
        ("uniform", r"got a str; pass such as attlas.recording.uniform"),
        (torch.zeros(2), r"got a Tensor; pass such as"),
        (None, r"got a NoneType; pass such as"),
    ],
)
def test_a_change_that_cannot_be_called_with_weights_is_reported_before_the_model_runs(
    model, change, reported
):
    with pytest.raises(
        AttlasError, match=rf"a function of \(weights, allowed, layer\).*{reported}"
    ):
        UNCHECKED[1](model, change)


def test_functions_of_any_kind_are_changes(model):
    class Method:
        def change(self, weights, allowed, layer):
            return weights * 0

        def __call__(self, *given):
            return given[0] * 0

    def with_default(weights, allowed, layer="", share=0):
        return weights * share

    found = []
    for change in (Method().change, Method(), with_default, without(0, 1)):
        with torch.no_grad(), attlas.intervene(model, change):
            found.append(model(torch.ones(1, 3, 8)))
    assert all(torch.equal(one, found[0]) for one in found)


def test_the_uniform_change_is_passed_and_not_called():
    with pytest.raises(AttlasError, match=r"a call of it; write intervene\(model, uniform\)"):
        uniform()


LINES = """
import torch
from torch import nn
from attlas.recording import observe

model = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval()])
with torch.no_grad(), observe(model, layers=["0.*", "9.*"]):
    model[0](torch.randn(1, 3, 8))
"""


@pytest.mark.slow
def test_the_warning_of_a_pattern_of_no_layer_names_the_line_of_the_block(tmp_path):
    """In a process where nobody checks types, which puts functions in between."""
    (tmp_path / "lines.py").write_text(LINES)
    done = python("import runpy, sys; runpy.run_path(sys.argv[1])", tmp_path / "lines.py")
    assert f"{tmp_path / 'lines.py'}:7: UserWarning: layers=['9.*'] match none" in done.stderr
