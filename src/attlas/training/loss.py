"""The loss: cross-entropy over the tokens, without holding all logits."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attlas._hardware import is_capturable
from attlas.errors import UnsupportedError

# How many logits are held at a time: 16 MiB of float32 on a CPU, 256 MiB where there is more to do
# at once; and of so many rows at least, because every chunk adds a whole gradient of its layer.
_ON_CPU, _ELSEWHERE, _ROWS = 2**22, 2**26, 512

Logits = Callable[[Float[Tensor, "rows dim"]], Float[Tensor, "rows vocabulary"]]
Criterion = Callable[
    [Float[Tensor, "rows vocabulary"], Int[Tensor, " rows"]],
    tuple[Float[Tensor, ""], Float[Tensor, "rows vocabulary"]],
]
"""Of logits and wanted ids: the summed loss, and its gradient by the logits."""


def cross_entropy(
    logits: Float[Tensor, "tokens vocabulary"],
    target: Int[Tensor, " tokens"],
    smoothing: float = 0.0,
    weights: Float[Tensor, " vocabulary"] | None = None,
) -> Float[Tensor, ""]:
    """−Σ_t Σ_v w(v) q_t(v) log softmax(logits_t)(v), in nats, summed over the tokens.

    q_t = (1 − ε) on the wanted token + ε / |V| on every token Szegedy et al., 2016, section 7.

    In float32 at least: a sum over a batch has more digits than bfloat16.

    Args:
        weights: W of `nn.CrossEntropyLoss`, None = 1; its mean is over Σ_t w(wanted_t).
    """
    precise_logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(
        precise_logits, target, weight=weights, reduction="sum", label_smoothing=smoothing
    )


@torch.no_grad()
def cross_entropy_and_gradient(
    logits: Float[Tensor, "tokens vocabulary"],
    target: Int[Tensor, " tokens"],
    smoothing: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, "tokens vocabulary"]]:
    """The same sum and dL/dz = softmax(z) − q, in float32 at least, with half as many passes.

    The logits are the largest tensors of a training; what counts is how often they are gone over.
    """
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    p = torch.softmax(z, dim=-1)
    loss = expected_loss(z, log_partition(z, p), target, smoothing)
    return loss, subtract_target(p, target, smoothing)


_NO_TOKEN = -1  # in place of the id of padding


@torch.no_grad()
def padded_cross_entropy_and_gradient(
    logits: Float[Tensor, "positions vocabulary"],
    target: Int[Tensor, " positions"],
    smoothing: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, "positions vocabulary"]]:
    """`cross_entropy_and_gradient` where the target is no `_NO_TOKEN`, and 0 elsewhere."""
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    is_token = (target != _NO_TOKEN).unsqueeze(1)
    ids = target.clamp(min=0)
    p = torch.softmax(z, dim=-1)
    log_sum = log_partition(z, p)
    losses = log_sum - (1.0 - smoothing) * z.gather(-1, ids.unsqueeze(1))
    if smoothing:
        losses -= smoothing / z.shape[-1] * z.sum(-1, keepdim=True)
    loss = losses.masked_fill(~is_token, 0.0).sum()
    return loss, subtract_target(p, ids, smoothing).masked_fill_(~is_token, 0.0)


def log_partition(
    z: Float[Tensor, "*tokens vocabulary"], p: Float[Tensor, "*tokens vocabulary"]
) -> Float[Tensor, "*tokens 1"]:
    """log Σ_v exp z(v) = max z − log max p, where p = softmax(z) is known.

    p is needed anyway, and its maximum costs less than the `exp` of a `log_softmax`
    (docs/dev/log.md).
    """
    return z.amax(-1, keepdim=True) - p.amax(-1, keepdim=True).log()


def expected_loss(
    z: Float[Tensor, "*tokens vocabulary"],
    log_sum: Float[Tensor, "*tokens 1"],
    target: Int[Tensor, "*tokens"],
    smoothing: float,
) -> Float[Tensor, ""]:
    """−Σ_t Σ_v q_t(v) log p_t(v), with q of `cross_entropy` and log p = z − log_sum."""
    target_logit = z.gather(-1, target.unsqueeze(-1))
    loss = (1.0 - smoothing) * (log_sum - target_logit).sum()
    return loss + smoothing * (log_sum.sum() - z.sum() / z.shape[-1]) if smoothing else loss


def subtract_target(
    x: Float[Tensor, "*tokens vocabulary"],
    target: Int[Tensor, "*tokens"],
    smoothing: float,
    part: float = 1.0,
) -> Float[Tensor, "*tokens vocabulary"]:
    """x − part · q, in place, with q of `cross_entropy`."""
    target_column = target.unsqueeze(-1)
    if smoothing:
        x.sub_(part * smoothing / x.shape[-1])
    return x.scatter_add_(
        -1, target_column, x.new_full(target_column.shape, part * (smoothing - 1.0))
    )


def sequence_loss(
    vocabulary_layer: Logits,
    features: Float[Tensor, "batch queries dim"],
    target: Int[Tensor, "batch queries"],
    token_mask: Bool[Tensor, "batch queries"],
    smoothing: float,
    parameters: list[nn.Parameter],
    scale: float = 1.0,
) -> Float[Tensor, ""]:
    """Σ over the tokens of the cross-entropy: the value of `cross_entropy`, in less memory.

    Logits exist only for some tokens at a time: their gradient is taken in the forward pass, and
    only that of `features` and `parameters` (a list that includes those of the vocabulary layer) is
    kept. Both output and gradient are exact.

    Args:
        scale: The approximate factor of this loss's gradient. Gradients are computed at that scale,
            which keeps them out of the underflow of float16; the result does not depend on it.

    Within `capturable` padding is not left out, for then shapes would depend on the mask: it weighs
    0, and its features have to be finite.
    """
    criterion: Criterion = partial(cross_entropy_and_gradient, smoothing=smoothing)
    if is_capturable():
        hidden, ids = features.flatten(0, 1), target.masked_fill(~token_mask, _NO_TOKEN).flatten()
        criterion = partial(padded_cross_entropy_and_gradient, smoothing=smoothing)
    else:
        hidden, ids = features[token_mask], target[token_mask]
    if torch.is_grad_enabled():
        return chunked(vocabulary_layer, criterion, hidden, ids, parameters, scale)
    losses = [
        criterion(vocabulary_layer(part), part_ids)[0]
        if is_capturable()
        else cross_entropy(vocabulary_layer(part), part_ids, smoothing)
        for part, part_ids in _chunks(vocabulary_layer, hidden, ids)
    ]
    return torch.stack(losses).sum()


def chunked(
    vocabulary_layer: Logits,
    criterion: Criterion,
    rows: Float[Tensor, "rows dim"],
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
        ids: Int[Tensor, " rows"],
        rows: Float[Tensor, "rows dim"],
        *parameters: Tensor,
    ) -> Float[Tensor, ""]:
        losses: list[Tensor] = []
        row_gradients: list[Tensor] = []
        of_parameters: list[Tensor | None] = [None] * len(parameters)
        for index, (part, part_ids) in enumerate(_chunks(vocabulary_layer, rows, ids)):
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
            row_gradients.append(gradient)
            # In place once the sum is ours: autograd may give two parameters one gradient.
            add = Tensor.add_ if index > 1 else Tensor.add
            of_parameters = [
                new if sum_ is None else sum_ if new is None else add(sum_, new)
                for sum_, new in zip(of_parameters, others, strict=True)
            ]
        ctx.scale = scale
        ctx.gradients = (torch.cat(row_gradients), *of_parameters)
        return torch.stack(losses).sum()

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, ""]) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # by create_graph
            raise UnsupportedError(
                "a loss whose gradient is not differentiated again",
                "create_graph=True",
                "take `cross_entropy` of all logits, which holds them",
            )
        rest = grad / ctx.scale
        scaled = [None if g is None else g * rest.to(g.dtype) for g in ctx.gradients]
        return (None, None, None, None, *scaled)


def _chunks(
    vocabulary_layer: Logits, rows: Float[Tensor, "rows dim"], ids: Int[Tensor, " rows"]
) -> Iterator[tuple[Float[Tensor, "some dim"], Int[Tensor, " some"]]]:
    """An even number of rows at a time, see `_ROWS`."""
    with torch.enable_grad():  # or autocast may keep a copy of the weights that has no gradient
        vocabulary = vocabulary_layer(rows[:0]).shape[1]  # asked of no row: the layer alone knows
    max_rows = _ON_CPU if rows.device.type == "cpu" else _ELSEWHERE
    size = max(_ROWS, max_rows // vocabulary) // 2 * 2
    return zip(torch.split(rows, size), torch.split(ids, size), strict=True)


# R-Drop: two passes over one text with different dropout, which should agree.


_BLOCK = 2**19  # logits that a CPU goes over at a time, and several times: they fit a cache


def rdrop_cross_entropy(
    logits: Float[Tensor, "predictions 2 classes"],
    target: Int[Tensor, " predictions"],
    smoothing: float,
    alpha: float,
    weights: Float[Tensor, " classes"] | None = None,
) -> Float[Tensor, ""]:
    """½ (L_p + L_q) + α/4 Σ_t w(wanted_t) [KL(p_t ‖ q_t) + KL(q_t ‖ p_t)], in nats, summed.

    R-Drop, Liang et al., 2021, eq. 4, halved: it equals `cross_entropy` (L) if both readings p and
    q agree. In float32 at least. Its gradient flows through both readings.

    Args:
        weights: W of `cross_entropy`, None = 1.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    log_p, log_q = torch.log_softmax(logits, dim=-1, dtype=dtype).unbind(1)
    divergence = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)
    divergence = divergence if weights is None else divergence * weights[target]
    cross_entropy_loss = cross_entropy(
        logits.flatten(0, 1), target.repeat_interleave(2), smoothing, weights
    )
    return 0.5 * cross_entropy_loss + 0.25 * alpha * divergence.sum()


@torch.no_grad()
def rdrop_cross_entropy_and_gradient(
    logits: Float[Tensor, "predictions 2 classes"],
    target: Int[Tensor, " predictions"],
    smoothing: float,
    alpha: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, "predictions 2 classes"]]:
    """The same sum and its gradient, of one softmax; see `cross_entropy_and_gradient`.

    ∂/∂z_p = p ∘ (½ + α/4 + α/4 (d − Σ p d)) − α/4 q − ½ t  with d = log p − log q and the smoothed
    target t; for q with p and q exchanged, which turns d round.
    """
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    gradient = torch.empty_like(z)
    size = max(1, _BLOCK // (2 * z.shape[-1])) if z.device.type == "cpu" else max(1, len(z))
    rows, ids, gradients = (torch.split(tensor, size) for tensor in (z, target, gradient))
    losses = [
        _differentiated(*parts, smoothing=smoothing, alpha=alpha)
        for parts in zip(rows, ids, gradients, strict=True)
    ]
    return torch.stack(losses).sum(), gradient


def _differentiated(
    z: Float[Tensor, "some 2 classes"],
    target: Int[Tensor, " some"],
    gradient: Float[Tensor, "some 2 classes"],
    smoothing: float,
    alpha: float,
) -> Float[Tensor, ""]:
    """The sum over some predictions; their gradient is written into `gradient`."""
    targets, quarter = target.unsqueeze(1).expand(-1, 2), 0.25 * alpha
    probabilities = torch.softmax(z, dim=-1)
    log_sum = log_partition(z, probabilities)
    loss = 0.5 * expected_loss(z, log_sum, targets, smoothing)
    # d = log p − log q = (z_p − z_q) + further, which is a number for each prediction
    difference, further = z[:, 0] - z[:, 1], log_sum[:, 1] - log_sum[:, 0]
    p, q = probabilities.unbind(1)
    for gradient_part, own_p, other_p, turn in (
        (gradient[:, 0], p, q, quarter),
        (gradient[:, 1], q, p, -quarter),
    ):
        with torch.autocast(z.device.type, enabled=False):  # which would take 8 bits of it
            mean = torch.linalg.vecdot(own_p, difference).unsqueeze(1)  # Σ p d, but for `further`
        torch.add(0.5 + quarter - turn * mean, difference, alpha=turn, out=gradient_part)
        gradient_part.mul_(own_p).sub_(other_p, alpha=quarter)
        loss += turn * (mean + further).sum()  # α/4 KL(own ‖ other)
    subtract_target(gradient, targets, smoothing, 0.5)
    return loss


def rdrop_sequence_loss(
    vocabulary_layer: Logits,
    features: Float[Tensor, "two_batch queries dim"],
    target: Int[Tensor, "batch queries"],
    token_mask: Bool[Tensor, "batch queries"],
    smoothing: float,
    alpha: float,
    parameters: list[nn.Parameter],
    scale: float = 1.0,
) -> Float[Tensor, ""]:
    """The sum over the real positions of `rdrop_cross_entropy`, as `sequence_loss` sums.

    `features` are those of one reading of all rows, then those of the other.
    """

    def criterion(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        pairs = logits.view(-1, 2, logits.shape[1])
        loss, gradient = rdrop_cross_entropy_and_gradient(pairs, ids[::2], smoothing, alpha)
        return loss, gradient.flatten(0, 1)

    readings = features.view(2, *token_mask.shape, -1)[:, token_mask]
    paired = readings.transpose(0, 1).flatten(0, 1)  # so that no chunk comes between the two
    ids = target[token_mask].repeat_interleave(2)
    return chunked(vocabulary_layer, criterion, paired, ids, parameters, scale)
