"""Pre-norm and post-norm at depths from 2 to 24."""

import math
from collections.abc import Iterator

from attlas.lab.experiment import (
    Claim,
    Condition,
    Context,
    Experiment,
    Measurement,
    Plot,
    Published,
    Source,
)
from attlas.lab.experiments.qk_norm import losses_of
from attlas.lab.sources import chapter_17
from attlas.lab.trainings import toy_settings, trained
from attlas.lab.verdict import All, AtLeast, Difference, Provided, Rule, Widens

LEARNT = "1 − loss at the end over the loss of a guess"
DEPTHS = (2, 6, 12, 24)
SYMBOLS = 16


def measure_norm_depth(context: Context) -> Iterator[Measurement]:
    """Narrow Transformers of each depth with each norm, for as many updates."""
    s = context.settings
    plan = [(depth, s["warmup"]) for depth in s["depths"]] + [(s["without"], 0)]
    for depth, warmup in plan:
        for norm in ("pre", "post"):
            settings = [
                *toy_settings("copy", (s["length"], s["length"]), s["updates"], warmup=warmup),
                *s["recipe"],
                f"model.encoder_layers={depth}",
                f"model.decoder_layers={depth}",
                f"model.norm={norm}",
                f"training.log_every={max(1, s['updates'] // 10)}",
            ]
            run = trained(context, f"{norm}-{depth}-{warmup}", "copy", settings)
            *_, last = losses_of(run.path).values()
            # END is at the same place in all: a guess knows it, and no symbol.
            guess = s["length"] * math.log(SYMBOLS) / (s["length"] + 1)
            yield Measurement(LEARNT, 1 - last / guess, _of(norm, depth, warmup > 0))


def _of(norm: str, depth: int, warmup: bool = True) -> Condition:
    return {"norm": norm, "depth": depth, "warm-up": "yes" if warmup else "no"}


def _learnt(rule: Rule, norm: str, depth: int) -> Provided:
    """The rule, where the model with that norm and a warm-up learns at all."""
    return Provided(rule, LEARNT, 0.2, _of(norm, depth))


RECIPE = (
    "model.kind=transformer",
    "model.embed_dim=32",
    "model.ffn_dim=64",
    "model.dropout=0",
    "training.learning_rate=5e-3",
)
_PRE: Condition = {"norm": "pre", "warm-up": "yes"}
_POST: Condition = {"norm": "post", "warm-up": "yes"}
_XIONG = Source("Xiong et al., 2020", "section 3.2, IWSLT14", read=True)
EXPERIMENTS = (
    Experiment(
        name="norm-depth",
        title="Pre-norm and post-norm, by depth",
        method="Transformers of width 32 learn to copy six of 16 symbols, for as many updates. "
        "Each has 2, 6, 12 or 24 layers on each side. The norm is before each sublayer (pre) or "
        "after each sum (post). The learning rate rises during a warm-up. With 6 layers there is a "
        "training without one, too. The loss is that of the last tenth of the updates. A model "
        "that guesses every symbol has 0, one that is right on all has 1. The loss counts as "
        "fallen from 0.2 on. The learning rate was chosen after trainings with another seed and "
        "pre-norm alone, and the rules were written before any training with post-norm.",
        measure=measure_norm_depth,
        settings={
            "quick": {
                "recipe": RECIPE,
                "depths": (2, 6),
                "without": 6,
                "length": 6,
                "updates": 20,
                "warmup": 8,
            },
            "full": {
                "recipe": RECIPE,
                "depths": DEPTHS,
                "without": 6,
                "length": 6,
                "updates": 80,
                "warmup": 25,
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "With pre-norm the loss falls at each depth from 2 to 24.",
                chapter_17("5.1"),
                All(*(AtLeast(LEARNT, 0.2, _of("pre", depth)) for depth in DEPTHS)),
                "A depth at which pre-norm does not learn.",
                judged_at=("full",),
            ),
            Claim(
                "With 24 layers pre-norm learns more than post-norm, with a warm-up, too.",
                chapter_17("5.1"),
                _learnt(Difference(LEARNT, _of("pre", 24), _of("post", 24), 0.1), "pre", 24),
                "Post-norm that is within 0.1 of pre-norm with 24 layers.",
                judged_at=("full",),
            ),
            Claim(
                "With post-norm and a warm-up the loss falls at each depth from 2 to 24.",
                _XIONG,
                All(*(AtLeast(LEARNT, 0.2, _of("post", depth)) for depth in DEPTHS)),
                "A depth at which post-norm does not learn.",
                judged_at=("full",),
            ),
            Claim(
                "The deeper the model, the more pre-norm gains over post-norm.",
                chapter_17("5.1"),
                _learnt(Widens(LEARNT, _PRE, _POST, {"depth": 24}, {"depth": 2}, 0.1), "pre", 24),
                "A gain with 24 layers that is within 0.1 of that with 2.",
                judged_at=("full",),
            ),
            Claim(
                "With 6 layers post-norm needs a warm-up.",
                _XIONG,
                _learnt(Difference(LEARNT, _of("post", 6), _of("post", 6, False), 0.1), "post", 6),
                "Post-norm that is within 0.1 without a warm-up.",
                (
                    Published("BLEU, post-norm without a warm-up", 8.45, _XIONG),
                    Published("BLEU, post-norm with a warm-up, about", 34.0, _XIONG),
                ),
                judged_at=("full",),
            ),
        ),
        plots=(Plot(LEARNT, "depth", "norm", {"warm-up": "yes"}),),
    ),
)
