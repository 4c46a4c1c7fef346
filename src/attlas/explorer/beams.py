"""What else a model could have written: the hypotheses of a beam search, and the alternatives of
each token."""

import math
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.errors import AttlasError
from attlas.explorer.cancellation import SearchTurns
from attlas.explorer.maps import MapRoutes, check_parameters
from attlas.explorer.messages import TranslationRequest, json_no_store
from attlas.inference.forward_pass import ForwardPass

# What is needed of a model that searches.


class HypothesisProtocol(Protocol):
    """A hypothesis of a beam search; `inference.Translation` is one."""

    @property
    def text(self) -> str:
        """What it reads as."""

    @property
    def tokens(self) -> Sequence[str]:
        """Its tokens, with the end of the sentence where it is finished."""

    @property
    def score(self) -> float:
        """What the search compared: higher is better."""

    @property
    def log_probability(self) -> float:
        """Σ log P of its tokens."""

    @property
    def finished(self) -> bool:
        """Whether the model ended it itself."""


@runtime_checkable
class BeamSearchProtocol(Protocol):
    """A model whose beam search can be seen; `inference.Translator` is one, and
    `inference.huggingface.HuggingFaceModel` another."""

    @property
    def num_beams(self) -> int:
        """How many hypotheses `beams` keeps; 0 = it searches nothing."""

    @property
    def closed_ids(self) -> Collection[int]:
        """Tokens after which no translation goes on, or that are never written."""

    def beams(self, text: str, prefix: str | Sequence[int] = "") -> Sequence[HypothesisProtocol]:
        """The hypotheses of a beam search, best first, which begin with the prefix."""


def can_search(translator: object) -> bool:
    """Whether a model has hypotheses to show."""
    return isinstance(translator, BeamSearchProtocol) and translator.num_beams > 0


# What the page gets.


_TOP = 5


_NOTES = (
    "The tree has the best translations of a beam search. What they begin with alike stands once.",
    "log p is the logarithm of the probability of all tokens. The search compares the score: "
    "log p, corrected by its settings, as for the length.",
    "What is most probable after the tokens before. Choose one to go on from there; marks such as "
    "⟨end⟩ cannot be chosen.",
)
"""What has to be known of the tree, of its numbers, and of the table."""


def beams_message(
    translator: BeamSearchProtocol, requested: TranslationRequest, run: ForwardPass
) -> dict[str, Any]:
    """The hypotheses of a text; and for each token that was written, the most probable ones.

    `open` says whether a translation can go on with this token.
    """
    found = translator.beams(requested.text, requested.prefix)
    return {
        "num_beams": translator.num_beams,
        "notes": _NOTES,
        "hypotheses": [
            {
                "text": one.text,
                "tokens": list(one.tokens),
                "score": _finite(one.score),
                "log_probability": _finite(one.log_probability),
                "finished": one.finished,
            }
            for one in found
        ],
        "outputs": alternatives(run, frozenset(translator.closed_ids)),
    }


def alternatives(run: ForwardPass, closed: frozenset[int] = frozenset()) -> list[dict[str, Any]]:
    """Of each output its probability, and the most probable tokens in its place."""
    with torch.no_grad():
        log_p = run.all_logits().log_softmax(-1)
    most = log_p.topk(min(_TOP, log_p.shape[-1]))
    names = run.names(most.indices.flatten().tolist())
    reported = []
    for place, output in enumerate(run.outputs):
        ids, values = most.indices[place].tolist(), most.values[place].exp().tolist()
        label = ids[0] if output.label is None else output.label
        own = names[place * len(ids) : (place + 1) * len(ids)]
        reported.append(
            {
                "token": output.name,
                "id": label,
                "log_probability": _finite(float(log_p[place, label])),
                "top": [
                    {"id": id_, "token": name, "probability": value, "open": id_ not in closed}
                    for id_, name, value in zip(ids, own, values, strict=True)
                ],
            }
        )
    return reported


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


class BeamRoutes:
    """Answers what else a model could have written."""

    def __init__(
        self, bounded: Callable[[Callable[[], None]], object], maps: MapRoutes, turns: SearchTurns
    ) -> None:
        """
        Args:
            bounded: Gives the model, with the bounds of the server. It takes what is called before
                each step.
        """
        self._bounded, self._maps, self._turns = bounded, maps, turns

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for hypotheses and alternatives."""
        return [Route("/maps/{id}/beams", self._beams)]

    async def _beams(self, request: Request) -> Response:
        text_maps = self._maps.text_maps(request)
        check_parameters(request, ())
        run, requested = text_maps.forward_pass, text_maps.requested
        if run is None or requested is None:
            raise AttlasError(
                "a text whose model searches for what it writes",
                "one whose model reads, or goes on word by word",
                "open a translator: attlas look RUN",
            )

        def work(stop: threading.Event) -> dict[str, Any]:
            with self._turns.taken(stop) as next_turn:
                translator = self._bounded(next_turn)
                assert isinstance(translator, BeamSearchProtocol)  # else nothing was kept of it
                return beams_message(translator, requested, run)

        return json_no_store(await self._maps.answer(request, work))
