"""Numbers that the texts print, computed again."""

import math
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Published
from attlas.lab.sources import chapter_4
from attlas.lab.verdict import AtLeast, AtMost
from attlas.layers import AdditiveAttention

NUMBERS, LOSS = "parameters", "loss in nats"
ROWS = "share of rows of weights that sum to 1"
VOCABULARY, HIDDEN = 100, 128


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


EXPERIMENTS = (
    Experiment(
        name="printed-numbers",
        title="Numbers that a text prints, computed again",
        method="The model of the chapter is built from its description: vocabularies of 100, width "
        "128, one GRU layer on each side, additive attention. Source and target of its training "
        "are drawn apart from each other, so no model beats the entropy of the tokens.",
        measure=measure_printed,
        settings={"quick": {"tokens": 20_000}, "full": {"tokens": 200_000}},
        seeds={"quick": 3, "full": 5},
        claims=(
            Claim(
                "The model has the printed number of parameters.",
                chapter_4("4.5.1"),
                AtMost(NUMBERS, 49_700.0, {"model": "as described"}),
                "A model of that description with 49,700 parameters.",
                (Published("printed", 49_700.0, chapter_4("4.5.1")),),
            ),
            Claim(
                "On pairs drawn anew each time the loss falls to the printed value.",
                chapter_4("4.5.2"),
                AtMost(LOSS, 4.3256, {"best": "random"}),
                "A model that predicts unrelated tokens better than their entropy, ln 99.",
                (Published("printed, epoch 3", 4.3256, chapter_4("4.5.2")),),
            ),
            Claim(
                "All twelve rows of the weights sum to 1.",
                chapter_4("4.5.1"),
                AtLeast(ROWS, 1.0),
                "A loop that also fills row 0, which belongs to the start token.",
            ),
        ),
    ),
)
