"""Who listens, and what is known so far."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.recording.hooks import Listener, Place, Tap, listeners
from attlas.recording.maps.base import Reading
from attlas.recording.maps.factored import FactoredReading, without_place
from attlas.recording.torch_functions.call_site import call_at_work, inputs_at_work, place_of_call
from attlas.recording.torch_functions.contents import Content, Contents
from attlas.recording.torch_functions.heads import Folds, heads_named
from attlas.recording.torch_functions.masks import Sights, without_last
from attlas.recording.torch_functions.origins import Origins
from attlas.recording.torch_functions.provenance import Lineage, Loose, News, Scored, Weighed
from attlas.recording.torch_functions.tensors import memory

Concerned = Sequence[tuple[Listener, Place]]
Handler = Callable[["Hearing", Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Runs a function of torch with its arguments, and makes something of it."""


class Hearing:
    """The listeners of this thread, and what is known of the tensors at hand."""

    def __init__(self) -> None:
        self.lineage = Lineage()
        self.origins = Origins()
        self.sights = Sights(self.lineage.versions)
        self.folds = Folds()
        self.contents = Contents(self.lineage.versions)
        self.seen = 0  # how often attention was come upon, whoever wanted it
        self.unslotted = 0  # how many keys are no slots of the text, in the call at hand
        self.unnoticed = True  # whether somebody may not know yet that a model runs
        self.in_kernel = False  # whether a kernel that transformers calls by name is at work

    def places(self) -> Concerned:
        """Who listens to the module that is at work, and where it is for them.

        Layers of attlas speak for themselves; what they call is theirs.
        """
        found = [
            (who, place)
            for who in listeners()
            if who.modules and (place := place_of_call(who.modules)) is not None
        ]
        return [pair for pair in found if not _ours(pair[1].module)]

    def heads_named(self) -> int | None:
        """How many heads the module that is at work says that it has."""
        places = self.places()
        return heads_named(places[0][1].module) if places else None

    def concerned(self, refused: Callable[[Place], str | None] | None = None) -> Concerned:
        """The same of those who want the attention that happens there, or to change it.

        refused: why no reading is made of what happens at a place; everyone is told so.
        """
        self.seen += 1
        places = self.places()
        why = refused(places[0][1]) if refused is not None and places else None
        if why is not None:
            self._miss(places, why)
            return []
        self.origins.begin(*call_at_work())
        return [
            (who, place)
            for who, place in places
            if who.rewrite or (who.journal and not _again() and who.journal.wants(place.path))
        ]

    def tell(
        self,
        concerned: Concerned,
        reading: Reading,
        made_of: tuple[int, int, int] | None,
        before: int | None = None,
        content: Content | None = None,
    ) -> None:
        """Hand a reading to everyone who observes, without keys that are no slots.

        made_of: the identities of queries, keys and values, at the call before which they were
        these; None = not known. content: what the keys hold, where that is known.
        """
        if self.unslotted and any(who.journal for who, _ in concerned):
            reading, content = without_last(reading, self.unslotted), None
        if content is not None and isinstance(reading, FactoredReading):
            heads, key_heads = reading.query.shape[1], reading.keys.shape[1]
            content = content.once() if key_heads * content.repeats == heads else content
        for who, place in concerned:
            if who.journal and not _again():
                doubted = self._doubts(place, reading, made_of, before)
                told = without_place(reading) if doubted else reading
                related = self._related(place, made_of, before)
                placed = self._placed(related, told, made_of, before)
                who.journal.hear(placed, told, content)

    def _related(
        self, place: Place, made_of: tuple[int, int, int] | None, before: int | None
    ) -> Place:
        """The same place, with what the origin of queries and keys says of their relation."""
        if made_of is None:
            return place
        verdict = self.origins.relation(
            *made_of,
            inputs_at_work(place.module),
            before=before,
            cached=place.cache is not None,
            told=place.across,
        )
        if verdict == "unknown":
            return place
        across = None if verdict == "neither" else verdict == "cross"
        return replace(place, across=across, settled=True)

    def _placed(
        self,
        place: Place,
        reading: Reading,
        made_of: tuple[int, int, int] | None,
        before: int | None,
    ) -> Place:
        """The same place, with what the origin of queries and keys says of where queries stand."""
        if reading.position is not None or place.cache is not None:
            return place
        batch, _, queries, slots = reading.shape
        across = place.looks_across(batch, queries, slots)
        if made_of is None:  # a product of learned queries, which is taken for a projection, say
            return replace(place, unplaced=bool(across))
        query, key, _ = made_of
        if across:
            return replace(place, unplaced=self.origins.is_learned(query, before))
        if queries != slots:
            taken = partial(self.origins.first_of, query, key, (queries, slots), before)
            return replace(place, taken=cache(taken))  # each earlier call may ask it
        return replace(place, unplaced=not self.origins.in_order(query, key, queries, before))

    def _doubts(
        self,
        place: Place,
        reading: Reading,
        made_of: tuple[int, int, int] | None,
        before: int | None,
    ) -> bool:
        """Whether a mask says that queries stand elsewhere than where they were taken from a text.

        Some rows of a window that looks ahead, without the ends of the text, look as those of later
        queries that look back do.
        """
        queries, slots = reading.shape[2:]
        known = reading.position is None or place.cache is not None
        if known or made_of is None or queries == slots:
            return False
        first = self.origins.first_of(*made_of[:2], (queries, slots), before)
        return first is not None and first != reading.position

    @contextmanager
    def beside_slots(self, keys: int) -> Iterator[None]:
        """For the length of a block, so many keys behind the slots are none."""
        before, self.unslotted = self.unslotted, keys
        try:
            yield
        finally:
            self.unslotted = before

    def expect(self, scores: Scored | None, loose: Loose | None = None) -> News:
        """A softmax was taken, which may be attention: who is told so waits until it is heard.

        scores, loose: of what, where that is known; of two tensors that are no parameters it surely
        is.
        """
        factors = loose.factors if loose is not None else ()
        if scores is not None:
            factors = (memory(scores.right),)
        news = News(factors=factors)
        for who, place in [] if _again() else self.places():
            if who.journal:
                surely = bool(factors) and not _has_parameters_at(factors, place.module)
                who.journal.expect(place, surely)
                news.waiting.append(partial(who.journal.meet, place, surely))
        return news

    def reads(self, known: Weighed, weights: Tensor, values: Tensor) -> bool:
        """Whether these are the values of weights, and not rows that are the same for every text.

        Such tables have fewer axes than the weights, or are learnt; where the weights are surely of
        queries and keys, what they are multiplied with are values all the same.
        """
        learnt = isinstance(values, nn.Parameter)
        if not learnt and (values.ndim > 2 or values.ndim == weights.ndim):
            return True
        places = self.places()
        if not places:
            return False
        module, where = places[0][1].module, memory(values)
        own = (*module.parameters(), *module.buffers())
        learnt = learnt or (where != 0 and any(memory(one) == where for one in own))
        if not learnt and values.ndim == 2:
            return True
        sources = known.news.sources or (known.news,)
        told = (one.factors for one in sources if one.factors)
        return any(not _has_parameters_at(factors, module) for factors in told)

    def miss(self, why: str) -> None:
        """Attention happened of which no reading can be made: tell everyone who observes.

        Errors: `AttlasError` where somebody wants to change it.
        """
        self.seen += 1
        self._miss(self.places(), why)

    def _miss(self, places: Concerned, why: str) -> None:
        for who, place in places:
            if who.rewrite:
                raise AttlasError(
                    f"attention that can be changed, in layer {place.path!r}",
                    why,
                    "intervene where attlas can read",
                )
            if who.journal and not _again():
                who.journal.miss(place, why)

    def change(self, concerned: Concerned) -> Callable[[Tensor, Tensor], Tensor] | None:
        """Every intervention in turn, as one function of weights and what is seen; None = none."""
        asked = [(who.rewrite, place) for who, place in concerned if who.rewrite]
        if not asked:
            return None

        def change(weights: Tensor, seen: Tensor) -> Tensor:
            for rewrite, place in asked:
                weights = rewrite(weights, seen, place.path)
            return weights

        return change

    def notice(self) -> None:
        """Note that a model runs, until that is known of all that are listened to."""
        self.unnoticed = False
        for who in listeners():
            if who.journal and not who.journal.ran:
                who.journal.ran = place_of_call(who.modules) is not None
                self.unnoticed |= not who.journal.ran


def _again() -> bool:
    """Whether a backward pass computes anew what gradient checkpointing has let go."""
    return torch._C._current_graph_task_id() != -1


def _has_parameters_at(factors: tuple[int, ...], module: nn.Module) -> bool:
    """Whether the numbers of a parameter of the module, such as a table of words, lie there."""
    waiting = [module]
    while waiting:
        one = waiting.pop()
        held = one._parameters.values()
        if any(own is not None and memory(own) in factors for own in held):
            return True
        waiting += [child for child in one._modules.values() if child is not None]
    return False


def _ours(module: nn.Module) -> bool:
    return any(isinstance(child, Tap) for child in module.children())
