"""What an output becomes when a head looks elsewhere: does it need the weights that it has?"""

import itertools
import math
import re
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from jaxtyping import Float
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from torch import Tensor

from attlas.analysis.faithfulness.adversarial import adversarial_weights
from attlas.analysis.faithfulness.experiment import AttentionRows, Intervention, distribution
from attlas.analysis.faithfulness.head_changes import (
    HeadChange,
    HeadTarget,
    made_uniform,
    outputs_with,
    shuffled,
    switched_off,
    unchanged,
    weight_set,
)
from attlas.errors import AttlasError
from attlas.explorer.cancellation import SearchTurns
from attlas.explorer.maps import (
    Layer,
    MapRoutes,
    TextMaps,
    check_parameters,
    read_number,
    read_range,
)
from attlas.explorer.messages import json_no_store, path_number
from attlas.explorer.readings import Readings
from attlas.inference.forward_pass import ForwardPass

# What is shown of a text that can be doubted.


def what_can_be_doubted(text_maps: TextMaps) -> dict[str, Any] | None:
    """The tokens that can be erased, the outputs, and what the axes of each layer are; None where
    the model cannot be run again, and where it predicts nothing.

    rows: whether row t of a layer's map is the query of output t. keys: whether key s is token s of
    the source.
    """
    run = text_maps.forward_pass
    if run is None or not run.outputs:
        return None
    return {
        "source": list(run.source),
        "outputs": [output.name for output in run.outputs],
        "first": run.first,
        "rows": [_rows_are_outputs(run, layer) for layer in text_maps.layers],
        "keys": [_keys_are_source(run, layer) for layer in text_maps.layers],
    }


def _rows_are_outputs(run: ForwardPass, layer: Layer) -> bool:
    return run.side(layer.path) != "source" and layer.queries == len(run.outputs)


def _keys_are_source(run: ForwardPass, layer: Layer) -> bool:
    return run.side(layer.path) != "target" and layer.num_keys == len(run.source)


_DOES = {
    "uniform": "Uniform: each query looks at all its keys alike.",
    "permuted": "Permuted: its weights are shuffled among its keys; mean ± standard deviation.",
    "off": "Off: the head reads zeros.",
    "weight": "A weight by hand: the rest of its row keeps its proportions, and the row its sum.",
    "erased": "Without: the text is read without these tokens.",
    "adversary": "Other weights: as different as possible, for the same output.",
}
"""What is done, by the name of the change."""


# What the page asks.


_ADVERSARY = ("head", "output", "row")
_NAMES = ("head", "output", "row", "key", "weight", "erased")
_SHARE = re.compile(r"[01]|0?\.\d{1,9}|1\.0{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Question:
    """Which output, and which row of which head's map.

    Args:
        head: From 0; None = all heads of the layer.
        key: The key of a weight that is set; None = the key of the greatest weight.
        share: Which share of its row the key gets; None = no weight is set.
        erased: The tokens of the source that are taken out; none = the key, if it is one of them.
    """

    head: int | None
    output: int
    row: int
    key: int | None = None
    share: float | None = None
    erased: range = range(0)

    @classmethod
    def read(cls, query: Mapping[str, str], layer: Layer, run: ForwardPass) -> Self:
        """From a query string: ?head=h&output=o&row=r&key=k&weight=0.5&erased=a:b.

        Without a head it is of all heads; the output and the row are always named.
        """
        head = read_number(query, "head", layer.heads)
        output = read_number(query, "output", len(run.outputs))
        row = read_number(query, "row", layer.queries)
        if output is None or row is None:
            raise AttlasError(
                "an output and a row", "a question without them", "add ?output=0&row=0"
            )
        key = read_number(query, "key", layer.num_keys)
        share = query.get("weight")
        if share is not None and _SHARE.fullmatch(share) is None:
            raise AttlasError("a weight from 0 to 1", f"?weight={share}", "write it as 0.25")
        erased = range(0)
        if "erased" in query:
            erased = range(*read_range(query, "erased", len(run.source)))
        number = None if share is None else float(share)
        return cls(head=head, output=output, row=row, key=key, share=number, erased=erased)


# What it is answered.


_DRAWS = 8
_TOP = 5
_STARTS, _STEPS = 6, 30  # of the search for other weights


class _Doubt:
    """The answers to one question about a layer."""

    def __init__(
        self, run: ForwardPass, layer: Layer, question: Question, next_turn: Callable[[], None]
    ) -> None:
        self._run, self._layer = run, layer
        self._question, self._next_turn = question, next_turn
        self._map = HeadTarget(
            layer.path,
            question.head,
            layer.before,
            layer.queries,
            cross_attention=not layer.axes.within,
        )

    def answer(self) -> dict[str, Any]:
        """What each change does to the output, and the gradient of the row."""
        question, run = self._question, self._run
        rows = self._rows(question.row)
        weights, seen = rows.weights[0].mean(0), rows.allowed[0].any(0)
        key = question.key
        if key is None:
            key = int(weights.masked_fill(~seen, -torch.inf).argmax())
        erased = question.erased
        if not erased and _keys_are_source(run, self._layer):
            erased = range(key, key + 1)
        changes: list[HeadChange] = [unchanged, made_uniform, switched_off]
        changes += [shuffled(seed) for seed in range(_DRAWS)]
        impossible: str | None = None
        if question.share is not None:
            impossible = _impossible(rows, key, question.share)
            if impossible is None:
                changes.append(weight_set(question.row, key, question.share, question.head))
        found = outputs_with(
            run.model,
            lambda copies: run.logits(question.output, copies),
            self._map,
            changes,
            most_copies=run.most_copies,
            before_call=self._next_turn,
        )
        before, label = found[0], self._label(found[0])
        table_rows = [
            self._change("uniform", before, found[1:2], label),
            self._change("permuted", before, found[3 : 3 + _DRAWS], label),
            self._change("off", before, found[2:3], label),
        ]
        if question.share is not None:
            edited = found[3 + _DRAWS :] if impossible is None else impossible
            table_rows.append(self._change("weight", before, edited, label))
        if erased:
            table_rows.append(self._change("erased", before, self._output_without(erased), label))
        slopes = rows.gradients(torch.tensor([label], device=before.device))[0].sum(0)
        probability = float(before[label])
        return {
            "output": run.names([label])[0],
            "probability": probability,
            "top": self._top(before),
            "draws": _DRAWS,
            "how": (
                "The model reads this text again with other weights in all rows of "
                f"{'all heads of this layer' if question.head is None else 'this head'}; "
                "what was written before stays."
            ),
            "changes": table_rows,
            "key": key,
            "erased": [erased.start, erased.stop] if erased else None,
            "weights": weights.tolist(),
            "seen": seen.tolist(),
            "gradient": (slopes / probability).tolist() if probability > 0 else None,
        }

    def adversary(self) -> dict[str, Any]:
        """Other weights, as different as a search finds, that lead to the same output.

        Of a layer that is called for each query by itself they are those of one row; of another one
        they are those of the whole map of the head.
        """
        question, run = self._question, self._run
        try:
            target = self._map.target(run.model, self._call, None)
            query: int | None = question.row
        except AttlasError:
            target, query = self._map.target(run.model, self._call, question.row), None
        found = adversarial_weights(
            run.model, self._call, target, seed=0, starts=_STARTS, steps=_STEPS
        )
        rows = AttentionRows.of(run.model, self._call, target)
        with torch.no_grad():
            after = rows.output_of(found.weights)
        before, label = rows.output[0], self._label(rows.output[0])
        # Rows stand head by head, and in a head query by query.
        own = found.weights[0] if query is None else found.weights[0][query :: self._map.queries]
        return {
            "changes": [self._change("adversary", before, after, label)],
            "divergence": float(found.divergence[0]),
            "at_most": float(found.at_most[0]),
            "distance": float(found.distance[0]),
            "whole": query is not None,
            "weights": own.mean(0).tolist(),
        }

    def _call(self) -> Tensor:
        self._next_turn()
        return self._run.logits(self._question.output)

    def _rows(self, query: int) -> AttentionRows:
        target = self._map.target(self._run.model, self._call, query)
        return AttentionRows.of(self._run.model, self._call, target)

    def _label(self, output: Float[Tensor, " labels"]) -> int:
        label = self._run.outputs[self._question.output].label
        return int(output.argmax()) if label is None else label

    def _output_without(self, erased: range) -> Float[Tensor, "1 labels"] | str:
        """The output of the text without these tokens; a text says why there is none."""
        run, output = self._run, self._question.output
        self._next_turn()
        try:
            with torch.no_grad():
                read = Intervention(run.model, lambda: run.logits(output, without=erased))
                return distribution(read.baseline())
        except AttlasError as error:
            return str(error)

    def _change(
        self,
        name: str,
        before: Float[Tensor, " labels"],
        after: Float[Tensor, "draws labels"] | str,
        label: int,
    ) -> dict[str, Any]:
        """What one change did: the mean over its draws, and their standard deviation.

        A text says why the change is impossible.
        """
        if isinstance(after, str):
            return {"name": name, "does": _DOES[name], "impossible": after}
        moved = after[:, label].log() - before[label].log()
        mean = after.mean(0)
        spread = float(moved.std()) if len(moved) > 1 else None
        return {
            "name": name,
            "does": _DOES[name],
            "delta": _finite(float(moved.mean())),
            "spread": None if spread is None else _finite(spread),
            "probability": float(mean[label]),
            "top": self._top(mean),
        }

    def _top(self, output: Float[Tensor, " labels"]) -> list[tuple[str, float]]:
        """The most probable labels, with their probabilities."""
        most = output.topk(min(_TOP, len(output)))
        names = self._run.names(most.indices.tolist())
        return list(zip(names, most.values.tolist(), strict=True))


def _impossible(rows: AttentionRows, key: int, share: float) -> str | None:
    """Why the weight cannot be set; None where it can."""
    try:
        weight_set(0, key, share)(rows.weights[:, :, None], rows.allowed[:, :, None], 0)
    except AttlasError as error:
        return str(error)
    return None


def _finite(number: float) -> float | None:
    """None for what JSON has no number for: the logarithm of a probability of 0."""
    return number if math.isfinite(number) else None


class DoubtRoutes:
    """Answers what an output becomes when a head looks elsewhere."""

    def __init__(self, maps: MapRoutes, turns: SearchTurns) -> None:
        self._maps, self._turns = maps, turns
        self._searches = Readings()

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for changes, for other weights of the same output, and for how far
        the search for these is."""
        return [
            Route("/maps/{id}/{layer}/doubt", self._doubt),
            Route("/maps/{id}/{layer}/adversary", self._adversary),
            Route("/maps/{id}/{layer}/adversary/progress", self._progress),
        ]

    async def _doubt(self, request: Request) -> Response:
        run, layer, question = self._question(request, _NAMES)

        def work(stop: threading.Event) -> dict[str, Any]:
            with self._turns.taken(stop) as next_turn:
                return _Doubt(run, layer, question, next_turn).answer()

        return json_no_store(await self._maps.answer(request, work))

    async def _adversary(self, request: Request) -> Response:
        run, layer, question = self._question(request, _ADVERSARY)
        search, num_calls = _search_of(request, question), _adversary_calls(layer)
        with self._searches.under_way(search) as report:

            def work(stop: threading.Event) -> dict[str, Any]:
                with self._turns.taken(stop) as next_turn:
                    calls = itertools.count(1)

                    def counted() -> None:
                        report(min(next(calls) / num_calls, 1.0))
                        next_turn()

                    return _Doubt(run, layer, question, counted).adversary()

            return json_no_store(await self._maps.answer(request, work))

    async def _progress(self, request: Request) -> Response:
        _, _, question = self._question(request, _ADVERSARY)
        return json_no_store({"share": self._searches.share(_search_of(request, question))})

    def _question(
        self, request: Request, names: tuple[str, ...]
    ) -> tuple[ForwardPass, Layer, Question]:
        text_maps = self._maps.text_maps(request)
        layer = text_maps.layer(path_number(request, "layer"))
        run = text_maps.forward_pass
        if run is None or not run.outputs:
            raise AttlasError(
                "a text whose model can be run again",
                "one that has no output, or is shown without its model",
                "open a model that predicts something: attlas look MODEL",
            )
        check_parameters(request, names)
        return run, layer, Question.read(request.query_params, layer, run)


def _search_of(request: Request, question: Question) -> Hashable:
    """What tells one search for other weights from another."""
    return request.path_params["id"], request.path_params["layer"], question


def _adversary_calls(layer: Layer) -> int:
    """About how many times the model is called in a search for other weights."""
    return layer.num_keys + _STARTS * (_STEPS + 14)
