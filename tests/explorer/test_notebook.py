"""The explorer in a notebook: what its page asks by messages, and how that is answered."""

import sys
from typing import Any

import numpy as np
import pytest
import torch

import attlas
from attlas.errors import AttlasError, UnsupportedError
from attlas.explorer import notebook
from attlas.explorer.notebook import TraceAnswers, trace_of
from attlas.explorer.overview import split_tiles
from attlas.explorer.tiles import unpack
from attlas.recording import Trace


def weights(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*shape, generator=generator).softmax(-1)


def test_weights_of_one_head_have_their_rows_and_columns() -> None:
    shown = weights(2, 3)
    trace = trace_of(shown.numpy(), ["a", "b"], ["x", "y", "z"])
    np.testing.assert_array_equal(np.asarray(trace["weights"])[0, 0], shown.numpy())
    assert (trace.target, trace.source) == ((("a", "b"),), (("x", "y", "z"),))


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5), (2, 3, 4, 5)])
def test_weights_of_any_shape_keep_their_axes(shape: tuple[int, ...]) -> None:
    shown = weights(*shape)
    whole = shown.reshape(*(1,) * (4 - len(shape)), *shape)
    assert torch.equal(trace_of(shown)["weights"].weights(), whole)
    assert torch.equal(trace_of(shown.tolist())["weights"].weights(), whole)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (torch.randn(2, 2) - 5, "not below 0"),
        (torch.full((2, 2), torch.nan), "not below 0"),
        (torch.ones(3), r"shape \(3,\)"),
        (torch.ones(0, 3), r"shape \(0, 3\)"),
        ("weights", "a str"),
        (None, "a NoneType"),
        ({"a": 1}, "a dict"),
    ],
)
def test_what_are_no_weights_is_refused(shown: object, said: str) -> None:
    with pytest.raises(AttlasError, match=said):
        trace_of(shown)


def test_tokens_that_do_not_fit_are_refused() -> None:
    with pytest.raises(AttlasError, match="labels of the target"):
        trace_of(weights(2, 3), ["a"], ["x", "y", "z"])
    with pytest.raises(AttlasError, match="one text, 'abc'"):
        trace_of(weights(3, 3), "abc", "abc")
    with pytest.raises(AttlasError, match="tokens beside it"):
        trace_of(trace_of(weights(2, 3)), ["a", "b"])


def test_each_question_of_the_page_is_answered() -> None:
    shown = weights(3, 4, 5)
    words = ["a", "b", "c", "d"], ["v", "w", "x", "y", "z"]
    answers = TraceAnswers(trace_of(shown, *words), "mine")
    assert answers.answer({"ask": "model"})[0]["facts"] == {"name": "mine"}
    reported = answers.answer({"ask": "text", "row": 0})[0]
    assert [(one["heads"], one["queries"], one["keys"]) for one in reported["layers"]] == [
        (3, 4, 5)
    ]
    of_map: dict[str, Any] = {"map": reported["map"], "layer": 0}
    part = {"rows": "1:3", "keys": "0:5", "shape": "2,5", "heads": "2:3"}
    _, tile = answers.answer({"ask": "tile", **of_map, "query": part})
    assert tile is not None
    torch.testing.assert_close(unpack(tile), shown[2:, 1:3], atol=1e-5, rtol=0)
    named, _ = answers.answer({"ask": "tokens", **of_map, "query": {"rows": "1:3"}})
    assert (list(named["rows"]), list(named["keys"])) == (["b", "c"], words[1])
    _, pictures = answers.answer({"ask": "overview", "map": reported["map"]})
    assert pictures is not None
    assert len(split_tiles(pictures)) == 1
    numbers, _ = answers.answer({"ask": "statistics", "map": reported["map"]})
    assert set(numbers) == {"names", "layers", "first", "sampled"}


@pytest.mark.parametrize(
    "question",
    [
        None,
        [],
        {},
        {"ask": "everything"},
        {"ask": ["model"]},
        {"ask": "text", "row": 1},
        {"ask": "text", "row": True},
        {"ask": "text", "row": "0"},
        {"ask": "overview", "map": 0},
        {"ask": "overview", "map": "00"},
        {"ask": "tile", "map": "0", "layer": 9},
        {"ask": "tile", "map": "0", "layer": 0, "query": {"rows": "9:1"}},
        {"ask": "tile", "map": "0", "layer": 0, "query": {"colour": "red"}},
        {"ask": "tile", "map": "0", "layer": 0, "query": "rows"},
    ],
)
def test_a_wrong_question_is_answered_with_what_is_wrong(question: object) -> None:
    said, content = TraceAnswers(trace_of(weights(2, 2))).answer(question)
    assert set(said) == {"error"}
    assert set(said["error"]) == {"expected", "got", "hint"}
    assert content is None


def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    notebook._widget_class.cache_clear()
    with pytest.raises(UnsupportedError, match=r"pip install 'attlas\[notebook\]'"):
        attlas.show(weights(2, 2))


def test_an_empty_trace_is_refused() -> None:
    with pytest.raises(AttlasError, match="an empty one"):
        TraceAnswers(Trace())


def test_a_widget_answers_its_page_with_binary_buffers() -> None:
    pytest.importorskip("anywidget")
    notebook._widget_class.cache_clear()
    shown = weights(3, 4, 5)
    widget = attlas.show(shown)
    sent: list[tuple[Any, Any]] = []
    widget.send = lambda content, buffers=None: sent.append((content, buffers))
    question = {"id": 7, "ask": "tile", "map": "0", "layer": 0, "query": {}}
    widget._handle_custom_msg(question, [])
    ((said, buffers),) = sent
    assert said == {"id": 7, "answer": {}}
    torch.testing.assert_close(unpack(buffers[0]), shown, atol=1e-5, rtol=0)
    assert "render" in widget._esm
