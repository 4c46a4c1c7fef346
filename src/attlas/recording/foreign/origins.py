"""Which inputs of a module its queries and keys were made of: whether it looks at itself."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from attlas.recording.foreign.versions import overlap

_KEPT = 4096  # calls: a module makes some dozens between what it is given and its attention
_NEAR = 512  # calls: within which scores, and matrices made of parameters, are sought
_LEVELS = 6

T = torch.Tensor
Function = Callable[..., Any]
Verdict = Literal["self", "cross", "neither", "apart", "unknown"]
Inputs = Mapping[int, Tensor]
"""The tensors that a module was given, by identity."""


class Call(NamedTuple):
    """A call of a function: identities of the tensors that it was given, and of one that it made.

    A function that changed a tensor in its place has made what it was given. view: how
    what it was given lies in memory, and what it made, where it takes or joins parts.
    """

    function: Function
    given: tuple[int, ...]
    made: int
    view: "tuple[Lie, Lie] | None" = None

    @property
    def cut(self) -> "Cut | None":
        """Which part of an axis was taken, or, of a join, all places of the axis of which there are
        more now; None where nobody knows."""
        if self.view is None:
            return None
        return _joined(*self.view) if self.function in _JOINING else _taken(*self.view)


class Lie(NamedTuple):
    """How a tensor lies in memory."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


class Cut(NamedTuple):
    """Places of one axis: so many, from the first of them on, each so many behind the one before.

    alone: whether no other axis has as many.
    """

    size: int
    first: int
    step: int
    alone: bool


class RecentCalls:
    """The newest calls of torch's functions, by the identities of their tensors, which it does not
    keep alive.

    An identity may be another tensor's once the first one is gone. So what made a tensor is sought
    from the newest call backwards: the first that is found has made it.
    """

    def __init__(self) -> None:
        self._calls: deque[Call] = deque(maxlen=_KEPT)
        self._count = 0

    def note(
        self, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """One more call; one that made no tensor and changed none is of no interest."""
        if isinstance(result, Tensor):
            made: tuple[int, ...] = (id(result),)
            if not result.ndim:
                function = torch.zeros  # a number alone is of no text
        elif isinstance(result, tuple | list) and type(result) is not torch.Size:
            made = tuple(map(id, _tensors(result)))
        elif result is None and function is T.__setitem__:
            made = (id(args[0]),)
        else:
            return
        if function is T.__getitem__ and _chooses(args[1]):
            function = _chosen
        if kwargs or function in _OF_LISTS:
            given = tuple(map(id, _tensors((*args, *kwargs.values()))))
        else:
            given = tuple([id(one) for one in args if isinstance(one, Tensor)])
        if function in _CUTTING:
            pieces = [result] if isinstance(result, Tensor) else result
            for one, piece in zip(made, pieces, strict=False):
                self._calls.append(Call(function, given, one, _view(args, piece)))
        else:
            for one in made:
                self._calls.append(Call(function, given, one))
        self._count += len(made)

    def made_since(self, number: int) -> set[int]:
        """The identities of what was made by this call and those that came after it."""
        return {call.made for call in islice(reversed(self._calls), self._count - number)}

    def backwards(self, newest: int | None = None) -> Iterator[tuple[int, Call]]:
        """Each call with its number, from the newest on, or from the one before this number."""
        skipped = 0 if newest is None else self._count - newest
        numbers = range(self._count - 1 - skipped, -1, -1)
        return zip(numbers, islice(reversed(self._calls), skipped, None), strict=False)


@dataclass(slots=True)
class Found:
    """What a tensor was made of: of which inputs; of what else, numbers below 0 being results of
    an attention, what both sides were made of, and numbers that were drawn; of which parameters.

    first: those of it that came first in every call, as x does in x * cos + turned(x) * sin;
    projected: whether a product with a parameter was on the way; joined: whether several tensors
    were put one behind the other; cut: whether it is a part of what it was made of, taken before
    any product with a parameter; since: the call by which the newest input had been made.
    """

    inputs: set[int] = field(default_factory=set)
    others: set[int] = field(default_factory=set)
    learned: set[int] = field(default_factory=set)
    first: set[int] = field(default_factory=set)
    projected: bool = False
    joined: bool = False
    cut: bool = False
    since: int = 0

    @property
    def texts(self) -> set[int]:
        """All of it that is not learned."""
        return self.inputs | self.others


class Origins:
    """Follows queries and keys back to what the modules at work were given.

    learned: the identities of parameters and buffers, which are no texts.
    """

    def __init__(self) -> None:
        self.calls = RecentCalls()
        self.learned: frozenset[int] = frozenset()

    def factors_of(self, weights: Tensor) -> tuple[int, int, int] | None:
        """The queries and keys of whose product these weights are the softmax, and the number of
        the call that made it; None = unknown.

        Heads may have been mixed before the softmax and after it.
        """
        wanted, scores = {id(weights)}, None
        for number, call in islice(self.calls.backwards(), _NEAR):
            if call.made in wanted:
                wanted.discard(call.made)
                if call.function in _SOFTMAXES:
                    scores = call.given[:1], number
                    break
                wanted.update(_content(call))
        if scores is None:
            return None
        found = self._product(*scores, projections=1)
        while found is not None:  # a matrix that is no parameter may have mixed the scores
            (left, right), number = found
            deeper = self._product((left,), number, projections=0)
            if deeper is None or self._is_of_softmax(deeper[0][0], deeper[1]):
                return left, right, number
            found = deeper
        return None

    def relation(
        self,
        query: int,
        key: int,
        value: int,
        levels: Iterable[Inputs],
        *,
        before: int | None = None,
        cached: bool = False,
        told: bool | None = None,
    ) -> Verdict:
        """Whether queries and keys were made of one text: "self", "cross", "neither" or "unknown".

        before: the call after which queries and keys may be gone, and others have their identity.
        levels: what the module was given whose attention it is, then what the one was given that
        called it, and so on. The module decides that has projected queries and keys: another may
        be given them as they are. Where that one was given two inputs, as attn(norm(x), norm(x),
        norm(x)) gives them, the one decides that has made them. cached: whether the module has a
        memory of earlier steps; told: whether its names say that it was given another text.
        """
        sides = [{query}, {key}, {value}]
        projected = False
        last: Verdict = "unknown"
        nothing: Inputs = {}
        for level in chain(islice(levels, _LEVELS), (nothing,)):
            inputs = level
            if before is not None:  # what came to be since may have an identity of before
                since = self.calls.made_since(before)
                inputs = {one: tensor for one, tensor in inputs.items() if one not in since}
            asking, asked, read = self._found(sides, inputs, before)
            if level is not nothing and not asking.inputs and not asked.inputs:
                continue  # it was given the weights
            before = None  # what a module was given is still there
            heavy = asking.projected or asked.projected
            verdict = _verdict(asking, asked, inputs, cached)
            if verdict == "self" and asking.cut and asked.cut and (heavy or level is nothing):
                verdict = "neither" if heavy else "apart"  # two parts, of two texts perhaps
            if verdict != "apart":
                return "neither" if verdict == "self" and projected and heavy else verdict
            if level is nothing:
                break
            if not asked.inputs and told:
                return "cross"
            if not asked.inputs:
                return self._of_no_input(asking, asked, cached or told is False)
            if (projected or last == "cross") and [asking.texts, asked.texts] != sides[:2]:
                return "cross"
            projected = projected or heavy
            last = "cross" if _are_two_texts(asking, asked, read, inputs) else "unknown"
            sides = [asking.texts, asked.texts, read.texts]
        return "unknown" if told is not None else last

    def in_order(self, query: int, key: int, places: int, before: int | None = None) -> bool:
        """Whether so many places lie in queries as they do in keys: nothing has moved or chosen
        those of the one, since what both were made of, that has not those of the other."""
        lines = {query: {0}, key: {0, 1} if query == key else {1}}
        moved: tuple[list[Any], list[Any]] = [], []
        for number, call in islice(self.calls.backwards(before), _KEPT // 2):
            who = lines.pop(call.made, None)
            if who is None:
                continue
            if len(who) > 1:
                break
            factors = self._factors(call, number)
            content = _content(call) if factors is None else factors or call.given[:1]
            moves = call.function in _MOVING
            if call.function in _JOINING:  # of several texts, or parts, in whatever order
                moves = sum(not self._is_learned(one, number) for one in set(content)) > 1
            what: Any = call.function
            cut = call.cut
            if cut is not None and cut.size == places and cut.alone:
                moves, what = True, (cut if call.function in _PARTS else what)
            for side in who:
                moved[side].extend([what] if moves else ())
            for one in content[:1]:
                lines.setdefault(one, set()).update(who)
            if not lines:
                break
        return sorted(map(str, moved[0])) == sorted(map(str, moved[1]))

    def first_of(
        self, query: int, key: int, sizes: tuple[int, int], before: int | None = None
    ) -> int | Literal["unknown"] | None:
        """Where the first query stands among the keys, as the part says that queries are of the
        text of both; None where they are no part of it that is known.

        sizes: how many queries and keys there are.
        """
        lines = {query: {0}, key: {1}}
        cuts: tuple[list[Cut], list[Cut]] = [], []
        for number, call in islice(self.calls.backwards(before), _NEAR):
            who = lines.pop(call.made, None)
            if who is None:
                continue
            if len(who) > 1:
                break
            factors = self._factors(call, number)
            content = _content(call) if factors is None else factors or call.given[:1]
            cut = call.cut if call.function in _PARTS else None
            for side in who if cut is not None else ():
                cuts[side].extend([cut] if cut is not None and cut.size == sizes[side] else ())
            for one in content[:1]:
                lines.setdefault(one, set()).update(who)
            if not lines:
                break
        met = any(len(who) > 1 for who in lines.values()) or len(lines) < 1
        asking, asked = cuts
        if not met or not asking:
            return None
        if len(asking) > 1 or len(asked) > 1 or any(cut.step != 1 for cut in (*asking, *asked)):
            return "unknown"
        return asking[0].first - (asked[0].first if asked else 0)

    def is_learned(self, tensor: int, before: int | None = None) -> bool:
        """Whether it was made of parameters alone, by calls before this one; None = by all."""
        return self._is_learned(tensor, before)

    def _found(
        self, sides: Sequence[Collection[int]], inputs: Inputs, before: int | None
    ) -> list[Found]:
        """What the tensors of each side were made of, by calls before this one, up to the inputs
        and to what both of the first two sides were made of. What is older than the inputs is not
        followed."""
        found = [Found(first=set(side)) for side in sides]
        wanted: dict[int, set[int]] = {}  # which sides want what was made

        def want(one: int, sides: Iterable[int]) -> None:
            for side in sides:
                if one in inputs:
                    found[side].inputs.add(one)
                elif one in self.learned:
                    found[side].learned.add(one)
                elif one < 0:
                    found[side].others.add(one)
                else:
                    wanted.setdefault(one, set()).add(side)

        for side, given in enumerate(sides):
            for one in given:
                want(one, (side,))
        for number, call in self.calls.backwards(before):
            if not wanted:
                break
            if call.made not in wanted:
                if call.made in inputs and call.made not in call.given:
                    for side_found in found:
                        side_found.since = number + 1
                    break  # an input came to be: what is older was made before the module began
                continue
            who = wanted.pop(call.made)
            factors = self._factors(call, number, inputs)
            is_mixed = call.function in KERNELS or (factors is not None and len(factors) > 1)
            content = _content(call) if factors is None else factors or call.given[:1]
            ends = is_mixed or {0, 1} <= who or not (content or call.function in _BLANK)
            joins = call.function in _JOINING and len(set(content)) > 1
            for side in who:
                first = call.made in found[side].first
                found[side].first.discard(call.made)
                if factors is not None:
                    found[side].cut = False
                elif first and call.function in _PARTS and not {0, 1} <= who:
                    found[side].cut = True
                if ends:
                    found[side].others.add(-1 - number)
                    found[side].first |= {-1 - number} if first else set()
                    continue
                found[side].projected |= factors is not None
                found[side].joined |= joins
                found[side].first.update((content if joins else content[:1]) if first else ())
            for one in () if ends else content:
                want(one, who)
        for one, who in wanted.items():
            for side in who:
                found[side].others.add(one)
        return found

    def _of_no_input(self, asking: Found, asked: Found, alone: bool) -> Verdict:
        """The same of keys that were made of nothing that the module was given: those of a cache,
        of another layer, of a text that is kept elsewhere. alone: whether it was given no other
        text, or a cache."""
        if not self._reached(asking) & self._reached(asked):
            return "cross"
        return "self" if alone else "neither"

    def _reached(self, found: Found) -> set[int]:
        """All that these were made of. What an attention gives is of the text that asks."""
        wanted = found.texts
        reached = set(wanted)
        for number, call in islice(self.calls.backwards(found.since), _KEPT // 2):
            if call.made in wanted or -1 - number in wanted:
                wanted -= {call.made, -1 - number}
                mixes = call.function in KERNELS or call.function in _PRODUCTS
                content = call.given[:1] if mixes else _content(call)
                wanted.update(content)
                reached.update(content)
        return reached.difference(self.learned)

    def _factors(
        self, call: Call, number: int, inputs: Collection[int] = ()
    ) -> tuple[int, ...] | None:
        """Those factors of a product that are not learned; None where it is no product."""
        if call.function not in _PRODUCTS:
            return None
        factors = call.given[:2] if call.function in _LINEAR else call.given[-2:]
        known = [one in inputs or not self._is_learned(one, number) for one in factors]
        return tuple(one for one, data in zip(factors, known, strict=True) if data)

    def _is_learned(self, tensor: int, before: int | None) -> bool:
        """Whether it was made of parameters alone, by calls before this one."""
        wanted = {tensor} - self.learned
        for _, call in islice(self.calls.backwards(before), _NEAR):
            if not wanted:
                break
            if call.made in wanted:
                wanted.discard(call.made)
                content = _content(call)
                if not content and call.function not in _BLANK:
                    return False
                wanted.update(one for one in content if one not in self.learned)
        return not wanted

    def _product(
        self, of: Iterable[int], before: int, projections: int
    ) -> tuple[tuple[int, int], int] | None:
        """The two factors of the newest product of two tensors that are not learned, of which these
        were made with so many products by a parameter at most; and the number of its call."""
        left = dict.fromkeys(of, projections)
        for number, call in islice(self.calls.backwards(before), _NEAR):
            if not left:
                break
            allowed = left.pop(call.made, None)
            if allowed is None or call.function in _SOFTMAXES or call.function in KERNELS:
                continue
            factors = self._factors(call, number)
            if factors is not None and len(factors) > 1:
                return (factors[0], factors[1]), number
            if factors is None:
                left |= dict.fromkeys(_content(call), allowed)
            elif allowed:
                left |= dict.fromkeys(factors, allowed - 1)
        return None

    def _is_of_softmax(self, tensor: int, before: int) -> bool:
        """Whether it is a softmax, or was made of one by other functions than products."""
        wanted = {tensor}
        for _, call in islice(self.calls.backwards(before), _NEAR):
            if call.made in wanted:
                wanted.discard(call.made)
                if call.function in _SOFTMAXES:
                    return True
                if call.function not in _PRODUCTS and call.function not in KERNELS:
                    wanted.update(_content(call))
            if not wanted:
                break
        return False


def _verdict(asking: Found, asked: Found, inputs: Inputs, cached: bool) -> Verdict:
    """What queries and keys have in common. Keys that are theirs and others' beside are neither."""
    queries, keys = _places(asking, inputs), _places(asked, inputs)
    if not queries and not keys:
        if asking.learned == asked.learned:
            return "self" if asking.learned else "unknown"
        return "neither" if asking.learned & asked.learned else "cross"
    if not queries:
        return "neither" if asking.learned & asked.learned or not asking.learned else "cross"
    if not keys:
        return "cross" if asked.learned else "unknown"
    if queries == keys:
        return "self"
    if not queries & keys:
        return "apart"
    beside, without = keys - queries, queries - keys
    if (asked.joined and beside & asked.inputs) or (asking.joined and without & asking.inputs):
        return "neither"
    results = any(one < 0 for one in beside | without)
    if beside and without:
        return "self" if asking.first & queries & keys & asked.first else "cross"
    return "neither" if results and not cached else "self"


def _places(found: Found, inputs: Inputs) -> set[int]:
    """The same without conditions: vectors, one for a text, beside texts that have places."""
    texts = {one for one in found.inputs if inputs[one].ndim > 2}
    return (texts or found.inputs) | found.others


def _are_two_texts(asking: Found, asked: Found, read: Found, inputs: Inputs) -> bool:
    """Whether queries are of one text that was given and keys of another, as the values are; two
    tensors that share their memory may be of one."""
    if asked.texts != read.texts or asking.others or asked.others:
        return False
    queries = [inputs[one] for one in asking.inputs]
    keys = [inputs[one] for one in asked.inputs]
    if any(one.ndim not in (2, 3) for one in queries + keys):
        return False
    return not any(overlap(one, other) for one in queries for other in keys)


def inputs_of(*given: Any) -> dict[int, Tensor]:
    """The tensors among these, and in lists and dictionaries among these, that may be texts."""
    return {id(one): one for one in _tensors(given) if one.dtype != torch.bool and one.ndim > 1}


def _content(call: Call) -> tuple[int, ...]:
    """The tensors that say what a call has made: no masks, places or weights beside."""
    if call.function in _BLANK:
        return ()
    if call.function in _FIRST or call.function in _LINEAR:
        return call.given[:1]
    if call.function in _CHOOSING:
        return call.given[1:]
    if call.function in _SETTING:
        return (*call.given[:1], *call.given[1:][-1:])
    return call.given


def _chosen(tensor: Tensor, index: Any) -> Tensor:
    """What `tensor[index]` is, where a tensor says which places are taken, in which order."""
    return tensor[index]


def _view(args: Sequence[Any], result: Any) -> tuple[Lie, Lie] | None:
    given = args[0] if args else None
    if isinstance(given, tuple | list) and given:
        given = given[0]
    if not isinstance(given, Tensor) or not isinstance(result, Tensor):
        return None
    try:
        lies = [Lie(one.shape, one.stride(), int(one.storage_offset())) for one in (given, result)]
    except (RuntimeError, NotImplementedError):  # nested and sparse tensors lie in other ways
        return None
    return lies[0], lies[1]


def _joined(piece: Lie, whole: Lie) -> Cut | None:
    if len(piece.shape) != len(whole.shape):
        return None
    pairs = zip(piece.shape, whole.shape, strict=True)
    longer = [after for before, after in pairs if before != after]
    alone = len(longer) == 1 and list(whole.shape).count(longer[0]) == 1
    return Cut(longer[0], 0, 1, alone) if len(longer) == 1 else None


def _taken(whole: Lie, part: Lie) -> Cut | None:
    sizes = {
        axis: size for axis, size in enumerate(whole.shape) if size > 1 and whole.stride[axis] > 0
    }
    rest = part.offset - whole.offset
    firsts: dict[int, int] = {}
    for axis in sorted(sizes, key=lambda axis: -whole.stride[axis]):
        firsts[axis], rest = divmod(rest, whole.stride[axis])
    if rest or any(not 0 <= first < sizes[axis] for axis, first in firsts.items()):
        return None
    cuts: list[tuple[int, int, int]] = []
    left = dict(sizes)
    for size, stride in zip(part.shape, part.stride, strict=True):
        if size == 1 or not stride:
            continue
        fitting = [
            axis
            for axis in left
            if not stride % whole.stride[axis] and stride // whole.stride[axis] < left[axis]
        ]
        if not fitting:
            return None
        axis = max(fitting, key=lambda axis: whole.stride[axis])
        if size != left.pop(axis):
            cuts.append((size, firsts[axis], stride // whole.stride[axis]))
    cuts += [(1, firsts[axis], 1) for axis in left]
    if len(cuts) != 1:
        return None
    size, first, step = cuts[0]
    return Cut(size, first, step, list(part.shape).count(size) == 1)


def _chooses(index: Any) -> bool:
    every = index if isinstance(index, tuple | list) else (index,)
    return any(isinstance(one, Tensor) for one in every)


def _tensors(given: Iterable[Any], depth: int = 3) -> Iterator[Tensor]:
    for one in given:
        if isinstance(one, Tensor):
            yield one
        elif depth and isinstance(one, tuple | list):
            yield from _tensors(one, depth - 1)
        elif depth and isinstance(one, dict):
            yield from _tensors(one.values(), depth - 1)


def _named(*names: str) -> frozenset[Function]:
    """The functions of these names in torch, in torch.nn.functional and of tensors, and those that
    do the same in place."""
    owners = (torch, F, T, torch.special)
    found = (getattr(owner, name, None) for name in names for owner in owners)
    return frozenset(one for one in found if callable(one))


_LINEAR = _named(
    *("linear", "bilinear", "embedding", "embedding_bag", "lstm", "gru", "rnn_tanh", "rnn_relu"),
    *(f"conv{more}{axes}d" for more in ("", "_transpose") for axes in (1, 2, 3)),
)
_PRODUCTS = _LINEAR | _named(
    *("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "mv", "einsum", "tensordot", "inner"),
    *("addmm", "addbmm", "baddbmm", "baddbmm_", "chain_matmul", "bilinear"),
)
KERNELS = set(_named("scaled_dot_product_attention", "multi_head_attention_forward"))
"""Functions that are whole attentions: what they give is of the text of their queries."""

_SOFTMAXES = _named("softmax", "_softmax", "_safe_softmax", "softmin", "gumbel_softmax")
_SOFTMAXES |= _named("log_softmax", "_log_softmax")
_JOINING = _named("cat", "concat", "concatenate", "stack", "hstack", "vstack")
_SETTING = _named(
    *("__setitem__", "copy_", "index_copy", "index_copy_", "index_put", "index_put_"),
    *("scatter", "scatter_", "scatter_add", "scatter_add_", "index_add", "index_add_"),
    *("masked_scatter", "masked_scatter_", "slice_scatter", "select_scatter"),
)
_JOINING |= _SETTING
_OF_LISTS = _JOINING | _named("einsum", "lstm", "gru", "rnn_tanh", "rnn_relu", "block_diag")
_PARTS = {_chosen} | _named(
    *("__getitem__", "unbind", "chunk", "split", "tensor_split", "select", "narrow")
)
_MOVING = _named(
    *("roll", "flip", "fliplr", "flipud", "rot90", "gather", "index_select", "take_along_dim"),
    *("take", "masked_select", "sort", "unfold", "as_strided", "pad"),
) | {_chosen}
_CUTTING = _PARTS - {_chosen} | _named("cat", "concat", "concatenate")
_CHOOSING = frozenset((torch.where,))
_FIRST = {_chosen} | _named(
    *("layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm", "normalize"),
    *("dropout", "prelu", "masked_fill", "masked_fill_", "gather", "index_select", "__getitem__"),
    *("take_along_dim", "masked_select", "expand_as", "view_as", "reshape_as", "type_as", "to"),
    *("native_layer_norm", "pad", "interpolate"),
)
_BLANK = _named(
    *("zeros", "ones", "full", "empty", "arange", "eye", "linspace", "zeros_like", "ones_like"),
    *("full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty", "zero_"),
)
