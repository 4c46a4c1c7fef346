"""Weights: a softmax over slots, what is done to it, and the product with values that reads it."""

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor, nn

from attlas.recording.factored_reading import FactoredReading
from attlas.recording.foreign.calling import one_function
from attlas.recording.foreign.contraction import Contraction
from attlas.recording.foreign.explicit import (
    explicit_reading,
    fold_of,
    is_softmax_of_rows,
    rewritten,
)
from attlas.recording.foreign.folds import Fold
from attlas.recording.foreign.heads import of_channels
from attlas.recording.foreign.hearing import Handler, Hearing
from attlas.recording.foreign.news import News
from attlas.recording.foreign.operators import python_name
from attlas.recording.foreign.scored import Loose, Scored
from attlas.recording.foreign.scores import product_of
from attlas.recording.foreign.steps import anything
from attlas.recording.foreign.unreadable import unreadable
from attlas.recording.foreign.weighed import Logarithms, Weighed, back
from attlas.recording.place import Place


def softmax(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A softmax over the last axis, which may be weights; at a place that is about attention."""
    result = func(*args, **kwargs)
    dim, scores, loose = _asked(hearing, args, kwargs)
    _weigh(hearing, result, dim, scores, loose=loose)
    return result


def softmin(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A softmax of distances."""
    dim, _, _ = _asked(hearing, args, kwargs)
    result = func(*args, **kwargs)
    _weigh(hearing, result, dim, None)
    return result


def log_softmax(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Logarithms of what may be weights."""
    asked = _asked(hearing, args, kwargs)
    result = func(*args, **kwargs)
    hearing.lineage.learn_logarithms(result, Logarithms(*asked))
    return result


def exponential(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """exp, by which logarithms become weights."""
    known = hearing.lineage.logarithms(args[0] if args else kwargs.get("input"))
    result = func(*args, **kwargs)
    if known is not None:
        told = known.axis, known.scores, known.news, known.loose
        known.news = _weigh(hearing, result, *told)
    return result


def logarithms_or(handler: Handler) -> Handler:
    """What casts logarithms, shapes them or hides some, and something else of what is none."""

    def either(
        hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if not hearing.lineage.has_logarithms:
            return handler(hearing, func, args, kwargs)
        given = [one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)]
        known = ((one, hearing.lineage.logarithms(one)) for one in given)
        before, logs = next((pair for pair in known if pair[1] is not None), (None, None))
        shape = None if before is None else before.shape
        result = handler(hearing, func, args, kwargs)
        if logs is not None and shape is not None and isinstance(result, Tensor):
            last = logs.axis in (-1, len(shape) - 1) and result.shape[-1:] == shape[-1:]
            if last and result.is_floating_point():
                hearing.lineage.learn_logarithms(result, Logarithms(-1, None))
        return result

    return either


def _asked(
    hearing: Hearing, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[int | None, Scored | None, Loose | None]:
    """Over which axis a softmax goes, and of which scores, or of which loose product."""
    dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis"))
    given = args[0] if args else kwargs.get("input")
    scores = hearing.lineage.of(given)
    known = scores if isinstance(scores, Scored) else None
    return dim, known, None if known else hearing.lineage.loose(given)


def drawn(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`F.gumbel_softmax`, a softmax of scores and chance."""
    result = func(*args, **kwargs)
    _weigh(hearing, result, kwargs.get("dim", args[4] if len(args) > 4 else -1), None)
    return result


def _weigh(
    hearing: Hearing,
    result: Tensor,
    dim: int | None,
    scores: Scored | None,
    news: News | None = None,
    loose: Loose | None = None,
) -> News | None:
    slots = -1 if dim is None else dim - result.ndim * (dim >= 0)
    if loose is not None and (dim is None or loose.beside(slots) is None):
        loose = None  # what it goes over are neither its queries nor its slots
    if not is_softmax_of_rows(result, dim, scores) and loose is None:
        if scores is not None:  # over queries, say: told, if nothing else is read there
            hearing.expect(scores)
        return None
    news = hearing.expect(scores, loose) if news is None else news
    queries = -2 if scores is not None else None
    if loose is not None:
        queries = loose.beside(slots)
    folded = loose is not None and loose.folded
    known = Weighed(scores, news=news, slots=slots, queries=queries, folded=folded)
    hearing.lineage.learn(result, known)
    return news


def product(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A matrix product: of weights with values, or of what may be queries and keys."""
    names = ("input", "other", "mat2", "vec")
    given = [*args, *(kwargs[name] for name in names if name in kwargs)]
    if len(given) != 2 or len(given) < len(args) + len(kwargs):
        return func(*args, **kwargs)  # with an `out` of its own
    left, right = given
    known = hearing.lineage.of(left)
    reads = isinstance(known, Weighed) and known.has_rows
    if isinstance(known, Weighed) and reads:
        left = _read(hearing, known, left, right, left)
    result = func(left, right)
    if isinstance(known, Weighed):
        if known.queries is not None and not reads:
            hearing.lineage.follow(known, left, result)  # heads that are mixed
        return result
    if not _mixes(hearing, left, right, result):
        hearing.lineage.learn(result, product_of(left, right, result, hearing.contents))
    return result


def _mixes(hearing: Hearing, left: Any, right: Any, result: Tensor) -> bool:
    """Whether a product mixes the heads of weights or of scores, from the left or from the right:
    it leaves their queries and slots where they are."""
    lineage = hearing.lineage
    if lineage.of(left) is None and lineage.of(right) is None and not lineage.has_loose:
        return False
    for mine, summed in ((left, -1), (right, -2)):
        if not isinstance(mine, Tensor) or mine.ndim != result.ndim:
            continue
        known = hearing.lineage.of(mine)
        if isinstance(known, Weighed):
            if known.queries is not None and summed not in (known.slots, known.queries):
                hearing.lineage.follow(known, mine, result)
                return True
            continue
        loose = hearing.lineage.as_loose(mine)
        if loose is not None and summed not in loose.axes:
            hearing.lineage.learn_loose(result, loose)
            return True
    return False


def linear(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`F.linear`: values from the right, or a map that mixes heads where they are the last axis."""
    given = [*args, *(kwargs[name] for name in ("input", "weight") if name in kwargs)]
    known = hearing.lineage.of(given[0])
    loose = hearing.lineage.as_loose(given[0])
    if isinstance(known, Weighed) and known.has_rows and not isinstance(given[1], nn.Parameter):
        asked = Contraction.over_last(given[0], given[1])
        rest = {name: one for name, one in kwargs.items() if name == "bias"}
        bias = [*given[2:]] if len(args) > 2 else []
        return _contract(hearing, asked, lambda one, other: func(one, other, *bias, **rest))
    if isinstance(known, Weighed) or loose is None:
        return anything(hearing, func, args, kwargs)
    result = func(*args, **kwargs)
    if -1 not in loose.axes:
        hearing.lineage.learn_loose(result, loose)
    return result


def dotted(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`torch.tensordot` and `torch.inner`, in the words of Einstein's sum."""
    asked = Contraction.of_dots(python_name(func), args, kwargs)
    if asked is None:
        return anything(hearing, func, args, kwargs)
    return _contract(hearing, asked, lambda one, other: func(one, other, *args[2:], **kwargs))


def einsum(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Einstein's sum of weights and values, or of queries and keys, in whatever order of axes."""
    asked = Contraction.of(args)
    if asked is None:
        return func(*args, **kwargs)
    return _contract(hearing, asked, lambda *tensors: func(args[0], tensors, **kwargs))


def _contract(hearing: Hearing, asked: Contraction, run: Callable[[Tensor, Tensor], Any]) -> Any:
    tensors = list(asked.tensors)
    facts = [hearing.lineage.of(tensor) for tensor in tensors]
    for mine, known in enumerate(facts):
        query = None
        if isinstance(known, Weighed):
            query = asked.query_axis(mine, known.slots, known.queries, hearing.heads_named)
        if isinstance(known, Weighed) and query is not None:
            if known.queries not in (None, query):
                break  # queries are known to be elsewhere: these are values of pairs of places
            order = _with_rows(tensors[mine].ndim, query, known.slots)
            weights, values = tensors[mine].permute(*order), tensors[1 - mine]
            moved = known.moved(tensors[mine], order)
            aligned = asked.as_multiplied(mine, order)
            read = _read(hearing, moved, weights, values, tensors[mine], query, aligned)
            tensors[mine] = read.permute(*back(order))
            return run(tensors[0], tensors[1])
    result = run(tensors[0], tensors[1])
    for mine, known in enumerate(facts):
        if isinstance(known, Weighed):  # heads that are mixed
            slots = asked.axis_after(mine, known.slots)
            queries = None if known.queries is None else asked.axis_after(mine, known.queries)
            if slots is not None and queries is not None:
                others = [
                    one.news for one in facts if isinstance(one, Weighed) and one is not known
                ]
                hearing.lineage.learn(result, known.elsewhere(slots, queries, *others))
            return result
    for mine, tensor in enumerate(tensors):
        loose = hearing.lineage.as_loose(tensor)
        moved_loose = loose and loose.moved([asked.axis_after(mine, one) for one in loose.axes])
        if moved_loose is not None:
            hearing.lineage.learn_loose(result, moved_loose)
            return result
    scored = asked.product()
    if scored is not None:
        hearing.lineage.learn(result, product_of(*scored, result, hearing.contents))
    else:
        hearing.lineage.learn_loose(result, asked.loose())
    return result


def onto_or(handler: Handler) -> Handler:
    """`addmm`, `baddbmm`, `addbmm` and `addmv`: a product of weights with values, which is added
    to something, and something else of what is none."""

    def either(
        hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        names = ("batch1", "mat1", "mat")
        name = next((one for one in names if one in kwargs), None)
        weights = args[1] if name is None and len(args) > 1 else kwargs.get(name or "")
        known = hearing.lineage.of(weights)
        named = (kwargs[one] for one in ("batch2", "mat2", "vec") if one in kwargs)
        values = next(named, args[2] if len(args) > 2 else None)
        tensors = isinstance(weights, Tensor) and isinstance(values, Tensor)
        if not tensors or not isinstance(known, Weighed) or not known.has_rows:
            return handler(hearing, func, args, kwargs)
        weights = cast(Tensor, weights)
        weights = _read(hearing, known, weights, cast(Tensor, values), weights)
        if name is not None:
            return func(*args, **{**kwargs, name: weights})
        return func(args[0], weights, *args[2:], **kwargs)

    return either


def _with_rows(axes: int, query: int, slots: int) -> list[int]:
    """The order of axes in which queries and slots are the last two."""
    last = [query % axes, slots % axes]
    return [axis for axis in range(axes) if axis not in last] + last


def _read(
    hearing: Hearing,
    known: Weighed,
    weights: Tensor,
    values: Tensor,
    given: Tensor,
    query: int = -2,
    aligned: Tensor | None = None,
) -> Tensor:
    """Weights are about to be multiplied with values: tell, and change them where somebody does.

    given: the weights as the model has them; query: which axis their queries were there. aligned:
    the values as a matrix product would take them, where this is none.
    """
    if not isinstance(values, Tensor) or not hearing.reads(known, weights, values):
        return weights
    known.news.arrive()
    why = unreadable(weights)
    if why is not None:
        hearing.miss(why)
        return weights
    seen_as = values if aligned is None else aligned
    fold = Fold()

    def refused(place: Place) -> str | None:
        nonlocal fold
        fold = fold_of(known, weights, seen_as, place, hearing.folds)
        return of_channels(seen_as, weights.shape[-2], fold.count, place)

    with one_function():
        concerned = hearing.concerned(refused)
        if not concerned:
            return weights
        place = concerned[0][1]
        reading = explicit_reading(known, weights, fold, place.module, hearing.sights)
        content = (
            known.scores.content if known.scores and isinstance(reading, FactoredReading) else None
        )
        told = [pair for pair in concerned if known.news.first_for(*pair, query)]
        factors = hearing.origins.factors_of(given) if told else None
        if factors is None:
            hearing.tell(told, reading, None, content=content)
        else:
            made_of = (*factors[:2], id(values))
            hearing.tell(told, reading, made_of, factors[2], content)
    change = hearing.change(concerned)
    return weights if change is None else rewritten(known, weights, reading, fold, change)
