"""Which inputs of a module its queries and keys were made of: whether it looks at itself."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Literal

import torch
from torch import Tensor

from attlas.recording.torch_functions.calls import (
    BLANK,
    JOINING,
    KERNELS,
    LINEAR,
    MOST_KEPT,
    MOVING,
    PARTS,
    PRODUCTS,
    SOFTMAXES,
    AxisSlice,
    CallWalk,
    RecentCalls,
    RecordedCall,
    TensorVersion,
    tensors_in,
)
from attlas.recording.torch_functions.tensors import overlap

_NEAR = 512  # calls: within which scores, and matrices made of parameters, are sought
_LEVELS = 6

Verdict = Literal["self", "cross", "neither", "apart", "unknown"]
Inputs = Mapping[int, Tensor]
"""The tensors that a module was given, by identity."""


@dataclass(slots=True)
class SideOrigins:
    """What a tensor was made of: of which inputs; of what else, numbers below 0 being results of an
    attention, what both sides were made of, and numbers that were drawn; of which parameters.

    Args:
        first: Those of it that came first in every call, as x does in x * cos + turned(x) * sin.
        projected: Whether a product with a parameter was on the way.
        joined: Whether several tensors were put one behind the other.
        cut: Whether it is a part of what it was made of, taken before any product with a parameter.
        numbers: Of the calls that have made these texts.
    """

    inputs: set[int] = field(default_factory=set)
    others: set[int] = field(default_factory=set)
    learned: set[int] = field(default_factory=set)
    first: set[int] = field(default_factory=set)
    projected: bool = False
    joined: bool = False
    cut: bool = False
    numbers: dict[int, int] = field(default_factory=dict)

    @property
    def texts(self) -> set[int]:
        """All of it that is not learned."""
        return self.inputs | self.others

    @property
    def made(self) -> list[TensorVersion]:
        """The same, with the calls that have made it."""
        return [
            TensorVersion(tensor_id, self.numbers.get(tensor_id, -1)) for tensor_id in self.texts
        ]


class Origins:
    """Follows queries and keys back to what the modules at work were given.

    learned: the identities of parameters and buffers, which are no texts.
    """

    def __init__(self) -> None:
        self.calls = RecentCalls()
        self.learned: frozenset[int] = frozenset()
        self._texts: frozenset[int] = frozenset()  # what the model was given that is at work
        self._work: object = None
        self._last_attention_call = 0  # the calls up to the last attention
        self._verdicts: dict[int, bool] = {}  # of calls: whether they made what is learned

    def begin(self, work: object, texts: Callable[[], Inputs]) -> None:
        """Attention has happened in this call of a model, which was given these texts.

        Of what an earlier call of the model has made, such as the keys of a cache, no origin is
        sought: the work for a step of a generation does not grow with its steps. What was made
        between the calls may be of the text of the later one.
        """
        if work is not self._work:
            self._work, self._texts = work, frozenset(texts())
            self.calls.start = self._last_attention_call
            if len(self._verdicts) > MOST_KEPT:  # seldom: it asks each of them
                verdicts = self._verdicts.items()
                self._verdicts = {
                    number: verdict for number, verdict in verdicts if self.calls.keeps(number)
                }
        self._last_attention_call = self.calls.count

    def factors_of(self, weights: Tensor) -> tuple[int, int, int] | None:
        """The queries and keys of whose product these weights are the softmax, and the number of
        the call that made it; None = unknown.

        Heads may have been mixed before the softmax and after it.
        """
        calls: CallWalk[None] = CallWalk(self.calls, self.calls.count - _NEAR)
        calls.want(self.calls.made(id(weights)).number, None)
        for _, call, _ in calls:
            if call.function in SOFTMAXES:
                break
            for version in call.content:
                calls.want(version.number, None)
        else:
            return None
        product = self._product(call.given[:1], projections=1)
        while product is not None:  # a matrix that is no parameter may have mixed the scores
            (left, right), number = product
            deeper = self._product((left,), projections=0)
            if deeper is None or self._is_of_softmax(deeper[0][0]):
                return left.identity, right.identity, number
            product = deeper
        return None

    def relation(
        self,
        query: int,
        key: int,
        value: int,
        levels: Iterable[Inputs],
        *,
        before_call: int | None = None,
        cached: bool = False,
        cross_by_name: bool | None = None,
    ) -> Verdict:
        """Return True if queries and keys were made of one text: "self", "cross", "neither" or
        "unknown".

        Args:
            before_call: The call after which queries and keys may be gone, and others have their
                identity.
            levels: What the module was given whose attention it is, then what the one was given
                that called it, and so on. The module decides that has projected queries and keys:
                another may be given them as they are. Where that one was given two inputs, as
                attn(norm(x), norm(x), norm(x)) gives them, the one decides that has made them.
            cached: Whether the module has a memory of earlier steps.
            cross_by_name: Whether its names say that it was given another text.
        """
        sides = [[self.calls.made(tensor_id, before_call)] for tensor_id in (query, key, value)]
        projected = False
        last: Verdict = "unknown"
        no_inputs: Inputs = {}
        for level in chain(islice(levels, _LEVELS), (no_inputs,)):
            inputs = level
            if before_call is not None:  # what came to be since may have an identity of before
                made_by = {tensor_id: self.calls.made(tensor_id).number for tensor_id in inputs}
                inputs = {
                    tensor_id: tensor
                    for tensor_id, tensor in inputs.items()
                    if made_by[tensor_id] < before_call
                }
            query_side, key_side, value_side = self._found(sides, inputs)
            if level is not no_inputs and not query_side.inputs and not key_side.inputs:
                continue  # it was given the weights
            before_call = None  # what a module was given is still there
            projects = query_side.projected or key_side.projected
            verdict = _verdict(query_side, key_side, inputs, cached)
            if (
                verdict == "self"
                and query_side.cut
                and key_side.cut
                and (projects or level is no_inputs)
            ):
                verdict = "neither" if projects else "apart"  # two parts, of two texts perhaps
            if verdict != "apart":
                return "neither" if verdict == "self" and projected and projects else verdict
            if level is no_inputs:
                break
            if not key_side.inputs and cross_by_name:
                return "cross"
            if not key_side.inputs:
                return self._of_no_input(query_side, key_side, cached or cross_by_name is False)
            previous_texts = [{tensor_id for tensor_id, _ in side} for side in sides[:2]]
            if (projected or last == "cross") and [
                query_side.texts,
                key_side.texts,
            ] != previous_texts:
                return "cross"
            projected = projected or projects
            last = (
                "cross" if _are_two_texts(query_side, key_side, value_side, inputs) else "unknown"
            )
            sides = [query_side.made, key_side.made, value_side.made]
        return "unknown" if cross_by_name is not None else last

    def in_order(
        self, query: int, key: int, num_positions: int, before_call: int | None = None
    ) -> bool:
        """Return True if so many places lie in queries as they do in keys: nothing has moved or
        chosen those of the one, since what both were made of, that has not those of the other.
        """
        walk: CallWalk[set[int]] = CallWalk(self.calls)
        for side, tensor_id in enumerate((query, key)):
            number = self.calls.made(tensor_id, before_call).number
            walk.want(number, walk.notes.get(number, set()) | {side})
        permutations: tuple[list[Any], list[Any]] = [], []
        for _, call, sides_of_call in walk:
            if len(sides_of_call) > 1:
                break
            factors = self._factors(call)
            content = call.content if factors is None else factors or call.given[:1]
            is_permutation = call.function in MOVING
            if call.function in JOINING:  # of several texts, or parts, in whatever order
                is_permutation = sum(not self._is_learned(version) for version in set(content)) > 1
            move: Any = call.function
            cut = call.cut
            if cut is not None and cut.size == num_positions and cut.alone:
                is_permutation, move = True, (cut if call.function in PARTS else move)
            for side in sides_of_call:
                permutations[side].extend([move] if is_permutation else ())
            for _, number in content[:1]:
                walk.want(number, walk.notes.get(number, set()) | sides_of_call)
        return sorted(map(str, permutations[0])) == sorted(map(str, permutations[1]))

    def first_of(
        self, query: int, key: int, sizes: tuple[int, int], before_call: int | None = None
    ) -> int | Literal["unknown"] | None:
        """Where the first query stands among the keys, as the part says that queries are of the
        text of both; None where they are no part of it that is known.

        Args:
            sizes: How many queries and keys there are.
        """
        walk: CallWalk[set[int]] = CallWalk(self.calls, self.calls.count - _NEAR)
        ends: dict[int, set[int]] = {}  # what is followed no further, and of which side it is
        cuts: tuple[list[AxisSlice], list[AxisSlice]] = [], []

        def want(version: TensorVersion, sides: set[int]) -> None:
            if not walk.want(version.number, walk.notes.get(version.number, set()) | sides):
                ends.setdefault(version.identity, set()).update(sides)

        for side, tensor in enumerate((query, key)):
            want(self.calls.made(tensor, before_call), {side})
        found_input = False
        for _, call, sides_of_call in walk:
            found_input = len(sides_of_call) > 1
            if found_input:
                break
            factors = self._factors(call)
            content = call.content if factors is None else factors or call.given[:1]
            cut = call.cut if call.function in PARTS else None
            for side in sides_of_call if cut is not None else ():
                cuts[side].extend([cut] if cut is not None and cut.size == sizes[side] else ())
            for version in content[:1]:
                want(version, sides_of_call)
        found_input = (
            found_input
            or not ends
            or any(len(sides_of_call) > 1 for sides_of_call in ends.values())
        )
        query_cut, key_cut = cuts
        if not found_input or not query_cut:
            return None
        if (
            len(query_cut) > 1
            or len(key_cut) > 1
            or any(cut.step != 1 for cut in (*query_cut, *key_cut))
        ):
            return "unknown"
        return query_cut[0].first - (key_cut[0].first if key_cut else 0)

    def is_learned(self, tensor: int, before_call: int | None = None) -> bool:
        """Return True if it was made of parameters alone, by calls before this one; None = by
        all.
        """
        return self._is_learned(self.calls.made(tensor, before_call))

    def _found(self, sides: Sequence[Iterable[TensorVersion]], inputs: Inputs) -> list[SideOrigins]:
        """What the tensors of each side were made of, up to the inputs and to what both of the
        first two sides were made of. What is older than the newest of the inputs is not followed:
        it was made before the module began."""
        origins = [SideOrigins(first={tensor_id for tensor_id, _ in side}) for side in sides]
        newest = max(map(self.calls.born, inputs), default=-1)
        calls: CallWalk[set[int]] = CallWalk(self.calls, newest + 1)

        def want(version: TensorVersion, sides: Iterable[int]) -> None:
            tensor_id, number = version
            is_end = tensor_id in inputs or tensor_id in self.learned or tensor_id < 0
            if not is_end and calls.want(number, calls.notes.get(number, set()).union(sides)):
                return
            for side in sides:
                if tensor_id in inputs:
                    origins[side].inputs.add(tensor_id)
                elif tensor_id in self.learned:
                    origins[side].learned.add(tensor_id)
                else:
                    origins[side].others.add(tensor_id)
                origins[side].numbers[tensor_id] = max(
                    number, origins[side].numbers.get(tensor_id, -1)
                )

        for side, versions in enumerate(sides):
            for version in versions:
                want(version, (side,))
        for number, call, sides_of_call in calls:
            factors = self._factors(call, inputs)
            is_mixed = call.function in KERNELS or (factors is not None and len(factors) > 1)
            content = call.content if factors is None else factors or call.given[:1]
            ends = is_mixed or {0, 1} <= sides_of_call or not (content or call.function in BLANK)
            joins = call.function in JOINING and len(set(content)) > 1
            for side in sides_of_call:
                first = call.made in origins[side].first
                origins[side].first.discard(call.made)
                if factors is not None:
                    origins[side].cut = False
                elif {0, 1} <= sides_of_call:
                    if not origins[side].projected and self._is_projection(call, inputs):
                        origins[side].cut = False
                elif first and call.function in PARTS:
                    origins[side].cut = True
                if ends:
                    origins[side].others.add(-1 - number)
                    origins[side].numbers[-1 - number] = number
                    origins[side].first |= {-1 - number} if first else set()
                    continue
                origins[side].projected |= factors is not None
                origins[side].joined |= joins
                came_first = content if joins else content[:1]
                origins[side].first.update(
                    tensor_id for tensor_id, _ in (came_first if first else ())
                )
            for version in () if ends else content:
                want(version, sides_of_call)
        return origins

    def _is_projection(self, call: RecordedCall, inputs: Collection[int]) -> bool:
        """Return True if a product with a parameter has made what this only lays out anew: parts of
        it are queries and keys of one text."""
        while len(call.content) == 1 and not (call.function in PARTS or call.function in JOINING):
            factors = self._factors(call, inputs)
            if factors is not None:
                return len(factors) == 1
            tensor_id, number = call.content[0]
            if tensor_id in inputs or not self.calls.follows(number):
                return False
            call = self.calls.at(number)
        factors = self._factors(call, inputs)
        return factors is not None and len(factors) == 1

    def _of_no_input(self, query_side: SideOrigins, key_side: SideOrigins, alone: bool) -> Verdict:
        """The same of keys that were made of nothing that the module was given: those of a cache,
        of another layer, of a text that is kept elsewhere.

        Args:
            alone: Whether it was given no other text, or a cache.
        """
        if not self._reached(query_side) & self._reached(key_side):
            return "cross"
        return "self" if alone else "neither"

    def _reached(self, side: SideOrigins) -> set[int]:
        """All that these were made of: numbers of calls, below 0, and what came of none that is
        followed. What an attention gives is of the text that asks."""
        calls: CallWalk[None] = CallWalk(self.calls)
        reached_ids: set[int] = set()
        versions: Iterable[TensorVersion] = side.made
        while versions is not None:
            for tensor_id, number in versions:
                is_followed = tensor_id not in self.learned and calls.want(number, None)
                reached_ids.add(-1 - number if is_followed else tensor_id)
            _, call, _ = next(iter(calls), (0, None, None))
            if call is None:
                break
            mixes = call.function in KERNELS or call.function in PRODUCTS
            versions = call.given[:1] if mixes else call.content
        return reached_ids.difference(self.learned)

    def _factors(
        self, call: RecordedCall, inputs: Collection[int] = ()
    ) -> tuple[TensorVersion, ...] | None:
        """Those factors of a product that are not learned; None where it is no product."""
        if call.function not in PRODUCTS:
            return None
        factors = call.given[:2] if call.function in LINEAR else call.given[-2:]
        return tuple(
            version
            for version in factors
            if version.identity in inputs or not self._is_learned(version)
        )

    def _is_learned(self, tensor: TensorVersion) -> bool:
        """Return True if it was made of parameters alone, and of nothing that the model was
        given.
        """
        is_learned = self._whether_learned(tensor)
        if is_learned is not None:
            return is_learned
        pending = [tensor]
        while pending:
            number = pending[-1].number
            call = self.calls.at(number)
            verdicts = [self._whether_learned(version) for version in call.content]
            if False in verdicts:
                self._verdicts[number] = False
            elif None in verdicts:
                pairs = zip(call.content, verdicts, strict=True)
                pending.extend(version for version, verdict in pairs if verdict is None)
                continue
            else:
                self._verdicts[number] = bool(verdicts) or call.function in BLANK
            pending.pop()
        return bool(self._whether_learned(tensor))

    def _whether_learned(self, tensor: TensorVersion) -> bool | None:
        """The same where it is known; None where its call has to be asked."""
        tensor_id, number = tensor
        if tensor_id in self.learned:
            return True
        if tensor_id in self._texts or not self.calls.keeps(number):
            return False
        return self._verdicts.get(number)

    def _product(
        self, versions: Iterable[TensorVersion], projections: int
    ) -> tuple[tuple[TensorVersion, TensorVersion], int] | None:
        """The two factors of the newest product of two tensors that are not learned, of which these
        were made with so many products by a parameter at most; and the number of its call."""
        calls: CallWalk[int] = CallWalk(self.calls, self.calls.count - _NEAR)
        for version in versions:
            calls.want(version.number, projections)
        for number, call, allowed in calls:
            if call.function in SOFTMAXES or call.function in KERNELS:
                continue
            factors = self._factors(call)
            if factors is not None and len(factors) > 1:
                return (factors[0], factors[1]), number
            if factors is None or allowed:
                for version in call.content if factors is None else factors:
                    calls.want(version.number, allowed - (factors is not None))
        return None

    def _is_of_softmax(self, tensor: TensorVersion) -> bool:
        """Return True if it is a softmax, or was made of one by other functions than products."""
        calls: CallWalk[None] = CallWalk(self.calls, self.calls.count - _NEAR)
        calls.want(tensor.number, None)
        for _, call, _ in calls:
            if call.function in SOFTMAXES:
                return True
            if call.function not in PRODUCTS and call.function not in KERNELS:
                for version in call.content:
                    calls.want(version.number, None)
        return False


def _verdict(
    query_side: SideOrigins, key_side: SideOrigins, inputs: Inputs, cached: bool
) -> Verdict:
    """What queries and keys have in common. Keys that are theirs and others' beside are neither."""
    queries, keys = _places(query_side, inputs), _places(key_side, inputs)
    if not queries and not keys:
        if query_side.learned == key_side.learned:
            return "self" if query_side.learned else "unknown"
        return "neither" if query_side.learned & key_side.learned else "cross"
    if not queries:
        return (
            "neither"
            if query_side.learned & key_side.learned or not query_side.learned
            else "cross"
        )
    if not keys:
        return "cross" if key_side.learned else "unknown"
    if queries == keys:
        return "self"
    if not queries & keys:
        return "apart"
    keys_only, queries_only = keys - queries, queries - keys
    if (key_side.joined and keys_only & key_side.inputs) or (
        query_side.joined and queries_only & query_side.inputs
    ):
        return "neither"
    results = any(number < 0 for number in keys_only | queries_only)
    if keys_only and queries_only:
        return "self" if query_side.first & queries & keys & key_side.first else "cross"
    return "neither" if results and not cached else "self"


def _places(side: SideOrigins, inputs: Inputs) -> set[int]:
    """The same without conditions: vectors, one for a text, beside texts that have places."""
    texts = {tensor_id for tensor_id in side.inputs if inputs[tensor_id].ndim > 2}
    return (texts or side.inputs) | side.others


def _are_two_texts(
    query_side: SideOrigins, key_side: SideOrigins, value_side: SideOrigins, inputs: Inputs
) -> bool:
    """Return True if queries are of one text that was given and keys of another, as the values are,
    which may lack the positions of keys; two tensors that share their memory may be of one.
    """
    is_of_keys = bool(value_side.texts) and value_side.texts <= key_side.texts
    if not is_of_keys or query_side.others or key_side.others:
        return False
    queries = [inputs[tensor_id] for tensor_id in query_side.inputs]
    keys = [inputs[tensor_id] for tensor_id in key_side.inputs]
    if any(tensor.ndim not in (2, 3) for tensor in queries + keys):
        return False
    return not any(overlap(query, key) for query in queries for key in keys)


def inputs_of(*values: Any) -> dict[int, Tensor]:
    """The tensors among these, and in lists and dictionaries among these, that may be texts."""
    return {
        id(tensor): tensor
        for tensor in tensors_in(values)
        if tensor.dtype != torch.bool and tensor.ndim > 1
    }
