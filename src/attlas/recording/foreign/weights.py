"""Weights: a softmax over slots, what is done to it, and the product with values that reads it."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from attlas.recording.factored_reading import FactoredReading
from attlas.recording.foreign.contraction import Contraction
from attlas.recording.foreign.explicit import (
    explicit_reading,
    fold_of,
    is_softmax_of_rows,
    rewritten,
)
from attlas.recording.foreign.hearing import Handler, Hearing
from attlas.recording.foreign.news import News
from attlas.recording.foreign.scored import Loose, Scored
from attlas.recording.foreign.scores import product_of
from attlas.recording.foreign.unreadable import unreadable
from attlas.recording.foreign.weighed import Logarithms, Weighed, back

_MOST_AXES = 4  # windows that have an axis of their own are not read


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
    if result.ndim <= _MOST_AXES:
        folded = loose is not None and result.ndim == 2
        known = Weighed(scores, news=news, slots=slots, queries=queries, folded=folded)
        hearing.lineage.learn(result, known)
    return news


def product(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A matrix product: of weights with values, or of what may be queries and keys."""
    given = [*args, *(kwargs[name] for name in ("input", "other", "mat2") if name in kwargs)]
    if len(given) != 2 or len(given) < len(args) + len(kwargs):
        return func(*args, **kwargs)  # with an `out` of its own
    left, right = given
    known = hearing.lineage.of(left)
    reads = isinstance(known, Weighed) and known.has_rows
    if isinstance(known, Weighed) and reads:
        left = _read(hearing, known, left, right, left)
    result = func(left, right)
    if isinstance(known, Weighed) and known.queries is not None and not reads:
        hearing.lineage.follow(known, left, result)  # heads that are mixed
    elif known is None:
        hearing.lineage.learn(result, product_of(left, right, result, hearing.contents))
    return result


def einsum(
    hearing: Hearing, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Einstein's sum of weights and values, or of queries and keys, in whatever order of axes."""
    asked = Contraction.of(args)
    if asked is None:
        return func(*args, **kwargs)
    tensors = list(asked.tensors)
    facts = [hearing.lineage.of(tensor) for tensor in tensors]
    for mine, known in enumerate(facts):
        query = asked.query_axis(mine, known.slots) if isinstance(known, Weighed) else None
        if isinstance(known, Weighed) and query is not None:
            if known.queries not in (None, query):
                break  # queries are known to be elsewhere: these are values of pairs of places
            order = _with_rows(tensors[mine].ndim, query, known.slots)
            weights, values = tensors[mine].permute(*order), tensors[1 - mine]
            moved = known.moved(tensors[mine], order)
            read = _read(hearing, moved, weights, values, tensors[mine], query)
            tensors[mine] = read.permute(*back(order))
            return func(asked.equation, tensors, **kwargs)
    result = func(*args, **kwargs)
    scored = asked.product()
    for mine, known in enumerate(facts):
        if isinstance(known, Weighed):  # heads that are mixed
            slots = asked.axis_after(mine, known.slots)
            queries = None if known.queries is None else asked.axis_after(mine, known.queries)
            if slots is not None and queries is not None:
                hearing.lineage.learn(result, known.elsewhere(slots, queries))
            return result
    if scored is not None:
        hearing.lineage.learn(result, product_of(*scored, result, hearing.contents))
    else:
        hearing.lineage.learn_loose(result, asked.loose())
    return result


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
) -> Tensor:
    """Weights are about to be multiplied with values: tell, and change them where somebody does.

    given: the weights as the model has them; query: which axis their queries were there.
    """
    if not isinstance(values, Tensor) or _is_table(values, weights):
        return weights
    known.news.arrive()
    why = unreadable(weights)
    if why is not None:
        hearing.miss(why)
        return weights
    concerned = hearing.concerned()
    if not concerned:
        return weights
    place = concerned[0][1]
    fold = fold_of(known, weights, values, place, hearing.folds)
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


def _is_table(values: Tensor, weights: Tensor) -> bool:
    """Whether these are no values of a text but rows that are the same for every one."""
    return isinstance(values, nn.Parameter) or (values.ndim == 2 and weights.ndim > 2)
