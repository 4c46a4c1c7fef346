"""Two readings of one text under different dropout, which are to predict the same."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attlas.training.loss import Logits, chunked, cross_entropy, cross_entropy_and_gradient


def consistent_cross_entropy(
    logits: Float[Tensor, "predictions 2 classes"],
    wanted: Int[Tensor, " predictions"],
    smoothing: float,
    alpha: float,
) -> Float[Tensor, ""]:
    """½ (L_p + L_q) + α/4 Σ_t [KL(p_t ‖ q_t) + KL(q_t ‖ p_t)], in nats, summed.

    R-Drop, Liang et al., 2021, eq. 4, halved, so that it is a `cross_entropy` (L) where both
    readings p and q agree, and in float32 at least. Its gradient flows through both.
    """
    precise = torch.promote_types(logits.dtype, torch.float32)
    log_p, log_q = torch.log_softmax(logits, dim=-1, dtype=precise).unbind(1)
    apart = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum()
    both = cross_entropy(logits.flatten(0, 1), wanted.repeat_interleave(2), smoothing)
    return 0.5 * both + 0.25 * alpha * apart


@torch.no_grad()
def consistent_cross_entropy_and_gradient(
    logits: Float[Tensor, "predictions 2 classes"],
    wanted: Int[Tensor, " predictions"],
    smoothing: float,
    alpha: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, "predictions 2 classes"]]:
    """The same sum, and its gradient.

    ∂/∂z_p = ½ ∂L_p/∂z_p + α/4 [p ∘ (d − Σ p d) + p − q] with d = log p − log q, and likewise for q.
    """
    both, gradient = cross_entropy_and_gradient(
        logits.flatten(0, 1), wanted.repeat_interleave(2), smoothing
    )
    log = torch.log_softmax(logits, dim=-1, dtype=gradient.dtype)
    apart = log[:, 0] - log[:, 1]  # d; what is −d for q
    p, q = log.exp_().unbind(1)
    p_to_q, q_to_p = (torch.linalg.vecdot(one, apart).unsqueeze(1) for one in (p, q))
    gradient = gradient.mul_(0.5).view_as(logits)
    quarter = 0.25 * alpha
    difference = p - q
    gradient[:, 0].add_((apart - p_to_q).mul_(p).add_(difference), alpha=quarter)
    gradient[:, 1].sub_((apart - q_to_p).mul_(q).add_(difference), alpha=quarter)
    return 0.5 * both + quarter * (p_to_q - q_to_p).sum(), gradient


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
