"""An adversary: other weights, as different as can be, that lead to the same output."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.analysis.faithfulness.experiment import (
    AttentionRows,
    AttentionTarget,
    gradients_enabled,
    jensen_shannon,
    total_variation,
    weight_gradient,
)
from attlas.errors import AttlasError
from attlas.ops.attention import masked_softmax

_AT_MOST = 1 << 22  # weights; the search then needs some 200 MB
_BOUNDS = (0.01, 0.05, 0.2, 1.0)
_INSIDE = 0.995  # a step aims at this part of the bound, so that rounding stays inside
_ONWARDS, _AT_LAST, _BACK = 2.0, 0.05, 3.0  # the most that a step changes a logit
_GAIN = 8.0  # of a step of gradient ascent
_RETURNS = 3  # the last steps of a start only go back to the bound
_NOISE = 0.5  # of a linear objective, whose own coefficients are up to ln 2
_FLOOR = -12.0  # of a logit below the greatest of its row: a weight of 6e-6
_RIDGE = 1e-6
_HALVINGS = 12

_Weights = Float[Tensor, "batch rows keys"]
_Batch = Float[Tensor, " batch"]


@dataclass(frozen=True, slots=True)
class AdversarialWeights:
    """For each example the most different weights that were found, and their effect.

    Args:
        divergence: mean_r JSD(α_r, α̃_r) in nats, 0 … ln 2, over the rows of tokens
            (`AttentionRows`) that see two keys at least; rows of padding keep their weights.
        distance: Of the outputs in total variation, at most ε. Both are measured on `weights`.
            Where nothing was found, the weights are the model's own, at divergence 0.
        at_most: mean_r max_j JSD(α_r, e_j), where e_j has all weight on key j. No weights diverge
            more, whatever they do to the output. The optimum lies between `divergence` and
            `at_most`.
    """

    weights: Float[Tensor, "batch rows keys"]
    divergence: Float[Tensor, " batch"]
    distance: Float[Tensor, " batch"]
    at_most: Float[Tensor, " batch"]

    @property
    def gap(self) -> Float[Tensor, " batch"]:
        """at_most − divergence: the optimum is at most so much greater than what was found."""
        return self.at_most - self.divergence


def adversarial_weights(
    model: nn.Module,
    call: Callable[[], Tensor],
    target: AttentionTarget | None = None,
    *,
    seed: int,
    within: float = 0.01,
    starts: int = 30,
    steps: int = 42,
) -> AdversarialWeights:
    """argmax_α̃ mean_r JSD(α_r, α̃_r) such that ½ Σ_y |p(y | α) − p(y | α̃)| ≤ ε = within.

    Jain & Wallace, Attention is not Explanation, 2019, section 4.2.2: ε = 0.01 for texts and 0.05
    for questions. A large divergence says that a very different map would have led to the same
    answer. The result is a lower bound: a small value proves nothing. As in
    that paper, weights are sought for each text by itself, and the model stays as it is. Wiegreffe
    & Pinter, Attention is not not Explanation, 2019, section 4, object to that, and train a model
    that looks elsewhere and answers alike. That adversary is not implemented here.

    The divergence is convex, so its maximum is an extreme point of the weights that are allowed,
    and many weights are 0 there. The search tries every vertex of the simplex (the keys in order
    of their weight, all rows at once). Then it ascends from `starts` places. Every other start
    follows a random linear objective, because each extreme point of a convex set is the maximum of
    one. The others begin at vertices and near the model's own weights, and follow the divergence.

    The search goes through the bounds 0.01, 0.05, 0.2 and 1, up to the first that is not below ε,
    and each bound begins with what the tighter one found. These steps do not depend on ε, so that
    a looser ε finds no less than a tighter one. For each bound the call runs
    starts × (steps + 14) times, steps of them with a gradient, in eval mode. It returns the logits
    of each example, (batch, labels).

    Args:
        target: Which rows are changed, all at once; None = all of the model's only layer.

    Raises:
        AttlasError: For more than 4 million weights in the target; as of `AttentionRows` and
            `weight_gradient` too.
    """
    _check(within, starts, steps)
    rows = AttentionRows.of(model, call, target or AttentionTarget())
    if rows.weights.numel() > _AT_MOST:
        raise AttlasError(
            f"at most {_AT_MOST:,} weights to search among",
            f"{' × '.join(f'{size:,}' for size in rows.weights.shape)} of layer {rows.layer!r}",
            "choose heads and queries by AttentionTarget(…), or a shorter or smaller batch",
        )
    rows.gradients()  # where there are none, that is reported before the search
    return _Search(rows, within).run(torch.Generator().manual_seed(seed), starts, steps)


@dataclass(frozen=True, slots=True)
class _Found:
    """Distributions q over the keys of each row, how much they diverge, and what they move."""

    q: _Weights
    divergence: _Batch
    distance: _Batch

    def or_better(self, other: "_Found", bound: float) -> "_Found":
        """Of each example the more different weights that are within the bound."""
        wins = (other.distance <= bound) & (other.divergence > self.divergence)
        return _Found(
            torch.where(wins[:, None, None], other.q, self.q),
            torch.where(wins, other.divergence, self.divergence),
            torch.where(wins, other.distance, self.distance),
        )


class _Search:
    """Tries weights, and keeps the best within ε (`best`) and within the bound at hand (`near`).

    Rows are distributions q here. Weights are q times what the row sums to: 1, but beside a sink.
    """

    def __init__(self, rows: AttentionRows, within: float) -> None:
        self.rows, self.within = rows, within
        total = rows.weights.sum(-1, keepdim=True)
        self.own = rows.weights / torch.where(total > 0, total, 1.0)
        self.counted = rows.query_mask & (rows.allowed.sum(-1) > 1) & (total[..., 0] > 0)
        self.count = self.counted.sum(-1).clamp(min=1)
        self.num_keys = rows.allowed.sum(-1, keepdim=True).clamp(min=1)
        self.order = self.own.masked_fill(~rows.allowed, torch.inf).argsort(dim=-1, stable=True)
        with torch.no_grad():
            self.best = self.near = self.measured(self.own)

    def run(self, generator: torch.Generator, starts: int, steps: int) -> AdversarialWeights:
        bounds = _BOUNDS[: 1 + sum(bound < self.within for bound in _BOUNDS)]
        for bound in bounds:
            with torch.no_grad():
                for number in range(int(self.num_keys.max())):
                    self.keep(self.measured(self.vertex(number)), bound)
            for start in range(starts):
                logits, objective = self.start(start, generator)
                self.climb(logits, objective, bound, steps)
        best = self.best
        max_divergence = self.mean(
            _vertices(self.own).masked_fill(~self.rows.allowed, 0.0).amax(-1)
        )
        max_divergence = torch.maximum(
            max_divergence, best.divergence
        )  # equal at a vertex, but for rounding
        return AdversarialWeights(
            self.weights_of(best.q), best.divergence, best.distance, max_divergence
        )

    def start(self, number: int, generator: torch.Generator) -> tuple[_Weights, _Weights | None]:
        """The logits to begin with, and the coefficients of a linear objective.

        None: the objective is the divergence.
        """
        noise = torch.randn(self.own.shape, generator=generator).to(self.own)
        if number % 2 == 0:
            # JSD(α, q) ≤ Σ_j q_j JSD(α, e_j), as it is convex, with equality at the vertices.
            return torch.zeros_like(noise), _vertices(self.own) + _NOISE * noise * (number > 0)
        if number == 1:
            return self.near.q.clamp(min=1e-4).log() + noise / 10, None
        if number // 2 <= int(self.num_keys.max()):
            # 95 % of the weight, however many keys there are to see.
            return self.vertex(number // 2 - 1) * (3.0 + self.num_keys.to(noise).log()), None
        return self.own.clamp(min=1e-4).log() + noise, None

    def vertex(self, number: int) -> _Weights:
        """All weight of each row on the key that has the least of its own but for so many."""
        key = self.order.gather(-1, (self.num_keys - 1).clamp(max=number))
        return torch.zeros_like(self.own).scatter(-1, key, 1.0) * self.rows.allowed

    def climb(self, logits: _Weights, objective: _Weights | None, bound: float, steps: int) -> None:
        """Ascend along the bound, and go on from α through where it ended, as far as ε allows."""
        last: _Weights | None = None
        for step in range(steps):
            size = _ONWARDS * (_AT_LAST / _ONWARDS) ** (step / steps)
            if step > 0 and step >= steps - _RETURNS:
                size = 0.0
            weights, move, last = self.step(logits, objective, last, bound, size)
            self.keep(weights, bound)
            logits = logits + move
            top = logits.masked_fill(~self.rows.allowed, -torch.inf).amax(-1, keepdim=True)
            logits = (logits - torch.where(top.isfinite(), top, 0.0)).clamp(min=_FLOOR)
        with torch.no_grad():
            target = self.measured(masked_softmax(logits, self.rows.allowed))
            self.keep(target, bound)
            self.extend(target)

    def step(
        self,
        logits: _Weights,
        objective: _Weights | None,
        last: _Weights | None,
        bound: float,
        size: float,
    ) -> tuple[_Found, _Weights, _Weights]:
        """What these logits do, the step from them, and the slope of the distance.

        A step x of the logits moves q by C x, C = diag(q) − q qᵀ in each row. With the slopes c of
        the objective and f of the distance, both with respect to q, the step is
            x = c − Fᵀ λ + f (ε − distance) / (fᵀ C f),   λ = (F C Fᵀ)⁻¹ F C c.
        The first part goes up and keeps the distance, the second one goes to the bound. F has f of
        this step and of the last one, because the distance has kinks, between which f alone would
        go to and fro. Where the step c stays within the bound, it is c.
        """
        with gradients_enabled():
            q = masked_softmax(logits, self.rows.allowed).detach().requires_grad_()
            weights = self.measured(q)
            f = weight_gradient(weights.distance.sum(), q)
            c = weight_gradient(weights.divergence.sum(), q) * self.count[:, None, None]
        weights = _Found(q.detach(), weights.divergence.detach(), weights.distance.detach())
        q, free = weights.q, self.counted[..., None] & self.rows.allowed
        c = (c if objective is None else objective).masked_fill(~free, 0.0)
        f = f.masked_fill(~free, 0.0)

        def centred(x: Tensor) -> Tensor:
            """x less its mean under q, which changes nothing: C x = q (x − qᵀ x)."""
            return x - (q[:, None] * x).sum(-1, keepdim=True)

        slopes = torch.stack([f] if last is None else [f, last], 1)
        centred_slopes = (q[:, None] * centred(slopes)).flatten(2)
        gram = centred_slopes @ slopes.flatten(2).mT
        least = torch.finfo(gram.dtype).tiny
        steep = gram.diagonal(dim1=1, dim2=2)
        gram = gram + torch.diag_embed(_RIDGE * steep + least**0.5)
        # Two slopes may be one in float32; then nothing is held in this step.
        pull = torch.linalg.solve_ex(gram, centred_slopes @ c.flatten(1)[..., None])[0]
        pull = pull.nan_to_num(0.0, 0.0, 0.0)
        onwards = c - (slopes.flatten(2).mT @ pull).view_as(c)
        distance_left = _INSIDE * bound - weights.distance
        scaled = f * (distance_left / steep[:, 0].clamp(min=least**0.5))[:, None, None]

        def at_most(x: _Weights, maximum: float) -> _Weights:
            x = centred(x[:, None])[:, 0].masked_fill(~free, 0.0)
            return (
                x
                * (maximum / x.abs().flatten(1).amax(-1).clamp(min=maximum + least))[:, None, None]
            )

        step_size = at_most(_GAIN * c, size)
        output_change = (
            (f * (masked_softmax(logits + step_size, self.rows.allowed) - q)).flatten(1).sum(-1)
        )
        move = at_most(_GAIN * onwards, size) + at_most(scaled, _BACK)
        return (
            weights,
            torch.where((output_change <= distance_left)[:, None, None], step_size, move),
            f,
        )

    def extend(self, target: _Found) -> None:
        """α + t (α̃ − α) with the greatest t within ε that bisection finds, up to the edge of the
        simplex.

        The divergence grows with t, because it is convex and 0 at t = 0. Bisection for a looser ε
        ends at no smaller t: at the first point that only the looser one allows, it continues
        above.
        """
        decrease = self.own - target.q
        least = torch.finfo(decrease.dtype).eps
        max_step = torch.where(decrease > least, self.own / decrease.clamp(min=least), torch.inf)
        max_step = max_step.flatten(1).amin(-1).clamp(min=1.0, max=1e6)

        def reached(share: _Batch) -> Bool[Tensor, " batch"]:
            q = (self.own + share[:, None, None] * -decrease).clamp(min=0.0)
            total = q.sum(-1, keepdim=True)
            weights = self.measured(q / torch.where(total > 0, total, 1.0))
            self.best = self.best.or_better(weights, self.within)
            return weights.distance <= self.within

        fits = target.distance <= self.within
        low = torch.where(reached(max_step), max_step, fits.to(max_step))
        high = torch.where(fits, max_step, 1.0)
        for _ in range(_HALVINGS):
            share = (low + high) / 2
            good = reached(share)
            low, high = torch.where(good, share, low), torch.where(good, high, share)

    def keep(self, weights: _Found, bound: float) -> None:
        """Keep what is better."""
        self.near = self.near.or_better(weights, bound)
        self.best = self.best.or_better(weights, self.within)

    def measured(self, q: _Weights) -> _Found:
        """What these weights do."""
        output = self.rows.output_of(self.weights_of(q))
        distance = jensen_shannon(self.own, torch.where(self.counted[..., None], q, self.own))
        # Logits may be more precise than the weights are.
        moved = total_variation(self.rows.output, output).to(q.dtype)
        return _Found(q, self.mean(distance), moved)

    def mean(self, of_rows: Float[Tensor, "batch rows"]) -> _Batch:
        """Over the rows of tokens that have a choice."""
        return of_rows.masked_fill(~self.counted, 0.0).sum(-1) / self.count

    def weights_of(self, q: _Weights) -> _Weights:
        """Rows without a choice keep their own, and those of padding, which are not read."""
        scaled = q * self.rows.weights.sum(-1, keepdim=True)
        return torch.where(self.counted[..., None], scaled, self.rows.weights)


def _vertices(weights: _Weights) -> _Weights:
    """JSD(α, e_j) = ½ [(1 − α_j) ln 2 + α_j ln(2 α_j / (1 + α_j)) + ln(2 / (1 + α_j))]."""
    distance = (1 - weights) * math.log(2) + torch.xlogy(weights, 2 * weights / (1 + weights))
    return (distance + (2 / (1 + weights)).log()) / 2


def _check(within: float, starts: int, steps: int) -> None:
    if not 0.0 <= within <= 1.0:
        raise AttlasError("an ε from 0 to 1", f"within={within}", "use e.g. 0.01")
    if starts < 1 or steps < 1:
        raise AttlasError(
            "at least one start and one step", f"{starts} and {steps}", "use e.g. 30 and 42"
        )
