"""The loss: cross-entropy over the real tokens, without ever holding all logits."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

_AT_ONCE = 512  # rows whose logits are held at a time: enough to keep a matrix product busy

Logits = Callable[[Float[Tensor, "tokens width"]], Float[Tensor, "tokens vocabulary"]]
Criterion = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Of logits and wanted ids: the summed loss, and its gradient by the logits."""


def cross_entropy(
    logits: Float[Tensor, "tokens vocabulary"],
    wanted: Int[Tensor, " tokens"],
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """−Σ_t Σ_v q_t(v) log softmax(logits_t)(v), in nats, summed over the tokens.

    q_t = (1 − ε) on the wanted token + ε / |V| on every token    Szegedy et al., 2016, section 7.
    In float32 at least: a sum over a batch has more digits than bfloat16.
    """
    precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(precise, wanted, reduction="sum", label_smoothing=smoothing)


@torch.no_grad()
def cross_entropy_and_gradient(
    logits: Float[Tensor, "tokens vocabulary"],
    wanted: Int[Tensor, " tokens"],
    smoothing: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, "tokens vocabulary"]]:
    """The same sum and dL/dz = softmax(z) − q, in float32 at least, with half as many passes.

    The logits are the largest tensors of a training; what counts is how often they are gone over.
    """
    precise = torch.promote_types(logits.dtype, torch.float32)
    log_p = torch.log_softmax(logits, dim=-1, dtype=precise)
    own = wanted.unsqueeze(1)
    loss = (smoothing - 1.0) * log_p.gather(1, own).sum()
    if smoothing:
        share = smoothing / logits.shape[1]
        loss -= share * log_p.sum()
        gradient = log_p.exp_().sub_(share)
    else:
        gradient = log_p.exp_()
    return loss, gradient.scatter_add_(1, own, gradient.new_full(own.shape, smoothing - 1.0))


def sequence_loss(
    vocabulary_layer: Logits,
    features: Float[Tensor, "batch queries width"],
    wanted: Int[Tensor, "batch queries"],
    real: Bool[Tensor, "batch queries"],
    smoothing: float,
    parameters: list[nn.Parameter],
    scale: float = 1.0,
) -> Float[Tensor, ""]:
    """Σ over the real positions of the cross-entropy: what `cross_entropy` gives, in less memory.

    Logits exist for a few hundred tokens at a time: their gradient is taken in the forward pass
    and only that of `features` and `parameters` (a list that includes those of the vocabulary
    layer) is kept. Both output and gradient are exact.

    scale: what the gradient of this loss will be multiplied by, roughly. It changes nothing but
    that the gradients taken here are as large then as they will be, and keep out of the underflow
    of float16: a loss that is scaled afterwards would scale what is already zero.
    """
    chosen, ids = features[real], wanted[real]
    if torch.is_grad_enabled():
        criterion = partial(cross_entropy_and_gradient, smoothing=smoothing)
        return chunked(vocabulary_layer, criterion, chosen, ids, parameters, scale)
    losses = [
        cross_entropy(vocabulary_layer(part), part_ids, smoothing)
        for part, part_ids in _chunks(chosen, ids)
    ]
    return torch.stack(losses).sum()


def chunked(
    vocabulary_layer: Logits,
    criterion: Criterion,
    rows: Float[Tensor, "rows width"],
    ids: Int[Tensor, " rows"],
    parameters: list[nn.Parameter],
    scale: float = 1.0,
) -> Float[Tensor, ""]:
    """Σ criterion(vocabulary_layer(rows), ids) over chunks of an even number of rows.

    For all else, see `sequence_loss`.
    """
    total: Tensor = _Chunked.apply(  # type: ignore[no-untyped-call]
        vocabulary_layer, criterion, scale, ids, rows, *parameters
    )
    return total


class _Chunked(torch.autograd.Function):
    """The sum of the chunks' losses, whose gradients are taken chunk by chunk on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        vocabulary_layer: Logits,
        criterion: Criterion,
        scale: float,
        ids: Tensor,
        chosen: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        losses: list[Tensor] = []
        of_features: list[Tensor] = []
        of_parameters: list[Tensor | None] = [None] * len(parameters)
        for part, part_ids in _chunks(chosen, ids):
            with torch.enable_grad():
                leaf = part.detach().requires_grad_()
                logits = vocabulary_layer(leaf)
            loss, of_logits = criterion(logits.detach(), part_ids)
            if scale != 1.0:
                of_logits.mul_(scale)
            gradient, *others = torch.autograd.grad(
                logits, [leaf, *parameters], of_logits.to(logits.dtype), allow_unused=True
            )
            losses.append(loss)
            of_features.append(gradient)
            of_parameters = [
                new if sum_ is None else sum_ if new is None else sum_ + new
                for sum_, new in zip(of_parameters, others, strict=True)
            ]
        ctx.scale = scale
        ctx.gradients = (torch.cat(of_features), *of_parameters)
        return torch.stack(losses).sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rest = grad / ctx.scale
        scaled = [None if g is None else g * rest.to(g.dtype) for g in ctx.gradients]
        return (None, None, None, None, *scaled)


def _chunks(chosen: Tensor, ids: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(torch.split(chosen, _AT_ONCE), torch.split(ids, _AT_ONCE), strict=True)
