"""Weights: a softmax over keys, what is done to it, and the product with values that reads it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from string import ascii_letters
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.recording.hooks import CallSite
from attlas.recording.maps.base import AttentionMap
from attlas.recording.maps.dense import DenseAttentionMap
from attlas.recording.maps.factored import FactoredAttentionMap
from attlas.recording.torch_functions.call_site import one_function
from attlas.recording.torch_functions.context import Handler, TrackingContext
from attlas.recording.torch_functions.heads import Fold, Folds, heads_named, heads_of, of_channels
from attlas.recording.torch_functions.kernels import factored_map
from attlas.recording.torch_functions.masks import MaskSpec, mask_spec_of
from attlas.recording.torch_functions.provenance import (
    LogWeightInfo,
    PendingMap,
    ProductInfo,
    ScoreInfo,
    WeightInfo,
    back,
)
from attlas.recording.torch_functions.scores import product_of
from attlas.recording.torch_functions.tensors import memory, python_name, unreadable
from attlas.recording.torch_functions.weights import handle_other

# An Einstein sum of two tensors: which of its axes are queries and keys.


@dataclass(frozen=True, slots=True)
class Contraction:
    """`torch.einsum(equation, *tensors)` of two tensors, every axis of which has a letter.

    Axes that the equation leaves to dots have letters of their own here.
    """

    equation: str
    tensors: tuple[Tensor, Tensor]
    terms: tuple[str, str]
    out: str

    @classmethod
    def of(cls, args: Sequence[Any]) -> "Contraction | None":
        """From the arguments; None where it is of another kind."""
        if not args or not isinstance(args[0], str):
            return None
        tensors = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
        terms, arrow, out = args[0].replace(" ", "").partition("->")
        left, comma, right = terms.partition(",")
        if len(tensors) != 2 or not comma or "," in right:
            return None
        spelled = _spelled_out((left, right), out if arrow else _implied_output(terms), tensors)
        return None if spelled is None else cls(args[0], (tensors[0], tensors[1]), *spelled)

    @classmethod
    def over_last(cls, left: Tensor, right: Tensor) -> "Contraction":
        """The sum over the last axes of both, as `F.linear` and `torch.inner` take it."""
        return cls._dotted(left, right, [left.ndim - 1], [right.ndim - 1])

    @classmethod
    def of_dots(
        cls, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> "Contraction | None":
        """From the arguments of `torch.tensordot` or `torch.inner`; None where they are named."""
        if len(args) < 2 or not all(isinstance(tensor, Tensor) for tensor in args[:2]):
            return None
        left, right = args[:2]
        if function is torch.inner:
            return cls.over_last(left, right) if min(left.ndim, right.ndim) else None
        dims = args[2] if len(args) > 2 else kwargs.get("dims", 2)
        if isinstance(dims, int):
            dims = range(left.ndim - dims, left.ndim), range(dims)
        if isinstance(dims, Tensor) or len(dims) != 2:
            return None
        left_letters, right_letters = (
            [axis % tensor.ndim for axis in axes]
            for tensor, axes in zip((left, right), dims, strict=True)
        )
        return cls._dotted(left, right, left_letters, right_letters)

    @classmethod
    def _dotted(
        cls, left: Tensor, right: Tensor, left_axes: Sequence[int], right_axes: Sequence[int]
    ) -> "Contraction":
        """The sum over these axes of the one and of the other, behind which nothing is joined."""
        first = ascii_letters[: left.ndim]
        free = iter(ascii_letters[left.ndim :])
        pairs = dict(zip(right_axes, left_axes, strict=True))
        second = "".join(
            first[pairs[axis]] if axis in pairs else next(free) for axis in range(right.ndim)
        )
        out_letters = [letter for letter in first if letter not in second]
        out_letters += [letter for letter in second if letter not in first]
        out = "".join(out_letters)
        return cls(f"{first},{second}->{out}", (left, right), (first, second), out)

    def query_axis(
        self, term: int, keys: int, queries: int | None, heads: Callable[[], int | None]
    ) -> int | None:
        """Which axis of these weights has queries, counted from the last; None where none has.

        Args:
            keys: Which one has keys, summed over, as of the values. Queries are kept, and the
                values have none; where heads share their values, these have none of heads either:
                they are the axes that make so many heads, or else come before.
            queries: Which one has them, where that is known.
        """
        letters, values = self.terms[term], self.terms[1 - term]
        key = letters[keys]
        if key in self.out or key not in values:
            return None
        others = letters.replace(key, "")
        query_letters = [letter for letter in others if letter in self.out and letter not in values]
        if not query_letters:
            return None
        if len(query_letters) == 1:
            return letters.index(query_letters[0]) - len(letters)
        if queries is not None and letters[queries] in query_letters:
            return queries
        sizes = dict(zip(letters, self.tensors[term].shape, strict=True))
        num_heads = heads()
        for letter in reversed(query_letters) if num_heads is not None else ():
            remaining = others.replace(letter, "")
            runs = (remaining[a:b] for b in range(len(remaining) + 1) for a in range(b))
            head_runs = (run for run in runs if {*query_letters} <= {*run, letter})
            if any(prod(sizes[letter] for letter in run) == num_heads for run in head_runs):
                return letters.index(letter) - len(letters)
        return (
            letters.index(query_letters[-1]) - len(letters)
            if query_letters[-1] == others[-1]
            else None
        )

    def axis_after(self, term: int, axis: int) -> int | None:
        """Where an axis of one of the tensors is in the sum, counted from the last; None = gone."""
        position = self.out.find(self.terms[term][axis])
        return None if position < 0 else position - len(self.out)

    def as_multiplied(self, term: int, order: Sequence[int]) -> Tensor:
        """The values as a matrix product takes them behind weights with their axes in this order,
        queries and keys the last: with the axes before queries, keys and width."""
        letters, values = self.terms[term], self.terms[1 - term]
        *rows, _, key = (letters[axis] for axis in order)
        width = [letter for letter in values if letter not in letters]
        wanted = [letter for letter in (*rows, key, *width) if letter in values]
        tensor = self.tensors[1 - term].permute([values.index(letter) for letter in wanted])
        for axis, letter in enumerate(rows):
            if letter not in values:
                tensor = tensor.unsqueeze(axis)
        if not width:
            tensor = tensor.unsqueeze(-1)
        return tensor.flatten(len(rows) + 1) if len(width) > 1 else tensor

    def product(self) -> tuple[Tensor, Tensor] | None:
        """Two tensors of which the result is the matrix product; None where it is none."""
        if len(self.out) < 2:
            return None
        batch, query, key = self.out[:-2], self.out[-2], self.out[-1]
        left, right = self.tensors
        left_letters, right_letters = self.terms
        if query not in left_letters:
            left, right, left_letters, right_letters = right, left, right_letters, left_letters
        summed_letters = [
            letter for letter in left_letters if letter in right_letters and letter not in self.out
        ]
        if len(summed_letters) != 1:
            return None
        expected = batch + query + summed_letters[0], batch + summed_letters[0] + key
        if sorted(left_letters) != sorted(expected[0]) or sorted(right_letters) != sorted(
            expected[1]
        ):
            return None
        return (
            left.permute([left_letters.index(letter) for letter in expected[0]]),
            right.permute([right_letters.index(letter) for letter in expected[1]]),
        )

    def loose(self) -> ProductInfo | None:
        """The axes of queries and keys of a product, in whatever order; None where it is none."""
        left, right = self.terms
        summed_letters = [letter for letter in left if letter in right and letter not in self.out]
        query_letters = [letter for letter in left if letter in self.out and letter not in right]
        key_letters = [letter for letter in right if letter in self.out and letter not in left]
        if not len(summed_letters) == len(query_letters) == len(key_letters) == 1 or len(
            self.out
        ) != len(left):
            return None
        if unreadable(*self.tensors):
            return None
        first, second = (
            self.out.index(letter) - len(self.out) for letter in (query_letters[0], key_letters[0])
        )
        return ProductInfo((first, second), tuple(map(memory, self.tensors)))


_DOTS = "..."


def _implied_output(terms: str) -> str:
    """What an equation without an arrow stands for: axes that one tensor alone has, by letter."""
    letters = sorted(letter for letter in set(terms) - set(".,") if terms.count(letter) == 1)
    return _DOTS * (_DOTS in terms) + "".join(letters)


def _spelled_out(
    terms: tuple[str, str], out: str, tensors: Sequence[Tensor]
) -> tuple[tuple[str, str], str] | None:
    """The terms with letters in place of dots, which are aligned from the last on; None where one
    of the two is repeated for the other along one of them."""
    if not any(_DOTS in term for term in terms):
        return terms, out
    left, right = (_behind_dots(term, tensor) for term, tensor in zip(terms, tensors, strict=True))
    fewer = min(len(left), len(right))
    if fewer and left[-fewer:] != right[-fewer:]:
        return None
    unused = [letter for letter in ascii_letters if letter not in "".join(terms)]
    axes = "".join(unused[: max(len(left), len(right))])
    spelled = [
        term.replace(_DOTS, axes[len(axes) - len(sizes) :])
        for term, sizes in zip(terms, (left, right), strict=True)
    ]
    return (spelled[0], spelled[1]), out.replace(_DOTS, axes)


def _behind_dots(term: str, tensor: Tensor) -> tuple[int, ...]:
    """The sizes of the axes that stand behind the dots of a term."""
    prefix, dots, after = term.partition(_DOTS)
    return tuple(tensor.shape[len(prefix) : tensor.ndim - len(after)]) if dots else ()


# Explicit attention of a model: softmax(…) times values.


_MATRIX = 2  # axes
_TEXTS_AND_HEADS = 2
_QUERIES = -2  # which axis of a product of queries and keys has the queries


def explicit_attention_map(
    info: WeightInfo,
    weights: Float[Tensor, "*batch queries keys"],
    fold: Fold,
    module: nn.Module,
    parse_mask: Callable[..., MaskSpec] = mask_spec_of,
) -> AttentionMap:
    """What is read of `weights @ values`, where the weights are known to come from a softmax.

    Queries and keys where the scores are a product, times a number, plus masks; the weights
    themselves, before dropout, where something else was done to the scores.
    """
    origin = weights if info.origin is None else info.origin
    scores = info.scores
    if scores is None or not _makes(scores, origin):
        return _dense_map(fold.open(origin))
    mask = scores.mask()
    return factored_map(
        fold.open(scores.left),
        fold.open(scores.right.transpose(-1, -2), shared=True),
        scores.scale,
        None if mask is None else fold.open(mask),
        module,
        parse_mask,
        scores.softcap,
        1 if scores.content is None else scores.content.repeats,
    )


def fold_of(
    info: WeightInfo,
    weights: Float[Tensor, "*batch queries keys"],
    values: Float[Tensor, "..."],
    site: CallSite,
    folds: Folds,
) -> Fold:
    """Where the heads of these weights are, which are multiplied with values that may have more
    axes."""
    origin = weights if info.origin is None else info.origin
    scores, rows = info.scores, origin.shape[:-2]
    evidence, queries = [values], origin.shape[-2] if origin.ndim > 1 else 1
    if scores is not None and _makes(scores, origin):
        evidence = [scores.left, scores.right.transpose(-1, -2), values]
    if origin.shape == weights.shape and values.ndim > _MATRIX and values.ndim >= weights.ndim:
        rows = torch.broadcast_shapes(rows, values.shape[:-2])  # type: ignore[no-untyped-call]
    evidence = [tensor for tensor in evidence if tensor.ndim >= _MATRIX]
    sampled = scores is None and queries == 1 and len(rows) > _TEXTS_AND_HEADS
    if sampled and heads_named(site.module) is None:
        # Each query has keys of its own, so the queries are among the axes before: none of these
        # is known to have the heads.
        return Fold(tuple((size,) for size in rows))
    return heads_of(rows, evidence, site, folds, queries)


def _makes(scores: ScoreInfo, weights: Tensor) -> bool:
    """Return True if these scores have a row for each row of the weights."""
    left, right = scores.left.shape[:-2], scores.right.shape[:-2]
    one_each = len(left) == weights.ndim - 2 == len(right)
    rows = scores.left.shape[-2], scores.right.shape[-1]  # a mask may have more, and repeat them
    return one_each and (*map(max, left, right), *rows) == weights.shape


def _dense_map(weights: Float[Tensor, "batch heads queries keys"]) -> DenseAttentionMap:
    """The map itself: a key that no head looks at, exactly 0 after a softmax, was hidden."""
    shown = (weights != 0).any(1, keepdim=True)
    return DenseAttentionMap(weights, None if bool(shown.all()) else shown, None)


def rewritten(
    info: WeightInfo,
    weights: Float[Tensor, "*batch queries keys"],
    attention_map: AttentionMap,
    fold: Fold,
    change: Callable[[Tensor, Tensor], Tensor],
) -> Float[Tensor, "*batch queries keys"]:
    """Other weights in place of these: `change(weights, allowed) → weights`, before dropout."""
    origin = weights if info.origin is None else info.origin
    allowed = attention_map.allowed_rows(0, attention_map.shape[2])
    new_weights = fold.close(change(fold.open(origin), allowed))
    new_weights = (
        new_weights.reshape(origin.shape) if new_weights.numel() == origin.numel() else new_weights
    )
    return info.again(new_weights.to(origin.dtype))


def is_softmax_of_rows(result: Tensor, dim: int | None, scores: ScoreInfo | None) -> bool:
    """Return True if a softmax over this axis may be one over keys: of two axes only where it is
    known to be of queries and keys.
    """
    last = dim in (-1, result.ndim - 1)
    axes = result.ndim > 2 or (result.ndim == 2 and scores is not None)
    return last and axes and result.is_floating_point()


def handle_softmax(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A softmax over the last axis, which may be weights; at a place that is about attention."""
    result = func(*args, **kwargs)
    dim, scores, loose = _softmax_arguments(tracking, args, kwargs)
    _learn_weights(tracking, result, dim, scores, loose=loose)
    return result


def handle_softmin(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A softmax of distances."""
    dim, _, _ = _softmax_arguments(tracking, args, kwargs)
    result = func(*args, **kwargs)
    _learn_weights(tracking, result, dim, None)
    return result


def handle_log_softmax(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Logarithms of what may be weights."""
    arguments = _softmax_arguments(tracking, args, kwargs)
    result = func(*args, **kwargs)
    tracking.provenance.learn_logarithms(result, LogWeightInfo(*arguments))
    return result


def handle_exp(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """exp, by which logarithms become weights."""
    info = tracking.provenance.logarithms(args[0] if args else kwargs.get("input"))
    result = func(*args, **kwargs)
    if info is not None:
        facts = info.axis, info.scores, info.pending, info.loose
        info.pending = _learn_weights(tracking, result, *facts)
    return result


def handle_log_weights_or(handler: Handler) -> Handler:
    """What casts logarithms, shapes them or hides some, and something else of what is none."""

    def either(
        tracking: TrackingContext,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if not tracking.provenance.has_logarithms:
            return handler(tracking, func, args, kwargs)
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        infos = ((tensor, tracking.provenance.logarithms(tensor)) for tensor in tensors)
        source, logs = next((pair for pair in infos if pair[1] is not None), (None, None))
        shape = None if source is None else source.shape
        result = handler(tracking, func, args, kwargs)
        if logs is not None and shape is not None and isinstance(result, Tensor):
            last = logs.axis in (-1, len(shape) - 1) and result.shape[-1:] == shape[-1:]
            if last and result.is_floating_point():
                tracking.provenance.learn_logarithms(result, LogWeightInfo(-1, None))
        return result

    return either


def _softmax_arguments(
    tracking: TrackingContext, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[int | None, ScoreInfo | None, ProductInfo | None]:
    """Over which axis a softmax goes, and of which scores, or of which loose product."""
    dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis"))
    scores_tensor = args[0] if args else kwargs.get("input")
    scores = tracking.provenance.of(scores_tensor)
    score_info = scores if isinstance(scores, ScoreInfo) else None
    return dim, score_info, None if score_info else tracking.provenance.loose(scores_tensor)


def handle_gumbel_softmax(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`F.gumbel_softmax`, a softmax of scores and chance."""
    result = func(*args, **kwargs)
    _learn_weights(tracking, result, kwargs.get("dim", args[4] if len(args) > 4 else -1), None)
    return result


def _learn_weights(
    tracking: TrackingContext,
    result: Tensor,
    dim: int | None,
    scores: ScoreInfo | None,
    pending: PendingMap | None = None,
    loose: ProductInfo | None = None,
) -> PendingMap | None:
    keys = -1 if dim is None else dim - result.ndim * (dim >= 0)
    if scores is not None and keys == _QUERIES:  # keys times queries
        loose = scores.loosely()
        scores = None
    if loose is not None and (dim is None or loose.beside(keys) is None):
        loose = None  # what it goes over are neither its queries nor its keys
    if not is_softmax_of_rows(result, dim, scores) and loose is None:
        if scores is not None:  # over queries, say: reported, if nothing else is read there
            tracking.expect_attention(scores)
        elif result.ndim == _MATRIX and keys == -1:
            tracking.note_matrix()
        return None
    pending = tracking.expect_attention(scores, loose) if pending is None else pending
    queries = -2 if scores is not None else None
    if loose is not None:
        queries = loose.beside(keys)
    folded = loose is not None and loose.folded
    info = WeightInfo(scores, pending=pending, keys=keys, queries=queries, folded=folded)
    tracking.provenance.learn(result, info)
    return pending


def handle_matmul(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A matrix product: of weights with values, or of what may be queries and keys.

    values' weights' is (weights values)', as many write it whose texts are pictures.
    """
    names = ("input", "other", "mat2", "vec")
    operands = [*args, *(kwargs[name] for name in names if name in kwargs)]
    if len(operands) != 2 or len(operands) < len(args) + len(kwargs):
        return func(*args, **kwargs)  # with an `out` of its own
    left, right = operands
    info = tracking.provenance.of(left)
    reads = isinstance(info, WeightInfo) and info.has_rows
    if isinstance(info, WeightInfo) and reads:
        left = _read(tracking, info, left, right, left)
    right_info = None if isinstance(info, WeightInfo) else tracking.provenance.of(right)
    if isinstance(right_info, WeightInfo) and right_info.is_transposed and left.ndim >= _MATRIX:
        order = _with_rows(right.ndim, -1, _QUERIES)
        permuted = right_info.moved(right, order)
        return func(left, _read(tracking, permuted, right.mT, left.mT, right, query=-1).mT)
    result = func(left, right)
    if isinstance(info, WeightInfo):
        if info.queries is not None and not reads and -1 not in (info.keys, info.queries):
            tracking.provenance.follow(info, left, result)  # heads that are mixed
        return result
    if not _mixes(tracking, left, right, result):
        tracking.provenance.learn(result, product_of(left, right, result, tracking.contents))
    return result


def _mixes(tracking: TrackingContext, left: Any, right: Any, result: Tensor) -> bool:
    """Return True if a product mixes the heads of weights or of scores, from the left or from the
    right: it leaves their queries and keys where they are.
    """
    provenance = tracking.provenance
    if provenance.of(left) is None and provenance.of(right) is None and not provenance.has_loose:
        return False
    for operand, axis in ((left, -1), (right, -2)):
        if not isinstance(operand, Tensor) or operand.ndim != result.ndim:
            continue
        info = tracking.provenance.of(operand)
        if isinstance(info, WeightInfo):
            if info.queries is not None and axis not in (info.keys, info.queries):
                tracking.provenance.follow(info, operand, result)
                return True
            continue
        loose = tracking.provenance.as_loose(operand)
        if loose is not None and axis not in loose.axes:
            tracking.provenance.learn_loose(result, loose)
            return True
    return False


def handle_linear(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`F.linear`: values from the right, or a map that mixes heads where they are the last axis."""
    operands = [*args, *(kwargs[name] for name in ("input", "weight") if name in kwargs)]
    info = tracking.provenance.of(operands[0])
    loose = tracking.provenance.as_loose(operands[0])
    if isinstance(info, WeightInfo) and info.has_rows and not isinstance(operands[1], nn.Parameter):
        contraction = Contraction.over_last(operands[0], operands[1])
        bias_kwargs = {name: value for name, value in kwargs.items() if name == "bias"}
        bias = [*operands[2:]] if len(args) > 2 else []
        return _contract(
            tracking, contraction, lambda first, second: func(first, second, *bias, **bias_kwargs)
        )
    if isinstance(info, WeightInfo) or loose is None:
        return handle_other(tracking, func, args, kwargs)
    result = func(*args, **kwargs)
    if -1 not in loose.axes:
        tracking.provenance.learn_loose(result, loose)
    return result


def handle_tensordot(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`torch.tensordot` and `torch.inner`, in the words of Einstein's sum."""
    contraction = Contraction.of_dots(python_name(func), args, kwargs)
    if contraction is None:
        return handle_other(tracking, func, args, kwargs)
    return _contract(
        tracking, contraction, lambda first, second: func(first, second, *args[2:], **kwargs)
    )


def handle_einsum(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Einstein's sum of weights and values, or of queries and keys, in whatever order of axes."""
    contraction = Contraction.of(args)
    if contraction is None:
        return func(*args, **kwargs)
    return _contract(tracking, contraction, lambda *tensors: func(args[0], tensors, **kwargs))


def _contract(
    tracking: TrackingContext, contraction: Contraction, run: Callable[[Tensor, Tensor], Any]
) -> Any:
    tensors = list(contraction.tensors)
    facts = [tracking.provenance.of(tensor) for tensor in tensors]
    for term, info in enumerate(facts):
        query = None
        if isinstance(info, WeightInfo):
            query = contraction.query_axis(term, info.keys, info.queries, tracking.heads_named)
        if isinstance(info, WeightInfo) and query is not None:
            if info.queries not in (None, query):
                break  # queries are known to be elsewhere: these are values of pairs of places
            order = _with_rows(tensors[term].ndim, query, info.keys)
            weights, values = tensors[term].permute(*order), tensors[1 - term]
            permuted = info.moved(tensors[term], order)
            as_matrices = contraction.as_multiplied(term, order)
            attended = _read(tracking, permuted, weights, values, tensors[term], query, as_matrices)
            tensors[term] = attended.permute(*back(order))
            return run(tensors[0], tensors[1])
    result = run(tensors[0], tensors[1])
    for term, info in enumerate(facts):
        if isinstance(info, WeightInfo):  # heads that are mixed
            keys = contraction.axis_after(term, info.keys)
            queries = None if info.queries is None else contraction.axis_after(term, info.queries)
            if keys is not None and queries is not None:
                others = [
                    other.pending
                    for other in facts
                    if isinstance(other, WeightInfo) and other is not info
                ]
                tracking.provenance.learn(result, info.elsewhere(keys, queries, *others))
            return result
    for term, tensor in enumerate(tensors):
        loose = tracking.provenance.as_loose(tensor)
        moved_loose = loose and loose.moved(
            [contraction.axis_after(term, axis) for axis in loose.axes]
        )
        if moved_loose is not None:
            tracking.provenance.learn_loose(result, moved_loose)
            return result
    score_info = contraction.product()
    if score_info is not None:
        tracking.provenance.learn(result, product_of(*score_info, result, tracking.contents))
    else:
        tracking.provenance.learn_loose(result, contraction.loose())
    return result


def handle_addmm_or(handler: Handler) -> Handler:
    """`addmm`, `baddbmm`, `addbmm` and `addmv`: a product of weights with values, which is added
    to something, and something else of what is none."""

    def either(
        tracking: TrackingContext,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        names = ("batch1", "mat1", "mat")
        name = next((keyword for keyword in names if keyword in kwargs), None)
        weights = args[1] if name is None and len(args) > 1 else kwargs.get(name or "")
        info = tracking.provenance.of(weights)
        operands = (kwargs[keyword] for keyword in ("batch2", "mat2", "vec") if keyword in kwargs)
        values = next(operands, args[2] if len(args) > 2 else None)
        tensors = isinstance(weights, Tensor) and isinstance(values, Tensor)
        if not tensors or not isinstance(info, WeightInfo) or not info.has_rows:
            return handler(tracking, func, args, kwargs)
        weights = cast(Tensor, weights)
        weights = _read(tracking, info, weights, cast(Tensor, values), weights)
        if name is not None:
            return func(*args, **{**kwargs, name: weights})
        return func(args[0], weights, *args[2:], **kwargs)

    return either


def _with_rows(axes: int, query: int, keys: int) -> list[int]:
    """The order of axes in which queries and keys are the last two."""
    last = [query % axes, keys % axes]
    return [axis for axis in range(axes) if axis not in last] + last


def _read(
    tracking: TrackingContext,
    info: WeightInfo,
    weights: Tensor,
    values: Tensor,
    weights_tensor: Tensor,
    query: int = -2,
    aligned: Tensor | None = None,
) -> Tensor:
    """Weights are about to be multiplied with values: record them, and change them where an
    intervention does.

    Args:
        weights_tensor: The weights as the model has them.
        query: Which axis their queries were there.
        aligned: The values as a matrix product would take them, where this is none.
    """
    if not isinstance(values, Tensor) or not tracking.reads_values(info, weights, values):
        return weights
    info.pending.confirm()
    reason = unreadable(weights)
    if reason is not None:
        tracking.record_unreadable(reason)
        return weights
    seen_as = values if aligned is None else aligned
    fold = Fold()

    def refused(site: CallSite) -> str | None:
        nonlocal fold
        fold = fold_of(info, weights, seen_as, site, tracking.folds)
        return of_channels(seen_as, weights.shape[-2], fold.count, site)

    with one_function():
        interested = tracking.interested(refused)
        if not interested:
            return weights
        site = interested[0][1]
        attention_map = explicit_attention_map(
            info, weights, fold, site.module, tracking.mask_specs
        )
        content = (
            info.scores.content
            if info.scores and isinstance(attention_map, FactoredAttentionMap)
            else None
        )
        new = [pair for pair in interested if info.pending.is_new_for(*pair, query)]
        factors = tracking.origins.factors_of(weights_tensor) if new else None
        if factors is None:
            tracking.deliver(new, attention_map, None, content=content)
        else:
            made_of = (*factors[:2], id(values))
            tracking.deliver(new, attention_map, made_of, factors[2], content)
    change = tracking.patch_function(interested)
    return weights if change is None else rewritten(info, weights, attention_map, fold, change)
