"""The time and the memory that each score function takes in training."""

import time
from collections.abc import Iterator
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attlas.data.vocabulary import END
from attlas.lab.experiment import Claim, Condition, Context, Experiment, Measurement, Plot, Source
from attlas.lab.experiments.alignment import RECURRENT
from attlas.lab.experiments.mechanisms import SCORES
from attlas.lab.experiments.sparse_cost import peak_bytes
from attlas.lab.sources import chapter_4
from attlas.lab.verdict import All, Ratio
from attlas.models import RecurrentConfig
from attlas.models.rnn.model import build_recurrent
from attlas.training import read_recipe

NUMBERS = "parameters"
SECONDS = "milliseconds of processor time, forward and back"
BYTES = "most mebibytes held, forward and back, beside parameters"
LENGTHS = (20, 80)


def passes(model: nn.Module, source: Tensor, target: Tensor) -> None:
    """Cross-entropy of all target tokens, forward and back."""
    logits = model(source, target[:, :-1])
    torch.autograd.backward(F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten()))
    model.zero_grad(set_to_none=True)


def models_of(context: Context) -> dict[str, nn.Module]:
    """An untrained model with each score function."""
    s, found = context.settings, dict[str, nn.Module]()
    for score, settings in SCORES.items():
        config = read_recipe("multi30k", [*s["recipe"], *settings]).model
        assert isinstance(config, RecurrentConfig)
        torch.manual_seed(context.seed)
        found[score] = build_recurrent(config, s["symbols"], s["symbols"]).train()
    return found


def measure_costs(context: Context) -> Iterator[Measurement]:
    """What a pass of each model takes, on one batch of each length. The models take turns."""
    s, models = context.settings, models_of(context)
    for score, model in models.items():
        total = sum(parameter.numel() for parameter in model.parameters())
        yield Measurement(NUMBERS, float(total), {"score": score})
    for length in LENGTHS:
        context.report(f"texts of {length} tokens")
        ids = torch.randint(END + 1, s["symbols"], (2, s["rows"], length))
        spent: dict[str, list[float]] = {score: [] for score in models}
        for score, model in models.items():
            passes(model, *ids)
            held = peak_bytes(lambda model=model, ids=ids: passes(model, *ids))  # type: ignore[misc]
            where: Condition = {"score": score, "tokens": length}
            yield Measurement(BYTES, held / 2**20, where)
        for _ in range(s["repeats"]):
            for score, model in models.items():
                begun = time.process_time()
                passes(model, *ids)
                spent[score].append(1000 * (time.process_time() - begun))
        for score, found in spent.items():
            yield Measurement(SECONDS, median(found), {"score": score, "tokens": length})


def _times(metric: str, more: str, less: tuple[str, ...], bound: float) -> All:
    """How many times as much one score takes as the others, at each length."""
    return All(
        *(
            Ratio(
                metric,
                {"score": more, "tokens": length},
                {"score": score, "tokens": length},
                bound,
            )
            for length in LENGTHS
            for score in less
        )
    )


_RECIPE = tuple(one for one in RECURRENT if one.startswith("model."))
EXPERIMENTS = (
    Experiment(
        name="mechanisms-cost",
        title="What each score function costs in training",
        method="GRUs with Bahdanau's decoder differ in the score function. Their sizes are those "
        "of the experiment mechanisms, which has their BLEU. Models are untrained, and read random "
        "tokens, as many in the source as in the target. A pass is the cross-entropy and its "
        "gradients, without the optimizer. The models take turns, and the median counts. The time "
        "is that of the processor, with one thread, while other programs were running. Memory is "
        "what all tensors hold together at the worst moment, parameters aside.",
        measure=measure_costs,
        alone=True,
        settings={
            "quick": {"recipe": _RECIPE, "symbols": 500, "rows": 2, "repeats": 1},
            "full": {"recipe": _RECIPE, "symbols": 2000, "rows": 8, "repeats": 5},
        },
        seeds={"quick": 2, "full": 3},
        deterministic=(NUMBERS, BYTES),
        claims=(
            Claim(
                "A pass of training takes longer with an additive score than with a dot or a "
                "general one.",
                chapter_4("4.3.1"),
                _times(SECONDS, "additive", ("dot", "general"), 1.1),
                "A multiplicative score that takes within 10 % of the time.",
                judged_at=("full",),
            ),
            Claim(
                "A pass of training holds more memory with an additive score than with a dot or a "
                "general one.",
                Source("Vaswani et al., 2017", "section 3.2.1", read=False),
                _times(BYTES, "additive", ("dot", "general"), 1.1),
                "A multiplicative score that holds within 10 % of the memory.",
                judged_at=("full",),
            ),
            Claim(
                "Attention makes a pass take twice as long or more.",
                chapter_4("Exercise 4.1"),
                All(
                    *(_times(SECONDS, score, ("none",), 2.0) for score in SCORES if score != "none")
                ),
                "A score function with which a pass takes less than twice the time without.",
                judged_at=("full",),
            ),
        ),
        plots=(
            Plot(SECONDS, "tokens", "score", logarithmic=True),
            Plot(BYTES, "tokens", "score", logarithmic=True),
        ),
    ),
)
