"""What positions add to self-attention."""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float64

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot
from attlas.lab.sources import chapter_17, lesson
from attlas.lab.verdict import All, AtLeast, AtMost, Difference, Monotone
from attlas.layers import MultiheadAttention
from attlas.reference.sinusoidal import sinusoidal

ERROR = "L2 norm of the difference"
FIT, COSINE = "relative error of the linear map", "cosine similarity to position 0"


def measure_positions(context: Context) -> Iterator[Measurement]:
    """Shuffle inputs with and without positions; shift by a linear map; compare positions."""
    length, dim = context.settings["length"], context.settings["dim"]
    torch.manual_seed(context.seed)
    layer = MultiheadAttention(dim, 4, batch_first=True).eval()
    inputs = torch.randn(1, length, dim)
    order = torch.randperm(length)
    encoding = torch.from_numpy(sinusoidal(length, dim)).float()
    for name, added in (("none", torch.zeros(length, dim)), ("sinusoidal", encoding)):
        with torch.no_grad():
            straight = _output(layer, inputs + added)
            shuffled = _output(layer, inputs[:, order] + added)
        error = (shuffled - straight[:, order]).norm().item()
        yield Measurement(ERROR, error, {"positions": name})
    many = sinusoidal(context.settings["positions"], dim)
    for shift in context.settings["shifts"]:
        before, after = many[:-shift], many[shift:]
        error = np.linalg.norm(before @ rotation(shift, dim) - after) / np.linalg.norm(after)
        yield Measurement(FIT, float(error), {"shift": shift})
    norms = np.linalg.norm(many, axis=1)
    for distance in range(1, context.settings["positions"]):
        cosine = many[0] @ many[distance] / (norms[0] * norms[distance])
        yield Measurement(COSINE, float(cosine), {"distance": distance})


def rotation(shift: int, dim: int) -> Float64[np.ndarray, "dim dim"]:
    """The map PE(pos) → PE(pos + shift): each pair (sin, cos) is turned by shift / 10000^(2i/d)."""
    matrix = np.zeros((dim, dim))
    for i in range(0, dim, 2):
        angle = shift / 10_000.0 ** (i / dim)
        matrix[i : i + 2, i : i + 2] = [
            [np.cos(angle), -np.sin(angle)],
            [np.sin(angle), np.cos(angle)],
        ]
    return matrix


def _output(layer: MultiheadAttention, inputs: torch.Tensor) -> torch.Tensor:
    output: torch.Tensor = layer(inputs, inputs, inputs)[0]
    return output


SHIFTS = (1, 5, 20)
SETTINGS = {"length": 10, "dim": 32, "positions": 256, "shifts": SHIFTS}
EXPERIMENTS = (
    Experiment(
        name="positions",
        title="What positions add to self-attention",
        method="A random layer of four heads reads ten random vectors, and the same vectors "
        "shuffled, with and without sinusoidal positions. The linear map of a shift turns each "
        "pair of sine and cosine by the same angle at every position.",
        measure=measure_positions,
        settings={"quick": SETTINGS, "full": SETTINGS},
        seeds={"quick": 5, "full": 10},
        deterministic=(FIT, COSINE),
        claims=(
            Claim(
                "Self-attention without positions is equivariant: shuffled inputs give shuffled "
                "outputs.",
                lesson("Positional encoding: the missing piece"),
                AtMost(ERROR, 1e-5, {"positions": "none"}),
                "A difference beyond rounding.",
            ),
            Claim(
                "Sinusoidal positions break the equivariance.",
                lesson("Exercise 3"),
                Difference(ERROR, {"positions": "sinusoidal"}, {"positions": "none"}, 0.1),
                "A difference below 0.1.",
            ),
            Claim(
                "A shift of the position is a linear map of the sinusoidal encoding.",
                chapter_17("4"),
                All(*(AtMost(FIT, 1e-6, {"shift": shift}) for shift in SHIFTS)),
                "A position for which the map fails.",
            ),
            Claim(
                "Near positions have similar encodings.",
                lesson("Positional encoding: the missing piece"),
                AtLeast(COSINE, 0.9, {"distance": 1}),
                "A cosine of neighbours below 0.9.",
            ),
            Claim(
                "The farther apart two positions are, the less similar are their encodings.",
                lesson("Positional encoding: the missing piece"),
                Monotone(COSINE, "distance", rising=False),
                "A distance at which the cosine rises.",
            ),
        ),
        plots=(Plot(COSINE, "distance"),),
    ),
)
