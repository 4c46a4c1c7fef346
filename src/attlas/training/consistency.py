"""Two readings of one text under different dropout, which are to predict the same."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attlas.training.loss import (
    Logits,
    chunked,
    cross_entropy,
    expected,
    less_target,
    log_partition,
)

_BLOCK = 2**19  # logits that a CPU goes over at a time, and several times: they fit a cache


def consistent_cross_entropy(
    logits: Float[Tensor, "predictions 2 classes"],
    wanted: Int[Tensor, " predictions"],
    smoothing: float,
    alpha: float,
    weights: Float[Tensor, " classes"] | None = None,
) -> Float[Tensor, ""]:
    """½ (L_p + L_q) + α/4 Σ_t w(wanted_t) [KL(p_t ‖ q_t) + KL(q_t ‖ p_t)], in nats, summed.

    weights: w of `cross_entropy`, None = 1. R-Drop, Liang et al., 2021, eq. 4, halved, so that it
    is a `cross_entropy` (L) where both readings p and q agree, and in float32 at least. Its
    gradient flows through both.
    """
    precise = torch.promote_types(logits.dtype, torch.float32)
    log_p, log_q = torch.log_softmax(logits, dim=-1, dtype=precise).unbind(1)
    apart = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)
    apart = apart if weights is None else apart * weights[wanted]
    both = cross_entropy(logits.flatten(0, 1), wanted.repeat_interleave(2), smoothing, weights)
    return 0.5 * both + 0.25 * alpha * apart.sum()


@torch.no_grad()
def consistent_cross_entropy_and_gradient(
    logits: Float[Tensor, "predictions 2 classes"],
    wanted: Int[Tensor, " predictions"],
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
    rows, ids, found = (torch.split(of, size) for of in (z, wanted, gradient))
    losses = [
        _differentiated(*some, smoothing=smoothing, alpha=alpha)
        for some in zip(rows, ids, found, strict=True)
    ]
    return torch.stack(losses).sum(), gradient


def _differentiated(
    z: Float[Tensor, "some 2 classes"],
    wanted: Int[Tensor, " some"],
    gradient: Float[Tensor, "some 2 classes"],
    smoothing: float,
    alpha: float,
) -> Float[Tensor, ""]:
    """The sum over some predictions; their gradient is written into `gradient`."""
    both, quarter = wanted.unsqueeze(1).expand(-1, 2), 0.25 * alpha
    probabilities = torch.softmax(z, dim=-1)
    log_sum = log_partition(z, probabilities)
    loss = 0.5 * expected(z, log_sum, both, smoothing)
    # d = log p − log q = (z_p − z_q) + further, which is a number for each prediction
    apart, further = z[:, 0] - z[:, 1], log_sum[:, 1] - log_sum[:, 0]
    p, q = probabilities.unbind(1)
    for found, own, other, turn in (
        (gradient[:, 0], p, q, quarter),
        (gradient[:, 1], q, p, -quarter),
    ):
        with torch.autocast(z.device.type, enabled=False):  # which would take 8 bits of it
            mean = torch.linalg.vecdot(own, apart).unsqueeze(1)  # Σ p d, but for `further`
        torch.add(0.5 + quarter - turn * mean, apart, alpha=turn, out=found)
        found.mul_(own).sub_(other, alpha=quarter)
        loss += turn * (mean + further).sum()  # α/4 KL(own ‖ other)
    less_target(gradient, both, smoothing, 0.5)
    return loss


def consistent_sequence_loss(
    vocabulary_layer: Logits,
    features: Float[Tensor, "two_batch queries width"],
    wanted: Int[Tensor, "batch queries"],
    real: Bool[Tensor, "batch queries"],
    smoothing: float,
    alpha: float,
    parameters: list[nn.Parameter],
    scale: float = 1.0,
) -> Float[Tensor, ""]:
    """The sum over the real positions of `consistent_cross_entropy`, as `sequence_loss` sums.

    `features` are those of one reading of all rows, then those of the other.
    """

    def criterion(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        pairs = logits.view(-1, 2, logits.shape[1])
        loss, gradient = consistent_cross_entropy_and_gradient(pairs, ids[::2], smoothing, alpha)
        return loss, gradient.flatten(0, 1)

    readings = features.view(2, *real.shape, -1)[:, real]
    beside = readings.transpose(0, 1).flatten(0, 1)  # so that no chunk comes between the two
    ids = wanted[real].repeat_interleave(2)
    return chunked(vocabulary_layer, criterion, beside, ids, parameters, scale)
