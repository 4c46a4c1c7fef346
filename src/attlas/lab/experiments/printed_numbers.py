"""Numbers that the texts print, computed again."""

import math
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Published
from attlas.lab.sources import chapter_4
from attlas.lab.verdict import AtLeast, AtMost, InRange
from attlas.layers import AdditiveAttention

NUMBERS, LOSS = "parameters", "loss in nats"
ROWS = "share of rows of weights that sum to 1"
STATISTIC, OFF = "statistic", "distance from the printed number"
VOCABULARY, HIDDEN = 100, 128
# The inputs of the chapter's statistics: the drawn map of a sentence of seven tokens.
DRAWN = (
    (0.65, 0.10, 0.05, 0.05, 0.10, 0.03, 0.02),
    (0.10, 0.70, 0.05, 0.05, 0.05, 0.03, 0.02),
    (0.05, 0.05, 0.05, 0.05, 0.10, 0.68, 0.02),
    (0.05, 0.05, 0.10, 0.75, 0.02, 0.02, 0.01),
    (0.05, 0.10, 0.70, 0.05, 0.05, 0.03, 0.02),
    (0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.88),
)
PRINTED = {  # with all its digits
    "mean entropy": "0.8277",
    "mean number of weights above 0.1": "2.50",
    "mean largest weight": "0.7267",
    "standard deviation of the largest weight": "0.0737",
}


def measure_printed(context: Context) -> Iterator[Measurement]:
    """The chapter's model by its description, and the loss that random pairs allow."""
    torch.manual_seed(context.seed)
    parts = {
        "encoder embedding": nn.Embedding(VOCABULARY, HIDDEN),
        "encoder GRU": nn.GRU(HIDDEN, HIDDEN, batch_first=True),
        "decoder embedding": nn.Embedding(VOCABULARY, HIDDEN),
        "attention": AdditiveAttention(HIDDEN, HIDDEN, HIDDEN),
        "decoder GRU": nn.GRU(2 * HIDDEN, HIDDEN, batch_first=True),
        "output": nn.Linear(HIDDEN, VOCABULARY),
    }
    total = sum(p.numel() for part in parts.values() for p in part.parameters())
    yield Measurement(NUMBERS, float(total), {"model": "as described"})
    # A model that knows only how often tokens come: the best that unrelated pairs allow.
    target = torch.randint(1, VOCABULARY, (context.settings["tokens"],))
    logits = torch.zeros(len(target), VOCABULARY)
    logits[:, 0] = -math.inf
    yield Measurement(LOSS, cross_entropy(logits, target).item(), {"best": "random"})
    length = 12
    weights = torch.zeros(length, 10)
    weights[1:] = torch.rand(length - 1, 10).softmax(-1)  # row 0 is never written
    sums = weights.sum(-1)
    yield Measurement(ROWS, torch.isclose(sums, torch.ones(length)).double().mean().item())
    yield from measure_drawn()


def measure_drawn() -> Iterator[Measurement]:
    """The statistics of the drawn map, by the formulas of the chapter."""
    drawn = torch.tensor(DRAWN, dtype=torch.float64)
    greatest = drawn.amax(1)
    found = {
        "mean entropy": torch.special.entr(drawn).sum(1).mean(),
        "mean number of weights above 0.1": (drawn > 0.1).double().sum(1).mean(),
        "mean largest weight": greatest.mean(),
        "standard deviation of the largest weight": greatest.std(correction=0),
    }
    for name, value in found.items():
        yield Measurement(STATISTIC, value.item(), {"of the drawn map": name})
        yield Measurement(OFF, abs(value.item() - float(PRINTED[name])), {"of the drawn map": name})


def _as_printed(name: str) -> Claim:
    """The claim that a statistic of the drawn map is the printed one, to the printed digits."""
    printed = PRINTED[name]
    half_a_digit = 0.5 * 10.0 ** -len(printed.partition(".")[2])
    return Claim(
        f"The drawn map has the printed {name}.",
        chapter_4("4.4.2"),
        AtMost(OFF, half_a_digit, {"of the drawn map": name}),
        "Another number, by the formula of the chapter and from the map that it draws.",
        (Published(f"printed, {name}", float(printed), chapter_4("4.4.2")),),
        revised="" if half_a_digit < 0.0001 else "the bound was 0.00005, as of four digits.",
    )


EXPERIMENTS = (
    Experiment(
        name="printed-numbers",
        title="Numbers that a text prints, computed again",
        method="The model of the chapter is built from its description: vocabularies of 100, width "
        "128, one GRU layer on each side, additive attention. Source and target of its training "
        "are drawn apart from each other, so no model beats the entropy of the tokens. "
        "The statistics are those of the map that the chapter draws, by its own formulas. All of "
        "these follow from the description: no seed can change them, and nothing is trained.",
        measure=measure_printed,
        settings={"quick": {"tokens": 20_000}, "full": {"tokens": 200_000}},
        seeds={"quick": 3, "full": 5},
        deterministic=(NUMBERS, LOSS, ROWS, STATISTIC, OFF),
        claims=(
            Claim(
                "The model has the printed number of parameters.",
                chapter_4("4.5.1"),
                InRange(NUMBERS, 49_650.0, 49_750.0, {"model": "as described"}),
                "A model of that description with another number, rounded to hundreds.",
                (Published("printed", 49_700.0, chapter_4("4.5.1"), "49,700"),),
                revised="a smaller number would have counted as the printed one. Now it is a range "
                "round that number, which is rounded to hundreds.",
            ),
            Claim(
                "On pairs drawn anew each time the loss falls to the printed value.",
                chapter_4("4.5.2"),
                AtMost(LOSS, 4.3256, {"best": "random"}),
                "A lowest loss above the printed one. That of unrelated tokens is their entropy, "
                "ln 99.",
                (Published("printed, epoch 3", 4.3256, chapter_4("4.5.2")),),
            ),
            Claim(
                "All twelve rows of the weights sum to 1.",
                chapter_4("4.5.1"),
                AtLeast(ROWS, 1.0),
                "A row that does not sum to 1. The loop leaves out that of the start token.",
                (Published("printed, 12 of 12 rows", 1.0, chapter_4("4.5.1")),),
            ),
            *map(_as_printed, PRINTED),
        ),
    ),
)
