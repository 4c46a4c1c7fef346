"""What a model puts out: distributions over labels, and how far two of them are apart."""

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.analysis.explanation.experiment import Experiment
from attlas.errors import AttlasError
from attlas.recording.tap import Rewrite

_STEADY = 1e-3  # in total variation; far more than rounding makes, far less than dropout


def distribution(logits: object) -> Float[Tensor, "*examples labels"]:
    """softmax(logits), in float32 at least. A model that puts out p itself has the logits log p.

    Errors: `AttlasError` for what are no such numbers of two labels at least.
    """
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or logits.ndim == 0:
        raise AttlasError(
            "a call that returns logits, a tensor of shape (batch, labels)",
            f"{logits.dtype} of shape {tuple(logits.shape)}"
            if isinstance(logits, Tensor)
            else f"a {type(logits).__name__}",
            "return the logits alone, such as lambda: model(**batch).logits",
        )
    if logits.shape[-1] < 2:
        raise AttlasError(
            "logits of at least two labels",
            f"shape {tuple(logits.shape)}",
            "of a single logit z that is meant for a sigmoid, return "
            "torch.cat([torch.zeros_like(z), z], -1)",
        )
    found = torch.softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))
    if bool(found.isnan().any()):
        raise AttlasError(
            "logits that are numbers", "NaN or infinity from the model", "check model and batch"
        )
    return found


def output_under(experiment: Experiment[Tensor], change: Rewrite) -> Float[Tensor, "..."]:
    """The output distribution with other weights."""
    return distribution(experiment.under(change))


def plain_output(experiment: Experiment[Tensor]) -> Float[Tensor, "..."]:
    """The output distribution with the weights of the model.

    Errors: `AttlasError` where a second run gives another one: what other weights do could not be
    told from that.
    """
    first, second = (distribution(experiment.plain()) for _ in range(2))
    if first.shape != second.shape or bool((total_variation(first, second) > _STEADY).any()):
        raise AttlasError(
            "a call that gives the same output each time",
            "two outputs of one call that differ",
            "put every part that drops out or samples into eval mode, and keep to one batch",
        )
    return first


def total_variation(
    first: Float[Tensor, "*examples labels"], second: Float[Tensor, "..."]
) -> Float[Tensor, "*examples"]:
    """½ Σ_y |p(y) − q(y)|, from 0 (equal) to 1    Jain & Wallace, 2019, section 4.

    Errors: `AttlasError` where they have not one shape.
    """
    _check(first, second)
    return (first - second).abs().sum(-1) / 2


def jensen_shannon(
    first: Float[Tensor, "*examples labels"], second: Float[Tensor, "..."]
) -> Float[Tensor, "*examples"]:
    """½ KL(p ‖ m) + ½ KL(q ‖ m), m = (p + q) / 2, in nats: from 0 (equal) to ln 2 (disjoint).

    Lin, Divergence Measures Based on the Shannon Entropy, 1991. Its gradient is finite where a
    probability is 0. Errors: `AttlasError` where they have not one shape.
    """
    _check(first, second)
    middle = (first + second) / 2
    found = (_divergence(first, middle) + _divergence(second, middle)) / 2
    # Rounding may have gone a little below 0; the gradient stays that of the sum.
    return found + (found.clamp(min=0) - found).detach()


def _divergence(
    first: Float[Tensor, "*examples labels"], middle: Float[Tensor, "*examples labels"]
) -> Float[Tensor, "*examples"]:
    """KL(p ‖ m) = Σ p log(p / m), 0 log 0 = 0."""
    least = torch.finfo(first.dtype).tiny
    return (first * (first.clamp(min=least) / middle.clamp(min=least)).log()).sum(-1)


def _check(first: Tensor, second: Tensor) -> None:
    if first.shape != second.shape:
        raise AttlasError(
            f"two distributions of one shape, {tuple(first.shape)}",
            f"shape {tuple(second.shape)}",
            "let the call run the model on the same batch each time, without a search",
        )
