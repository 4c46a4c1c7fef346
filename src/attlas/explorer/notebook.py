"""The explorer in a notebook: a widget, whose page asks by messages and is answered in bytes."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attlas.errors import AttlasError, missing_extra, quoted
from attlas.explorer.backends import texts_of
from attlas.explorer.maps import Layer, MapWindow, TextMaps, check_names, described
from attlas.explorer.mechanism import mechanism_without_model
from attlas.explorer.messages import error_body
from attlas.explorer.overview import (
    SIDE,
    LayerOverview,
    join_tiles,
    look_at_text,
    statistics_message,
)
from attlas.recording import DenseAttentionMap, Trace

_SCRIPT = Path(__file__).parent / "page" / "widget.js"

# What is shown: a trace, or the weights of one layer as an array.


def show(
    shown: Any,
    rows: Sequence[str] | Sequence[Sequence[str]] | None = None,
    columns: Sequence[str] | Sequence[Sequence[str]] | None = None,
    *,
    name: str | None = None,
) -> Any:
    """The explorer of a trace, or of weights, as a widget of Jupyter, VS Code, Colab or marimo.

    Args:
        shown: A trace; or weights, which are 0 or more, as an array or a tensor: (queries, keys),
            (heads, queries, keys) or (batch, heads, queries, keys).
        rows, columns: The tokens of the queries and of the keys; of a batch, a list for each row.
        name: What the page calls it.

    Raises:
        AttlasError: If anywidget is missing (`pip install 'attlas[notebook]'`), for weights of
            another shape or below 0, and for tokens that do not fit them.
    """
    trace = trace_of(shown, rows, columns)
    return _widget_class()(TraceAnswers(trace, name))


def trace_of(shown: Any, rows: Any = None, columns: Any = None) -> Trace:
    """A trace as it is; or one of a single layer, whose weights are these.

    Raises:
        AttlasError: As `show`.
    """
    if isinstance(shown, Trace):
        if rows is not None or columns is not None:
            raise AttlasError(
                "a trace alone, which has its tokens",
                "tokens beside it",
                "label the trace: trace.label(source, target)",
            )
        return shown
    weights = _weights(shown)
    trace = Trace()
    trace.record("weights", DenseAttentionMap(weights, query_offset=None))
    trace.label(_lists(columns, weights), _lists(rows, weights))
    return trace


def _weights(shown: Any) -> Tensor:
    expected = "weights shaped (queries, keys), (heads, queries, keys) or (batch, heads, …)"
    try:
        weights = torch.as_tensor(shown).detach().to("cpu")
    except (TypeError, ValueError, RuntimeError):
        raise AttlasError(
            f"a trace, or {expected}", f"a {type(shown).__name__}", "pass an array of numbers"
        ) from None
    if not 2 <= weights.ndim <= 4 or not weights.numel() or weights.is_complex():
        raise AttlasError(
            expected, f"shape {tuple(weights.shape)} of {weights.dtype}", "choose one layer"
        )
    weights = weights.float() if not weights.is_floating_point() else weights
    if not bool((weights.isfinite() & (weights >= 0)).all()):
        raise AttlasError(
            "weights that are finite and not below 0",
            "NaN, infinity or numbers below 0",
            "pass weights after the softmax, not scores",
        )
    return weights.reshape(*(1,) * (4 - weights.ndim), *weights.shape)


def _lists(tokens: Any, weights: Tensor) -> list[list[str]]:
    """The tokens of each row of the batch; [] where they have no names."""
    if tokens is None:
        return []
    if isinstance(tokens, str):
        raise AttlasError("a list of tokens", f"one text, {quoted(tokens)}", "split it into tokens")
    listed = [*tokens]
    alone = all(isinstance(token, str) for token in listed)
    return [listed] if alone and weights.shape[0] == 1 else listed


# What the page asks, and how it is answered.


class TraceAnswers:
    """Answers what a page asks of a trace, as the server does, but in place.

    A question is {"ask", …}; an answer is a value that JSON can hold, and bytes, where there are
    some. What is wrong with a question is an answer too: {"error": {"expected", "got", "hint"}}.
    """

    def __init__(self, trace: Trace, name: str | None = None) -> None:
        self._trace, self._name = trace, name
        self._texts = texts_of(trace)
        self._maps: dict[int, TextMaps] = {}
        self._overviews: dict[int, list[LayerOverview]] = {}
        self._known: Mapping[str, Callable[[Mapping[str, Any]], tuple[Any, bytes | None]]] = {
            "model": self._model,
            "text": self._text,
            "overview": self._overview,
            "statistics": self._statistics,
            "tile": self._tile,
            "tokens": self._tokens,
            "image": self._image,
            "mechanism": self._mechanism,
        }

    def answer(self, question: Any) -> tuple[Any, bytes | None]:
        """The answer to one question."""
        try:
            name = question.get("ask") if isinstance(question, Mapping) else None
            if not isinstance(name, str) or name not in self._known:
                expected = f"a question of {', '.join(self._known)}"
                raise AttlasError(expected, quoted(question), "load the page again")
            return self._known[name](question)
        except AttlasError as error:
            return {"error": error_body(error)}, None

    def _model(self, question: Mapping[str, Any]) -> tuple[Any, None]:
        texts = [title for title, _, _ in self._texts]
        return {"facts": {"name": self._name}, "texts": texts}, None

    def _text(self, question: Mapping[str, Any]) -> tuple[Any, None]:
        row = _number(question, "row", len(self._texts))
        named: dict[str, Any] = {
            "text": None,
            "score": None,
            "remarks": [],
            "blank": "",
            "map": str(row),
        }
        return {**named, "layers": described(self._of(row).layers)}, None

    def _overview(self, question: Mapping[str, Any]) -> tuple[Any, bytes]:
        tiles = [overview.tile() for overview in self._all(self._row(question))]
        return {}, join_tiles(tiles)

    def _statistics(self, question: Mapping[str, Any]) -> tuple[Any, None]:
        row = self._row(question)
        return statistics_message(self._of(row).layers, self._all(row)), None

    def _tile(self, question: Mapping[str, Any]) -> tuple[Any, bytes]:
        layer, view = self._window(question)
        return {}, view.tile(layer)

    def _tokens(self, question: Mapping[str, Any]) -> tuple[Any, None]:
        layer, view = self._window(question)
        rows, keys = layer.axes.queries[slice(*view.rows)], layer.axes.keys[slice(*view.key_range)]
        return {"rows": rows, "keys": keys}, None

    def _image(self, question: Mapping[str, Any]) -> tuple[Any, bytes]:
        layer, _ = self._part(question, ())
        return {}, layer.image()

    def _mechanism(self, question: Mapping[str, Any]) -> tuple[Any, None]:
        layer, query = self._part(question, ("head", "row", "key"))
        return mechanism_without_model(layer, query), None

    def _window(self, question: Mapping[str, Any]) -> tuple[Layer, MapWindow]:
        layer, query = self._part(question, ("heads", "rows", "keys", "shape", "bits", "curve"))
        return layer, MapWindow.read(query, layer)

    def _part(
        self, question: Mapping[str, Any], names: tuple[str, ...]
    ) -> tuple[Layer, Mapping[str, str]]:
        maps = self._of(self._row(question))
        layer = maps.layers[_number(question, "layer", len(maps.layers))]
        query = question.get("query", {})
        if not isinstance(query, Mapping) or not all(isinstance(v, str) for v in query.values()):
            raise AttlasError("a part of a map, in texts", quoted(query), "load the page again")
        check_names(query, names)
        return layer, query

    def _row(self, question: Mapping[str, Any]) -> int:
        name = question.get("map")
        known = {str(row): row for row in range(len(self._texts))}
        if not isinstance(name, str) or name not in known:
            raise AttlasError("a map of this trace", quoted(name), "load the page again")
        return known[name]

    def _of(self, row: int) -> TextMaps:
        if row not in self._maps:
            self._maps[row] = TextMaps.of(self._trace, *self._texts[row][1:])
        return self._maps[row]

    def _all(self, row: int) -> list[LayerOverview]:
        if row not in self._overviews:
            self._overviews[row] = look_at_text(self._of(row), SIDE)
        return self._overviews[row]


def _number(question: Mapping[str, Any], name: str, most: int) -> int:
    number = question.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < most:
        raise AttlasError(
            f"{name} as a number from 0 to {most - 1}", quoted(number), "count from 0"
        )
    return number


@cache
def _widget_class() -> Any:
    """The class of the widget, which needs the extra `notebook`."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise missing_extra(
            "anywidget, which shows the explorer in a notebook", "notebook"
        ) from None

    class Explorer(anywidget.AnyWidget):
        """An explorer of one trace."""

        _esm = traitlets.Unicode(_SCRIPT.read_text(encoding="utf-8")).tag(sync=True)

        def __init__(self, answers: TraceAnswers) -> None:
            super().__init__()
            self._answers = answers
            self.on_msg(self._on_question)

        def _on_question(self, _: Any, question: Any, __: Any) -> None:
            said, content = self._answers.answer(question)
            number = question.get("id") if isinstance(question, Mapping) else None
            self.send({"id": number, "answer": said}, [content] if content is not None else None)

    return Explorer
