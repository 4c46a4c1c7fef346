"""What heads look at before any training, and what a dot score does to states."""

from collections.abc import Iterator
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

import attlas
from attlas.analysis.similarity import divergence
from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Published
from attlas.lab.sources import chapter_4, lesson
from attlas.lab.verdict import All, AtLeast, AtMost, Difference
from attlas.layers import MultiheadAttention

DIVERGENCE, ENTROPY = "mean Jensen–Shannon divergence in nats", "normalized entropy"
PERMUTED, COSINE = "change of the output over its norm", "cosine of state and attended state"


def mean_divergence(weights: Float[Tensor, "heads queries keys"]) -> float:
    """The mean Jensen–Shannon divergence of rows over all pairs of heads."""
    found = [divergence(a, b) for a, b in combinations(weights, 2)]
    return torch.stack(found).mean().item()


def untrained(context: Context) -> Iterator[Measurement]:
    """Four heads of one random layer, beside one head each of four random layers."""
    torch.manual_seed(context.seed)
    dim, length = context.settings["dim"], context.settings["length"]
    inputs = torch.randn(1, length, dim)

    def maps(layer: MultiheadAttention) -> Tensor:
        with torch.no_grad():
            weights: Tensor = layer(inputs, inputs, inputs, average_attn_weights=False)[1]
        return weights[0]

    layers = [MultiheadAttention(dim, 4, batch_first=True) for _ in range(4)]
    own = maps(layers[0])
    others = torch.stack([maps(layer)[0] for layer in layers])
    for name, weights in (("one layer", own), ("four layers", others)):
        yield Measurement(DIVERGENCE, mean_divergence(weights), {"heads of": name})
        entropy = -(weights * weights.log()).sum(-1).mean() / torch.tensor(float(length)).log()
        yield Measurement(ENTROPY, entropy.item(), {"heads of": name})


def measure_permuted(context: Context) -> Iterator[Measurement]:
    """The output of attention when its weights are permuted over the keys."""
    generator = torch.Generator().manual_seed(context.seed)
    length, dim = context.settings["length"], context.settings["dim"]
    value = torch.randn(length, dim, generator=generator)
    alike = value[:1] + 0.01 * torch.randn(length, dim, generator=generator)
    weights = (2 * torch.randn(length, generator=generator)).softmax(-1)
    order = torch.randperm(length, generator=generator)
    for name, states in (("independent", value), ("alike", alike)):
        output = weights @ states
        change = (weights[order] @ states - output).norm() / output.norm()
        yield Measurement(PERMUTED, change.item(), {"values": name})


def alike(context: Context) -> Iterator[Measurement]:
    """Gradient steps on a look-up task: does a dot score pull the state to what it looks at?"""
    for score in ("dot", "general"):
        generator = torch.Generator().manual_seed(context.seed)
        dim, length = 32, 8
        keys = torch.randn(length, dim, generator=generator)
        state = torch.randn(length, dim, generator=generator).requires_grad_()
        matrix = torch.eye(dim) if score == "dot" else torch.randn(dim, dim, generator=generator)
        matrix = matrix / (1 if score == "dot" else dim**0.5)
        optimizer = torch.optim.Adam([state], lr=0.05)
        target = torch.arange(length)  # query i has to find key i
        for _ in range(context.settings["steps"]):
            scores = state @ matrix @ keys.T
            loss = torch.nn.functional.cross_entropy(scores, target)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        similar = torch.cosine_similarity(state.detach(), keys).mean()
        yield Measurement(COSINE, similar.item(), {"score": score})


def sentence(context: Context) -> Iterator[Measurement]:
    """One entropy for rows that look at one key, and one for rows that look at all of them."""
    generator = torch.Generator().manual_seed(context.seed)
    length, dim = context.settings["length"], context.settings["dim"]
    query = torch.randn(1, 1, length, dim, generator=generator)
    for name, factor in (("sharp", 8.0), ("flat", 0.0)):
        _, weights = attlas.scaled_dot_product_attention_with_weights(factor * query, query, query)
        greatest = weights.amax(-1).mean().item()
        entropy = -(weights * weights.clamp_min(1e-30).log()).sum(-1).mean().item()
        yield Measurement("largest weight", greatest, {"weights": name})
        yield Measurement("entropy", entropy, {"weights": name})
    rows, factors = context.settings["rows"], torch.linspace(0.0, 4.0, context.settings["rows"])
    query = factors[:, None] * torch.randn(rows, dim, generator=generator)
    keys = torch.randn(rows, length, dim, generator=generator)
    _, weights = attlas.scaled_dot_product_attention_with_weights(query[:, None], keys, keys)
    entropy_of_rows = torch.special.entr(weights).sum(-1)
    for most in LOW:
        low = weights.amax(-1)[entropy_of_rows <= most]
        yield Measurement(LEAST, low.min().item(), {"entropy at most": most})


SIZES = {"dim": 64, "length": 10}
LEAST = "smallest of the largest weights of rows"
# The largest entropy in nats, and the weight that is asked for.
LOW = {0.1: 0.9, 0.5: 0.6}
EXPERIMENTS = (
    Experiment(
        name="untrained-heads",
        title="Heads before any training",
        method="The divergence between the four heads of one random layer is compared with that "
        "between single heads of four random layers, which cannot know each other.",
        measure=untrained,
        settings={"quick": SIZES, "full": SIZES},
        seeds={"quick": 10, "full": 20},
        claims=(
            Claim(
                "Heads of an untrained module complement each other.",
                lesson("Exercise 2"),
                Difference(
                    DIVERGENCE, {"heads of": "one layer"}, {"heads of": "four layers"}, 0.01
                ),
                "Heads of one layer that differ by 0.01 nats more than heads that cannot know "
                "each other.",
            ),
            Claim(
                "Untrained heads look almost evenly at all positions.",
                lesson("Exercise 2"),
                AtLeast(ENTROPY, 0.9, {"heads of": "one layer"}),
                "A normalized entropy below 0.9.",
            ),
        ),
    ),
    Experiment(
        name="permutation",
        title="Can weights be permuted without changing the output?",
        method="Random weights are permuted over values that are independent, and over values "
        "that are almost equal.",
        measure=measure_permuted,
        settings={"quick": SIZES, "full": SIZES},
        seeds={"quick": 10, "full": 20},
        claims=(
            Claim(
                "Attention weights can be permuted without changing the output.",
                lesson("Attention as interpretability"),
                All(
                    AtMost(PERMUTED, 0.05, {"values": "independent"}),
                    AtMost(PERMUTED, 0.05, {"values": "alike"}),
                ),
                "Values whose weighted sum changes by more than 5 % when the weights are permuted.",
            ),
        ),
    ),
    Experiment(
        name="dot-score",
        title="A dot score makes states alike",
        method="Eight states learn, by gradient steps, to find one of eight fixed keys each: by "
        "their dot product, or through a fixed random matrix.",
        measure=alike,
        settings={"quick": {"steps": 200}, "full": {"steps": 1000}},
        seeds={"quick": 5, "full": 10},
        claims=(
            Claim(
                "With a dot score a state comes to look like the state that it looks at.",
                lesson("Luong attention (multiplicative)"),
                All(
                    AtLeast(COSINE, 0.5, {"score": "dot"}),
                    Difference(COSINE, {"score": "dot"}, {"score": "general"}, 0.3),
                ),
                "A cosine below 0.5, or one that a general score reaches, too.",
            ),
        ),
    ),
    Experiment(
        name="statistics",
        title="What entropy and the largest weight say",
        method="Random queries look at ten random keys, ever more sharply: the factor on the "
        "scores goes from 0 to 4. Of the rows with a low entropy the smallest of their "
        "largest weights is taken. It follows from the definitions that the largest "
        "weight is at least exp(−entropy): 0.90 for 0.1 nats, 0.61 for 0.5. Beside that "
        "are two cases whose numbers are built in: queries equal to their keys, with a "
        "factor of 8, and with one of 0, which makes all weights equal.",
        measure=sentence,
        settings={"quick": {**SIZES, "rows": 2000}, "full": {**SIZES, "rows": 20_000}},
        seeds={"quick": 3, "full": 5},
        claims=(
            Claim(
                "Low entropy means a strong focus on one position.",
                chapter_4("4.4.2"),
                All(
                    *(
                        AtLeast(LEAST, least, {"entropy at most": most})
                        for most, least in LOW.items()
                    )
                ),
                "A row of low entropy without a large weight: the definitions leave no room for "
                "one.",
                (
                    Published("printed entropy of the sharpest row", 0.412, chapter_4("4.4.2")),
                    Published(
                        "its largest weight, typed in", 0.88, chapter_4("4.4.2"), measured=False
                    ),
                ),
                revised="it compared a case that is sharp by construction with one that is even by "
                "construction. Now it asks for a large weight in each row of low entropy.",
            ),
        ),
    ),
)
