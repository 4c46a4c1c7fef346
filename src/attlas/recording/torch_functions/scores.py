"""Scores of queries and keys: a product, and what may be done to it before the softmax."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attlas.recording.torch_functions.contents import Content, Contents
from attlas.recording.torch_functions.context import Handler, TrackingContext
from attlas.recording.torch_functions.provenance import NOTHING, ScoreInfo
from attlas.recording.torch_functions.tensors import in_place, unreadable


def product_of(left: Any, right: Any, result: Any, contents: Contents) -> ScoreInfo | None:
    """What is known of a product: that it may be scores."""
    if not _may_be_scores(left, right, result):
        return None
    return ScoreInfo(left.detach(), right.detach(), content=_content(right, contents))


def _content(right: Tensor, contents: Contents) -> Content | None:
    """What keys hold whose keys are their last axis."""
    content = contents.of(right)
    return content if content is not None and content.axis == right.ndim - 1 else None


def handle_baddbmm(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """torch.baddbmm: a product that is added to a mask."""
    result = func(*args, **kwargs)
    operands = (kwargs[name] for name in ("input", "batch1", "batch2") if name in kwargs)
    terms = [*args, *operands]
    if len(terms) == 3 and _may_be_scores(terms[1], terms[2], result):
        mask, left, right = terms
        alpha = float(kwargs.get("alpha", 1))
        content = _content(right, tracking.contents)
        score_info = ScoreInfo(left.detach(), right.detach(), alpha, content=content)
        beta = kwargs.get("beta", 1)
        mask = mask.detach() * beta if beta not in (0, 1) else mask.detach()
        tracking.provenance.learn(result, score_info.masked(mask) if beta else score_info)
    return result


def handle_scale(factor_of: Callable[[float], float]) -> Handler:
    """Scores times a number."""

    def handler(
        tracking: TrackingContext,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        info = tracking.provenance.of(args[0]) if len(args) == 2 else None
        result = func(*args, **kwargs)
        if isinstance(info, ScoreInfo):
            factor = None if kwargs else _as_number(args[1])
            fact = None if not factor else info.scaled(factor_of(factor))
            tracking.provenance.learn(result, fact)
        return result

    return handler


def handle_tanh(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """tanh of scores: between a division and a multiplication it is a soft cap (Gemma 2, 2024)."""
    info = tracking.provenance.of(args[0]) if args else None
    result = func(*args, **kwargs)
    if info is not None:
        tracking.provenance.learn(result, info.capped() if isinstance(info, ScoreInfo) else None)
    return result


def handle_add(sign: int) -> Handler:
    """Scores plus a mask, from either side, or minus one; a number changes no softmax."""

    def handler(
        tracking: TrackingContext,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        # What is changed in its place is no mask any more when it has become the sum.
        commutes = sign > 0 and not in_place(func)
        sides = [args, args[::-1]][: 2 if commutes else 1] if len(args) > 1 else []
        score_infos = [
            (info, operand, other)
            for operand, other, *_ in sides
            if isinstance(info := tracking.provenance.of(operand), ScoreInfo)
        ]
        result = func(*args, **kwargs)
        if score_infos:
            two_terms = len(args) == 2 and not kwargs
            tracking.provenance.learn(result, _add(*score_infos[0], sign) if two_terms else None)
        return result

    return handler


def _add(info: ScoreInfo, scores: Tensor, other: Any, sign: int) -> ScoreInfo | None:
    number = _as_number(other)
    if number is not None:
        return replace(info, shifted=info.shifted or number != 0)
    if not isinstance(other, Tensor) or other.ndim > scores.ndim:
        return None
    other = other.detach()
    mask = other if other.is_floating_point() else other.to(scores.dtype)  # bools count as 0 and 1
    return info.masked(mask if sign > 0 else -mask)


def handle_masked_fill(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Scores with −∞ where a mask is True."""
    info = tracking.provenance.of(args[0]) if args else None
    fact = None
    if isinstance(info, ScoreInfo):
        arguments = [*args[1:], *(kwargs[name] for name in ("mask", "value") if name in kwargs)]
        if len(arguments) == 2:
            fact = _hide_scores(info, args[0], *arguments, hides=True)
    result = func(*args, **kwargs)
    if isinstance(info, ScoreInfo):
        tracking.provenance.learn(result, fact)
    return result


def handle_clamp_min(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Scores of which none is below a number; what is hidden alone where that is very low."""
    info = tracking.provenance.of(args[0]) if args else None
    result = func(*args, **kwargs)
    if isinstance(info, ScoreInfo) and isinstance(result, Tensor):
        arguments = [*args[1:], *(kwargs[name] for name in ("min", "other") if name in kwargs)]
        lowest = (
            _as_number(arguments[0]) if len(arguments) == 1 == len(args) + len(kwargs) - 1 else None
        )
        hidden = lowest is not None and lowest <= torch.finfo(result.dtype).min / 2
        tracking.provenance.learn(result, info.floored(lowest) if hidden and lowest else None)
    return result


def handle_setitem(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """`scores[mask] = −∞`."""
    info, fact = tracking.provenance.of(args[0]), None
    # An index is aligned from the first axis on, a mask from the last.
    of_all = isinstance(args[1], Tensor) and args[1].shape == args[0].shape
    if isinstance(info, ScoreInfo) and of_all:
        fact = _hide_scores(info, args[0], args[1], args[2], hides=True)
    func(*args, **kwargs)
    if info is not None:
        tracking.provenance.learn(args[0], fact)


def handle_where(
    tracking: TrackingContext,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """torch.where(mask, scores, −∞)."""
    result = func(*args, **kwargs)
    if len(args) == 3 and isinstance(info := tracking.provenance.of(args[1]), ScoreInfo):
        tracking.provenance.learn(
            result, _hide_scores(info, args[1], args[0], args[2], hides=False)
        )
    return result


def _hide_scores(
    info: ScoreInfo, scores: Tensor, mask: Any, value: Any, *, hides: bool
) -> ScoreInfo | None:
    """Scores of which some were replaced by a number, which is as good as −∞; None where it isn't.

    A number hides as −∞ does where it is so low that nothing is left of it beside a seen key, and
    where every query sees one.
    """
    number = _as_number(value)
    if number is None or not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        return None
    if unreadable(scores, mask):
        return None
    allowed = ~mask if hides else mask
    if mask.ndim > scores.ndim:
        return None
    if number != -torch.inf and scores.numel():
        # What was hidden before is no measure of what is seen.
        was_shown = info.shown()
        visible = scores.detach() > torch.finfo(scores.dtype).min / 2
        visible = allowed & visible if was_shown is None else allowed & visible & was_shown
        lowest = float(torch.where(visible, scores.detach(), torch.inf).min())
        if number > lowest - NOTHING or not bool(allowed.any(-1).all()):
            return None
        info = replace(info, margin=min(info.margin, lowest - number))
    return info.masked(allowed)


def _as_number(value: Any) -> float | None:
    if isinstance(value, Tensor):
        return float(value) if value.ndim == 0 and not unreadable(value) else None
    return float(value) if isinstance(value, int | float) else None


def _may_be_scores(left: Any, right: Any, result: Any) -> bool:
    return (
        isinstance(left, Tensor)
        and isinstance(right, Tensor)
        and not unreadable(left, right)
        and left.ndim >= 2
        and not isinstance(right, nn.Parameter)
        and left.ndim == right.ndim
        and left.shape[-1] == right.shape[-2]
        and torch.is_floating_point(result)
    )
