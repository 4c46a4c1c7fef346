"""An adversary: other weights, as different as can be, that lead to the same output."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.analysis.explanation.experiment import differentiable
from attlas.analysis.explanation.focus import Focus
from attlas.analysis.explanation.output import jensen_shannon, total_variation
from attlas.analysis.explanation.rows import Rows, slope
from attlas.errors import AttlasError
from attlas.layers.dense import masked_softmax

_AT_MOST = 1 << 22  # weights: with what the search keeps of each, some 150 MB
_PENALTIES = (20.0, 5.0)  # of what is beyond ε, in turn: a strict one keeps near, a mild one roams
_RATE, _FIRST, _SECOND = 0.2, 0.9, 0.99  # of Adam: the step, and how long its means remember
_HALVINGS = 12

_Weights = Float[Tensor, "batch rows slots"]


@dataclass(frozen=True, slots=True)
class Adversary:
    """The most different weights found of each example, and what they do.

    divergence: mean_r JSD(α_r, α̃_r) in nats, 0 … ln 2, over the rows of tokens (`Rows`) that see
    two slots at least; rows of padding keep their weights. distance: of the outputs in total
    variation, at most ε. Both are measured on `weights`. Where nothing was found, the weights are
    the model's own, at divergence 0.
    """

    weights: Float[Tensor, "batch rows slots"]
    divergence: Float[Tensor, " batch"]
    distance: Float[Tensor, " batch"]


def adversary(
    model: nn.Module,
    call: Callable[[], Tensor],
    focus: Focus | None = None,
    *,
    seed: int,
    within: float = 0.01,
    starts: int = 4,
    steps: int = 200,
) -> Adversary:
    """argmax_α̃ mean_r JSD(α_r, α̃_r)  such that  ½ Σ_y |p(y | α) − p(y | α̃)| ≤ ε = within.

    Jain & Wallace, Attention is not Explanation, 2019, section 4.2.2: ε = 0.01 for texts and 0.05
    for questions. A large divergence says that a map which looks quite otherwise would have led to
    the same answer. What is found is a lower bound: that nothing was found proves nothing. As in
    that paper, weights are sought for each text by itself, and the model stays as it is. Wiegreffe
    & Pinter, Attention is not not Explanation, 2019, section 4, object to that, and train a model
    to look elsewhere and to answer alike: their adversary is not here.

    Sought by Adam on the logits of α̃, from `starts` places: first the slots of least weight, where
    the divergence is greatest, then random ones. What is beyond ε costs the objective; at last each
    place draws back towards α until it is within ε. The call runs starts × (steps + 14) + 5
    times, in eval mode. It returns the logits of each example, (batch, labels).

    focus: which rows are changed, all at once; None = all of the model's only layer.
    Errors: `AttlasError` for more than 4 million weights in focus; as of `Rows` and `slope` too.
    """
    _check(within, starts, steps)
    rows = Rows.of(model, call, focus or Focus())
    if rows.weights.numel() > _AT_MOST:
        raise AttlasError(
            f"at most {_AT_MOST:,} weights to search among",
            f"{' × '.join(f'{size:,}' for size in rows.weights.shape)} of layer {rows.layer!r}",
            "choose heads and queries by Focus(…), or a shorter or smaller batch",
        )
    rows.gradients()  # where there are none, that is told before the search
    with torch.no_grad():
        best = _measured(rows, rows.weights)
    for number, logits in enumerate(_starts(rows, starts, seed)):
        penalty = _PENALTIES[number % len(_PENALTIES)]
        for found in _ascent(rows, logits, within, steps, penalty):
            best = _better(best, found, within)
    return best


def _starts(rows: Rows, starts: int, seed: int) -> Iterator[_Weights]:
    """The logits of the weights to start with."""
    # 95 % of the weight, however many slots there are to see.
    sharp = 3.0 + rows.seen.sum(-1, keepdim=True).clamp(min=1).to(rows.weights).log()
    least = rows.weights.masked_fill(~rows.seen, torch.inf).argmin(-1, keepdim=True)
    yield torch.zeros_like(rows.weights).scatter(-1, least, sharp)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(starts - 1):
        yield torch.randn(rows.weights.shape, generator=generator).to(rows.weights)


def _ascent(
    rows: Rows, logits: _Weights, within: float, steps: int, penalty: float
) -> Iterator[Adversary]:
    """What is found on the way up; the last one has drawn back."""
    with differentiable():
        logits = logits.clone().requires_grad_()
        mean, square = torch.zeros_like(logits), torch.zeros_like(logits)
        for step in range(1, steps + 1):
            found = _measured(rows, _weights_of(rows, logits))
            beyond = (found.distance - within).clamp(min=0.0)
            down = slope((penalty * beyond - found.divergence).sum(), logits)
            yield _detached(found)
            # Kingma & Ba, 2015, algorithm 1; torch's own Adam would load its compiler.
            mean, square = mean.lerp(down, 1 - _FIRST), square.lerp(down**2, 1 - _SECOND)
            size = (square / (1 - _SECOND**step)).sqrt() + 1e-8
            with torch.no_grad():
                logits -= _RATE * mean / (1 - _FIRST**step) / size
        target = _weights_of(rows, logits).detach()
    yield _drawn_back(rows, target, within)


def _weights_of(rows: Rows, logits: _Weights) -> _Weights:
    """softmax over the slots that are seen, times what the row sums to: 1, but beside a sink.

    Rows of padding keep their own: nobody reads them, so they are free, and say nothing.
    """
    changed = masked_softmax(logits, rows.seen) * rows.weights.sum(-1, keepdim=True)
    return torch.where(rows.asked[..., None], changed, rows.weights)


def _drawn_back(rows: Rows, target: _Weights, within: float) -> Adversary:
    """α + t (α̃ − α) with the greatest t ≤ 1 within ε that halving finds.

    The divergence grows with t, because it is convex and 0 at t = 0.
    """
    with torch.no_grad():

        def fits(share: Float[Tensor, " batch"]) -> Bool[Tensor, " batch"]:
            changed = _between(rows.weights, target, share)
            return total_variation(rows.output, rows.output_of(changed)) <= within

        high = torch.ones_like(rows.output[:, 0])
        low = torch.where(fits(high), high, 0.0)
        for _ in range(_HALVINGS):
            share = (low + high) / 2
            good = fits(share)
            low, high = torch.where(good, share, low), torch.where(good, high, share)
        return _measured(rows, _between(rows.weights, target, low))


def _between(own: _Weights, target: _Weights, share: Float[Tensor, " batch"]) -> _Weights:
    return own + share[:, None, None] * (target - own)


def _measured(rows: Rows, weights: _Weights) -> Adversary:
    """What these weights do."""
    some = rows.asked & (rows.seen.sum(-1) > 1) & (rows.weights.sum(-1) > 0)
    apart = jensen_shannon(_normal(rows.weights), _normal(weights)).masked_fill(~some, 0.0)
    return Adversary(
        weights,
        apart.sum(-1) / some.sum(-1).clamp(min=1),
        total_variation(rows.output, rows.output_of(weights)),
    )


def _normal(weights: _Weights) -> _Weights:
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0)


def _better(best: Adversary, found: Adversary, within: float) -> Adversary:
    """Of each example the more different weights that are within ε."""
    wins = (found.distance <= within) & (found.divergence > best.divergence)
    return Adversary(
        torch.where(wins[:, None, None], found.weights, best.weights),
        torch.where(wins, found.divergence, best.divergence),
        torch.where(wins, found.distance, best.distance),
    )


def _detached(found: Adversary) -> Adversary:
    return Adversary(found.weights.detach(), found.divergence.detach(), found.distance.detach())


def _check(within: float, starts: int, steps: int) -> None:
    if not 0.0 <= within <= 1.0:
        raise AttlasError("an ε from 0 to 1", f"within={within}", "use e.g. 0.01")
    if starts < 1 or steps < 1:
        raise AttlasError(
            "at least one start and one step", f"{starts} and {steps}", "use e.g. 4 and 200"
        )
