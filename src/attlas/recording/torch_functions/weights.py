"""What is done to weights between their softmax and the values."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attlas.recording.torch_functions.context import Handler, TrackingContext
from attlas.recording.torch_functions.heads import heads_named
from attlas.recording.torch_functions.provenance import ScoreInfo, WeightInfo
from attlas.recording.torch_functions.tensors import in_place, python_name

T = torch.Tensor
_BASE = vars(torch._C.TensorBase)
CASTS = {T.to, T.type, T.float, T.half, T.double, T.bfloat16, T.type_as, T.contiguous}
CASTS |= {T.clone, torch.clone, T.detach, torch.detach, T.cpu, T.cuda}
SHAPES = {T.view, T.reshape, T.unflatten, T.flatten, T.squeeze, T.unsqueeze, torch.reshape}
SHAPES |= {T.view_as, T.reshape_as, torch.flatten, torch.unflatten, torch.squeeze, torch.unsqueeze}
_EXPANDS = {T.expand, T.expand_as}
MOVES = {T.transpose, T.permute, T.movedim, T.moveaxis, T.swapaxes, T.swapdims, T.t, T.adjoint}
MOVES |= {torch.transpose, torch.permute, torch.movedim, torch.moveaxis, torch.swapaxes}
MOVES |= {torch.swapdims, torch.t, torch.adjoint}
MOVES |= {_BASE[name].__get__ for name in ("T", "mT", "H", "mH")}
PARTS = {T.__getitem__, T.select, T.narrow, T.unbind, T.chunk, T.split, T.expand, T.expand_as}
PARTS |= {torch.select, torch.narrow, torch.unbind, torch.chunk, torch.split}

REDUCTIONS = {T.sum, torch.sum, T.mean, torch.mean, T.amax, torch.amax, T.amin, torch.amin}
REDUCTIONS |= {T.nansum, torch.nansum, T.nanmean, torch.nanmean, T.prod, torch.prod}
CONVOLUTIONS = {F.conv1d, F.conv2d, F.conv3d, torch.conv1d, torch.conv2d, torch.conv3d, F.pad}


def handle_weight_step(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """What may be done to weights before they meet values: dropout, another type, another shape."""
    if not args:
        return func(*args, **kwargs)
    info, source = tracking.provenance.of(args[0]), args[0]
    if isinstance(info, WeightInfo) and (kwargs.get("inplace") or in_place(func)):
        source = args[0].detach().clone()
    loose = tracking.provenance.loose(args[0])
    result, name = func(*args, **kwargs), python_name(func)
    if name in SHAPES:
        tracking.folds.reshaped(args[0], result)
        tracking.contents.reshaped(args[0], result)
    elif name in CASTS:
        tracking.folds.laid_out(args[0], result)
        tracking.contents.copied(args[0], result)
    if isinstance(info, WeightInfo) and isinstance(result, Tensor) and result is not source:
        if name in SHAPES and info.folded:
            tracking.provenance.learn(result, info.unfolded(source, result))
        elif name not in SHAPES or _keeps_rows(tracking, info, source, result):
            fact = info.after(source, (func, args[1:], kwargs))
            tracking.provenance.learn(result, fact)
        elif not info.has_rows or result.shape[-1:] != source.shape[-1:]:
            tracking.provenance.learn(result, info.reshaped_axes(source.shape, result.shape))
    elif isinstance(info, ScoreInfo) and isinstance(result, Tensor):
        if name in CASTS:
            tracking.provenance.learn(result, info)
        elif name in SHAPES and result.dtype == args[0].dtype:
            reshaped_axes = info.reshaped_axes(args[0].shape, result.shape)
            tracking.provenance.learn(result, reshaped_axes)
            loose = info.loosely() if reshaped_axes is None else None
        else:
            tracking.provenance.follow_loose((), [(args[0], info)], result)
    if loose is not None and name in SHAPES and isinstance(result, Tensor):
        tracking.provenance.learn_loose(result, loose.reshaped_axes(args[0].shape, result.shape))
    return result


def _keeps_rows(
    tracking: TrackingContext, info: WeightInfo, original: Tensor, result: Tensor
) -> bool:
    """Return True if weights in another shape are read as they were: as texts, heads, queries and
    keys.

    Not those of a layer with a single key head that has its heads behind its queries, and folds
    both into one axis; which of the two it is, is told by the number of heads that it names.
    """
    if not info.has_rows or result.shape[-1:] != original.shape[-1:]:
        return False
    if original.ndim != 4 or result.ndim < 3:
        return True
    folded = result.shape[-2] not in (original.shape[-2], 1) or original.shape[1] == 1
    if not folded or original.shape[1] == original.shape[2]:
        return True
    call_sites = tracking.call_sites()
    heads = heads_named(call_sites[0][1].module) if call_sites else None
    if heads in original.shape[1:3]:
        return heads == original.shape[1]
    return result.ndim == original.ndim or original.shape[1] == 1


def handle_nan_to_num(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`nan_to_num`: a row of which all was hidden is NaN after its softmax, and is read as 0."""
    info = tracking.provenance.of(args[0]) if args and "out" not in kwargs else None
    if not isinstance(info, WeightInfo):
        return handle_other(tracking, func, args, kwargs)
    result = func(*args, **kwargs)
    origin = None if info.origin is None else func(info.origin, *args[1:], **kwargs)
    tracking.provenance.learn(result, replace(info, origin=origin))
    return result


@lru_cache(1024)  # a model moves the same axes in each of its layers
def _order_after(
    axes: int, func: Callable[..., Any], args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]
) -> tuple[int, ...]:
    """Into which order a function of torch puts so many axes."""
    probe = torch.empty(tuple(range(axes)))  # each axis has its number for a size
    return tuple(func(probe, *args, **dict(kwargs)).shape)


def handle_permute(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Weights or scores whose axes change places."""
    result = func(*args, **kwargs)
    if not args:
        return result

    def order() -> tuple[int, ...]:
        arguments = args[0].ndim, func, args[1:], tuple(kwargs.items())
        try:
            return _order_after(*arguments)
        except TypeError:  # axes in a list
            return _order_after.__wrapped__(*arguments)

    tracking.folds.moved(args[0], result, order)
    if tracking.contents.of(args[0]) is not None:
        tracking.contents.moved(args[0], result, order())
    if not tracking.provenance.knows:
        return result
    info, loose = tracking.provenance.of(args[0]), tracking.provenance.as_loose(args[0])
    if info is None and loose is None:
        return result
    if isinstance(info, WeightInfo):
        tracking.provenance.learn(result, info.moved(args[0], order()))
        return result
    transposed = info.turned() if info is not None and order() == (1, 0) else None
    if transposed is not None:
        tracking.provenance.learn(result, transposed)
    elif loose is not None and result is not args[0]:
        axes = len(order())
        permuted = loose.moved([order().index(axis % axes) - axes for axis in loose.axes])
        tracking.provenance.learn_loose(result, permuted)
    return result


def handle_reduction(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A sum or a mean over an axis, such as one of heads or of several softmaxes."""
    info = tracking.provenance.of(args[0]) if args else None
    loose = tracking.provenance.as_loose(args[0]) if args else None
    if not isinstance(info, WeightInfo) and loose is None:
        return handle_other(tracking, func, args, kwargs)
    result, axes = func(*args, **kwargs), args[0].ndim
    probe = torch.empty(tuple(range(2, axes + 2)), device="meta")  # no axis has size 1
    sizes = func(probe, *args[1:], **kwargs).shape

    def after(axis: int) -> int | None:
        size = axis % axes + 2
        return sizes.index(size) - len(sizes) if size in sizes else None

    if isinstance(info, WeightInfo):
        keys, queries = after(info.keys), info.queries
        if keys is not None and (queries is None or after(queries) is not None):
            queries = None if queries is None else after(queries)
            tracking.provenance.learn(result, info.elsewhere(keys, queries))
    elif loose is not None:
        tracking.provenance.learn_loose(result, loose.moved([after(axis) for axis in loose.axes]))
    return result


def handle_convolution(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A convolution, or its padding: weights or scores as a picture with heads for its colours."""
    info = tracking.provenance.of(args[0]) if args else None
    loose = tracking.provenance.as_loose(args[0]) if args else None
    if not isinstance(info, WeightInfo) and loose is None:
        return handle_other(tracking, func, args, kwargs)
    result, axes = func(*args, **kwargs), args[0].ndim
    mixed_axes = () if func is F.pad else (1 - axes,)  # the colours
    if isinstance(info, WeightInfo):
        if info.queries is not None and not {info.keys, info.queries} & {*mixed_axes}:
            tracking.provenance.learn(result, info.altered())
    elif loose is not None and not {*loose.axes} & {*mixed_axes}:
        tracking.provenance.learn_loose(result, loose)
    return result


def handle_index(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Some of the weights: those of a head, of some queries, or without the logits of a sink."""
    result = func(*args, **kwargs)
    if args:
        tracking.folds.parted(args[0], _pieces(result))
    if args and python_name(func) is T.__getitem__:
        tracking.contents.part(args[0], args[1], result)
    elif args and func in _EXPANDS:
        tracking.contents.reshaped(args[0], result)
    if not tracking.provenance.knows:
        return result
    info = tracking.provenance.of(args[0]) if args else None
    loose = tracking.provenance.as_loose(args[0]) if args else None
    if not isinstance(info, WeightInfo) and loose is None:
        return result
    if func is T.__getitem__ and any(isinstance(index, Tensor | list) for index in _flat(args[1:])):
        if isinstance(info, WeightInfo):
            tracking.provenance.follow(info, args[0], result)  # chosen by number
        return result

    def after(axis: int) -> Iterator[tuple[int | None, int]]:
        """Where an axis is in each part, by a tensor that has a stride in that axis alone, and its
        first place there."""
        strides = [int(dimension == axis % args[0].ndim) for dimension in range(args[0].ndim)]
        line = torch.empty_strided(args[0].shape, strides, device="meta")
        for piece in _pieces(func(line, *args[1:], **kwargs)):
            axes = [dimension for dimension in range(-piece.ndim, 0) if piece.stride(dimension)]
            if len(axes) > 1:  # a new axis beside it has one, too
                axes = [dimension for dimension in axes if piece.shape[dimension] > 1]
            yield axes[0] if len(axes) == 1 else None, int(piece.storage_offset())

    if not isinstance(info, WeightInfo):
        axes = zip(*(after(axis) for axis in loose.axes), strict=True) if loose is not None else ()
        for piece, ((first, _), (second, _)) in zip(_pieces(result), axes, strict=True):
            if loose is not None:
                tracking.provenance.learn_loose(piece, loose.moved((first, second)))
        return result
    sizes = args[1] if len(args) > 1 else kwargs.get("split_size")
    cut = func in (T.narrow, torch.narrow) or isinstance(sizes, list | tuple)
    pieces, keys = _pieces(result), args[0].shape[info.keys]
    nowhere: list[tuple[int | None, int]] = [(None, 0)] * len(pieces)
    queries = nowhere if info.queries is None else list(after(info.queries))
    for piece, (slot, begin), (query, _) in zip(pieces, after(info.keys), queries, strict=True):
        if slot is None or (query is None) != (info.queries is None):
            continue
        # Who takes apart the keys reads the rest of them in another way, as Longformer does; the
        # last alone may be the logits of a sink.
        keys_left = keys - piece.shape[slot]
        if func is T.__getitem__ or not keys_left or (cut and keys_left == 1 and not begin):
            tracking.provenance.learn(piece, info.elsewhere(slot, query))
    return result


def handle_cat(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`cat` and `stack`, which may fold heads into the axis of texts, or join maps."""
    provenance = tracking.provenance
    knows = provenance.knows
    result = handle_other(tracking, func, args, kwargs) if knows else func(*args, **kwargs)
    parts = args[0] if args else kwargs.get("tensors", ())
    axis = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
    tracking.folds.joined(parts, result, axis)
    if python_name(func) is not torch.stack:
        tracking.contents.joined(parts, axis, result)
    if not knows:
        return result
    facts = [provenance.of(part) for part in parts]
    infos = [fact for fact in facts if isinstance(fact, WeightInfo)]
    if infos and len(infos) == len(facts) and isinstance(axis, int):
        first = infos[0]
        if all((info.keys, info.queries) == (first.keys, first.queries) for info in infos):
            is_stack = python_name(func) is torch.stack
            axis_from_end = axis - result.ndim * (axis >= 0)  # counted from the last

            def after(axis_: int) -> int:
                return axis_ - 1 if is_stack and axis_from_end > axis_ - 1 else axis_

            queries = None if first.queries is None else after(first.queries)
            others = (info.pending for info in infos[1:])
            provenance.learn(result, first.elsewhere(after(first.keys), queries, *others))
    return result


def handle_index_select(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`index_select` and `repeat_interleave`, by which a search goes on from some of its rows."""
    result = handle_other(tracking, func, args, kwargs)
    tensor: Any = args[0] if args else None
    if tracking.contents.of(tensor) is not None:
        if python_name(func) in (T.index_select, torch.index_select):
            axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
            rows = kwargs.get("index", args[-1])
        else:
            rows, axis = kwargs.get("repeats", args[-1]), kwargs.get("dim", args[-1])
            if isinstance(rows, int):
                rows = torch.arange(tensor.shape[0], device=tensor.device).repeat_interleave(rows)
        if axis == 0:
            tracking.contents.chosen(tensor, rows, result)
    return result


def handle_write_or(handler: Handler) -> Handler:
    """`index_copy_`, `copy_` and `tensor[…] = …`, by which a cache fills the room that it made."""

    def write(
        tracking: TrackingContext,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        tensor, name = args[0] if args else None, python_name(func)
        tracking.contents.before_writing(tensor)
        result = handler(tracking, func, args, kwargs)
        if name is T.__setitem__:
            tracking.contents.assigned(tensor, args[1])
        elif name is T.copy_:
            tracking.contents.copied(args[1] if len(args) > 1 else None, tensor)
        elif len(args) + len(kwargs) == 4:
            axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
            tracking.contents.written(tensor, axis, kwargs.get("index", args[2:3] and args[2]))
        return result

    return write


def _pieces(result: Any) -> list[Tensor]:
    return list(result) if isinstance(result, tuple | list) else [result]


def handle_gate_or(handler: Handler) -> Handler:
    """What makes other weights of weights, and something else of what is none.

    A gate, a mask of heads, a threshold and a sum to 1: what comes of it is what is read, and not
    what the softmax gave.
    """
    return _weights_or(handler, lambda info, tensors: True)


def handle_step_or(handler: Handler) -> Handler:
    """The same of any other function, such as one that mixes heads.

    What is made of a softmax and another tensor are other weights only where the softmax is known
    to be of queries and keys: it may have been of a text's features.
    """
    return _weights_or(handler, lambda info, others: info.queries is not None or not others)


def _weights_or(handler: Handler, follows: Callable[[WeightInfo, int], bool]) -> Handler:
    """A handler that makes other weights of weights, and calls `handler` for everything else.

    Args:
        follows: Whether the result is weights, by what is known of the weights and the number of
            other tensors, numbers not counted.
    """

    def either(
        tracking: TrackingContext,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        provenance = tracking.provenance
        first = provenance.first((*args, *kwargs.values()) if kwargs else args)[1]
        if first is None and not provenance.has_loose:
            return handler(tracking, func, args, kwargs)
        tensors = [value for value in _flat((*args, *kwargs.values())) if isinstance(value, Tensor)]
        facts = [
            (tensor, fact) for tensor in tensors if (fact := provenance.of(tensor)) is not None
        ]
        if not isinstance(first, WeightInfo):
            result = handler(tracking, func, args, kwargs)
            provenance.follow_loose(tensors, facts, result)
            return result
        infos = [(tensor, fact) for tensor, fact in facts if isinstance(fact, WeightInfo)]
        # Where the queries of one are known, the others have theirs there, too.
        infos.sort(key=lambda pair: (-pair[0].ndim, pair[1].queries is None))
        result = func(*args, **kwargs)
        others = sum(tensor.ndim > 0 for tensor in tensors) - len(infos)
        (weights, fact), other_infos = infos[0], [other for _, other in infos[1:]]
        if follows(fact, others):
            provenance.follow(fact, weights, result, *other_infos)
        return result

    return either


def _flat(values: tuple[Any, ...]) -> Iterator[Any]:
    """What was given, one by one, of tuples and lists too."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from value
        yield value


def handle_reshape(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Another shape of vectors, of which nothing else is known."""
    result = func(*args, **kwargs)
    if args:
        tracking.folds.reshaped(args[0], result)
        tracking.contents.reshaped(args[0], result)
    return result


def handle_copy(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Another copy of vectors, of which nothing else is known."""
    result = func(*args, **kwargs)
    if args:
        tracking.folds.laid_out(args[0], result)
        tracking.contents.copied(args[0], result)
    return result


@handle_step_or
def handle_other(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A function of which nothing is known here."""
    return func(*args, **kwargs)
