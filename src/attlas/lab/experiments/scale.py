"""Why scores are divided by √d."""

from collections.abc import Iterator

import torch

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot, Published
from attlas.lab.sources import chapter_17, lesson
from attlas.lab.verdict import (
    ONE_TEST,
    Alike,
    All,
    AtLeast,
    AtMost,
    Exponent,
    InRange,
    Monotone,
    Ratio,
)

VARIANCE, DEVIATION = "variance of the score", "standard deviation of the score"
GREATEST = "mean largest weight"
ENTROPY, GRADIENT = "normalized entropy", "norm of the gradient of the scores, read off the query"


def measure_scores(context: Context) -> Iterator[Measurement]:
    """Scores of random queries and keys, N(0, 1), with and without the factor 1/√d."""
    keys, queries = context.settings["keys"], context.settings["queries"]
    for dim in context.settings["dims"]:
        generator = torch.Generator().manual_seed(context.seed)
        query = torch.randn(queries, dim, generator=generator, dtype=torch.float64)
        key = torch.randn(keys, dim, generator=generator, dtype=torch.float64)
        value = torch.randn(keys, dim, generator=generator, dtype=torch.float64)
        # Each query has keys of its own here, so that the scores are independent.
        pairs = torch.randn(2, queries * keys, dim, generator=generator, dtype=torch.float64)
        scores = pairs.prod(0).sum(-1)
        yield Measurement(VARIANCE, scores.var().item(), {"dim": dim})
        yield Measurement(DEVIATION, scores.std().item(), {"dim": dim})
        for name, factor in (("1", 1.0), ("1/√d", dim**-0.5)):
            leaf = query.clone().requires_grad_()
            weights = (factor * (leaf @ key.T)).softmax(-1)
            condition = {"factor": name, "dim": dim}
            entropy = -(weights * weights.clamp_min(1e-300).log()).sum(-1).mean()
            direction = torch.randn(queries, dim, generator=generator, dtype=torch.float64)
            (gradient,) = torch.autograd.grad((weights @ value * direction).sum(), leaf)
            yield Measurement(GREATEST, weights.amax(-1).mean().item(), condition)
            yield Measurement(
                ENTROPY, entropy.item() / torch.tensor(float(keys)).log().item(), condition
            )
            # The median: a few queries with two keys of almost the same score have it all.
            norm = (gradient.norm(dim=-1) / factor / dim).median()
            yield Measurement(GRADIENT, norm.item(), condition)


DIMS = (4, 16, 64, 256, 512, 1024)
EXPERIMENTS = (
    Experiment(
        name="scale",
        title="Why scores are divided by √d",
        method="Queries and keys are drawn from N(0, 1). The scores of independent pairs give the "
        "variance. Each query then attends to 64 keys, with and without the factor 1/√d. The "
        "gradient is that of a random linear function of the output with respect to the scores, "
        "read off the query and divided by the factor and by d.",
        measure=measure_scores,
        settings={
            "quick": {"dims": DIMS, "keys": 64, "queries": 256},
            "full": {"dims": DIMS, "keys": 64, "queries": 1024},
        },
        seeds={"quick": 5, "full": 10},
        claims=(
            Claim(
                "The variance of a dot product of d random components is d.",
                chapter_17("2.1"),
                All(
                    Exponent(VARIANCE, "dim", 0.97, 1.03),
                    *(InRange(VARIANCE, 0.9 * d, 1.1 * d, {"dim": d}) for d in DIMS),
                ),
                "An exponent outside 0.97 to 1.03, or a variance that is 10 % off.",
                revised=ONE_TEST,
            ),
            Claim(
                "At d = 512 scores have a standard deviation of about 22.",
                chapter_17("2.1"),
                InRange(DEVIATION, 21.5, 23.5, {"dim": 512}),
                "A deviation that is not 22 or 23 when it is rounded.",
                (Published("standard deviation, rounded down", 22.0, chapter_17("2.1")),),
                revised=ONE_TEST,
            ),
            Claim(
                "Without the factor the softmax saturates as d grows.",
                lesson("Self-attention: the big conceptual leap"),
                All(
                    Monotone(GREATEST, "dim", rising=True, where={"factor": "1"}),
                    AtLeast(GREATEST, 0.9, {"factor": "1", "dim": 1024}),
                ),
                "A largest weight that stays below 0.9 at d = 1,024.",
            ),
            Claim(
                "With the factor the sharpness does not depend on d.",
                chapter_17("2.1"),
                All(
                    AtMost(GREATEST, 0.2, {"factor": "1/√d", "dim": 1024}),
                    Alike(
                        ENTROPY,
                        {"factor": "1/√d", "dim": 1024},
                        {"factor": "1/√d", "dim": 16},
                        0.05,
                    ),
                ),
                "An entropy at d = 1,024 that is 0.05 lower or higher than at d = 16.",
                revised="it asked only that the entropy is not 0.05 lower at d = 1,024. So any "
                "rise would have counted as holding. The bound is the same on both sides now.",
            ),
            Claim(
                "Without the factor the gradient vanishes.",
                chapter_17("2.1"),
                Ratio(
                    GRADIENT,
                    {"factor": "1/√d", "dim": 1024},
                    {"factor": "1", "dim": 1024},
                    10.0,
                ),
                "Gradients of the scores that are less than ten times as large with the factor.",
            ),
        ),
        plots=(
            Plot(GREATEST, "dim", "factor", logarithmic=True),
            Plot(GRADIENT, "dim", "factor", logarithmic=True),
        ),
    ),
)
