"""What the factor 1/√d does to the training of a Transformer."""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean

import torch
from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot
from attlas.lab.experiments.qk_norm import losses_of
from attlas.lab.sources import chapter_17, lesson
from attlas.lab.trainings import forced_batch, recipe_of, score, toy_settings, trained
from attlas.lab.verdict import All, AtLeast, Difference, Provided, Ratio, Rule, Widens
from attlas.layers import MultiheadAttention
from attlas.models import TransformerConfig, build
from attlas.monitoring.history import head_statistics_of, read_history
from attlas.runs import Run

TOKENS = "token accuracy"
ENTROPY = "mean entropy over that of even weights"
GRADIENT = "norm of the first gradient of the maps of queries and keys"
LOSS = "loss in nats"
UPDATES = "updates until the loss is 0.5 nats, or all of them where it never is"
ROOT, ONE = "1/√d", "1"


@contextmanager
def scaled_by(factor: float | None) -> Iterator[None]:
    """Attention layers that are made meanwhile have this factor; None = 1/√d.

    The configuration of a model has no such setting. So a run that was trained in this context has
    to be opened in it, too.
    """

    def change(owner: nn.Module, name: str, module: nn.Module | None) -> None:
        if isinstance(module, MultiheadAttention):
            module.scale = factor

    handle = register_module_module_registration_hook(change)
    try:
        yield
    finally:
        handle.remove()


def measure_training(context: Context) -> Iterator[Measurement]:
    """Models of one width whose heads have different widths, each with and without the factor."""
    s = context.settings
    for width in s["widths"]:
        for factor, number in ((ROOT, None), (ONE, 1.0)):
            settings = [
                *toy_settings("copy", (s["length"], s["length"]), s["updates"]),
                *s["recipe"],
                f"model.num_heads={s['dim'] // width}",
                f"training.log_every={max(1, s['updates'] // 50)}",
                f"training.watch.every={s['updates'] // 10}",
            ]
            where = {"factor": factor, "width": width}
            with scaled_by(number):
                label = f"{width}-{'root' if number is None else 'one'}"
                run = trained(context, label, "copy", settings)
                yield Measurement(TOKENS, score(run).token_accuracy, where)
                config = recipe_of(context, "copy", settings).model
                assert isinstance(config, TransformerConfig)
                yield Measurement(GRADIENT, first_gradient(run, config, context.seed), where)
            for record in read_history(run.path / "watch.jsonl"):
                found = [one.normalized_entropy for one in head_statistics_of(record)]
                tenth = round(10 * record["step"] / s["updates"])  # the first update is tenth 0
                entropy = fmean(one for one in found if one is not None)
                yield Measurement(ENTROPY, entropy, {**where, "tenth": tenth})
            losses = losses_of(run.path)
            for update, loss in losses.items():
                yield Measurement(LOSS, loss, {**where, "update": update})
            low = [update for update, loss in losses.items() if loss <= 0.5]
            yield Measurement(UPDATES, float(min(low, default=s["updates"])), where)


def first_gradient(run: Run, config: TransformerConfig, seed: int) -> float:
    """The norm of the gradient of a new model, of the weights that make queries and keys."""
    torch.manual_seed(seed)
    vocabularies, batch = run.vocabularies(), forced_batch(run, 64)
    model = build(config, len(vocabularies.source), len(vocabularies.target))
    logits = model(batch.source, batch.target)
    weights = [
        linear.weight
        for module in model.modules()
        if isinstance(module, MultiheadAttention)
        for linear in (module.q_proj, module.k_proj)
    ]
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch.expected.flatten())
    gradients = torch.autograd.grad(loss, weights)
    return torch.cat([gradient.flatten() for gradient in gradients]).norm().item()  # type: ignore[no-any-return]


def _of(factor: str, width: int) -> dict[str, str | int]:
    return {"factor": factor, "width": width}


def _learnt(rule: Rule, *widths: int) -> Rule:
    """The rule, where the models with the factor learn to copy."""
    for width in widths:
        rule = Provided(rule, TOKENS, 0.9, _of(ROOT, width))
    return rule


WIDTHS = (8, 64, 256)
RECIPE = (
    "model.kind=transformer",
    "model.embed_dim=256",
    "model.ffn_dim=256",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.dropout=0",
    "training.learning_rate=1e-3",
)
_LESSON = lesson("Self-attention: the big conceptual leap")
_CHAPTER = chapter_17("2.1")
EXPERIMENTS = (
    Experiment(
        name="scale-training",
        title="Training with and without the factor 1/√d",
        method="One-layer Transformers of width 256 learn to copy, with 32, 4 and "
        "1 heads, so that a head is 8, 64 and 256 wide. In one of two their scores are multiplied "
        "by 1/√d, and in the other one by 1. All else is the same: the first weights, the data, "
        "the rate and the number of updates. The entropy is the mean over all heads, at the first "
        "update (tenth 0) and after each tenth. The gradient is that of the loss of the untrained "
        "model with respect to the weights. So it has the factor in it, unlike that of the scores "
        "in `scale`. Adam divides gradients by their size, and the norm of all of them is bounded.",
        measure=measure_training,
        settings={
            "quick": {
                "recipe": RECIPE,
                "dim": 256,
                "widths": (8, 256),
                "length": 4,
                "updates": 20,
            },
            "full": {
                "recipe": RECIPE,
                "dim": 256,
                "widths": WIDTHS,
                "length": 8,
                "updates": 250,
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "Without the factor the softmax of a new model with wide heads is saturated.",
                _LESSON,
                Difference(
                    ENTROPY, {**_of(ROOT, 256), "tenth": 0}, {**_of(ONE, 256), "tenth": 0}, 0.3
                ),
                "An entropy that is less than 0.3 lower without the factor.",
            ),
            Claim(
                "Without the factor the gradients of queries and keys vanish.",
                _CHAPTER,
                Ratio(GRADIENT, _of(ROOT, 256), _of(ONE, 256), 10.0),
                "Gradients of the maps that are less than ten times as large with the factor.",
            ),
            Claim(
                "Without the factor training fails.",
                _LESSON,
                _learnt(Difference(TOKENS, _of(ROOT, 256), _of(ONE, 256), 0.1), 256),
                "A model without the factor that is within 10 points after the same updates.",
            ),
            Claim(
                "Without the factor training takes at least a quarter more updates.",
                _CHAPTER,
                _learnt(Ratio(UPDATES, _of(ONE, 256), _of(ROOT, 256), 1.25), 256),
                "A model without the factor that takes fewer than 1.25 times as many.",
            ),
            Claim(
                "With the factor training converges, however wide the heads are.",
                _CHAPTER,
                All(*(AtLeast(TOKENS, 0.9, _of(ROOT, width)) for width in WIDTHS)),
                "A width with which fewer than 90 % of the tokens are right.",
                judged_at=("full",),
            ),
            Claim(
                "The wider the heads, the more updates the factor saves.",
                _CHAPTER,
                _learnt(
                    Widens(
                        UPDATES,
                        {"factor": ONE},
                        {"factor": ROOT},
                        {"width": 256},
                        {"width": 8},
                        25.0,
                    ),
                    8,
                    256,
                ),
                "Heads of 256 with which it saves at most 25 updates more than with heads of 8.",
            ),
        ),
        plots=(
            Plot(LOSS, "update", "factor", {"width": 256}),
            Plot(LOSS, "update", "factor", {"width": 8}),
            Plot(ENTROPY, "tenth", "factor", {"width": 256}),
            Plot(GRADIENT, "width", "factor", logarithmic=True),
        ),
    ),
)
