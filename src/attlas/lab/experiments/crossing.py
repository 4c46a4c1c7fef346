"""Where a recurrent layer begins to be faster than self-attention: by width, with gradients."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import torch
from torch import Tensor, nn

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot, Source
from attlas.lab.experiments.costs import timed
from attlas.lab.sources import self_attention
from attlas.lab.verdict import All, Exponent, Monotone, Ratio
from attlas.layers import MultiheadAttention
from attlas.patterns import window

MILLISECONDS, CROSSING = "milliseconds", "tokens from which on the LSTM is the faster one"
LSTM, FUSED, WRITTEN_OUT, BANDED = (
    "LSTM",
    "self-attention",
    "self-attention, written out",
    "self-attention in a window",
)
FORWARD, GRADIENT = "forward", "forward and back"


def measure_crossing(context: Context) -> Iterator[Measurement]:
    """Passes by width and length, and the length from which on the LSTM is the faster one."""
    s = context.settings
    torch.manual_seed(context.seed)
    for width in s["widths"]:
        layers = timed_layers(width, s["radius"])
        for way in (FORWARD, GRADIENT):
            spent: dict[str, dict[int, float]] = {name: {} for name, _, _ in layers}
            for length in s["lengths"]:
                inputs = torch.randn(1, length, width, requires_grad=way == GRADIENT)
                for name, module, forward in layers:
                    work = timed_pass(module, forward, inputs)
                    spent[name][length] = found = timed(work, s["repeats"])
                    where = {"layer": name, "pass": way, "width": width, "length": length}
                    yield Measurement(MILLISECONDS, found, where)
            crossing = crossing_of(spent[LSTM], spent[FUSED])
            yield Measurement(CROSSING, crossing, {"pass": way, "width": width})


Layer = tuple[str, nn.Module, Callable[[Tensor], Tensor]]


def timed_layers(width: int, radius: int) -> list[Layer]:
    """The layers by name, each with its forward pass."""
    lstm = nn.LSTM(width, width, batch_first=True)
    dense = MultiheadAttention(width, 1, batch_first=True)
    banded = MultiheadAttention(width, 1, batch_first=True, pattern=window(radius))

    def attention(layer: MultiheadAttention, weights: bool) -> Callable[[Tensor], Tensor]:
        return lambda inputs: layer(inputs, inputs, inputs, need_weights=weights)[0]

    return [
        (LSTM, lstm, lambda inputs: lstm(inputs)[0]),
        (FUSED, dense, attention(dense, weights=False)),
        (WRITTEN_OUT, dense, attention(dense, weights=True)),
        (BANDED, banded, attention(banded, weights=False)),
    ]


def timed_pass(
    module: nn.Module, forward: Callable[[Tensor], Tensor], inputs: Tensor
) -> Callable[[], object]:
    """A pass forward; and back to the inputs and the weights, where the inputs want a gradient."""
    leaves = [inputs, *module.parameters()]

    def work() -> object:
        with torch.set_grad_enabled(inputs.requires_grad):
            output = forward(inputs)
        return torch.autograd.grad(output.sum(), leaves) if inputs.requires_grad else output

    return work


def crossing_of(recurrent: Mapping[int, float], attention: Mapping[int, float]) -> float:
    """The length at which the times are equal, by a line between logarithms.

    It is the first measured length where the LSTM is faster there already, and the last one where
    it is faster nowhere.

    Example:
        >>> crossing_of({64: 1.0, 128: 2.0, 256: 4.0}, {64: 0.5, 128: 2.0, 256: 8.0})
        128.0
        >>> crossing_of({64: 1.0, 128: 2.0}, {64: 0.5, 128: 1.0})
        128.0
    """
    lengths = sorted(recurrent)
    gaps = {n: math.log(attention[n] / recurrent[n]) for n in lengths}
    if gaps[lengths[0]] >= 0:
        return float(lengths[0])
    for before, after in pairwise(lengths):
        if gaps[after] >= 0:
            part = gaps[before] / (gaps[before] - gaps[after])
            return float(before * (after / before) ** part)
    return float(lengths[-1])


def _at(layer: str, way: str, width: int, length: int) -> dict[str, str | int]:
    return {"layer": layer, "pass": way, "width": width, "length": length}


_VASWANI = Source("Vaswani et al., 2017", "section 4", read=True)
EXPERIMENTS = (
    Experiment(
        name="crossing-length",
        title="From which length on a recurrence is faster than self-attention",
        method="One LSTM layer and one attention layer with a single head and the same width read "
        "one text, forward, and forward and back. Self-attention is computed by the fused kernel, "
        "with its weights written out, and within a window of 32 tokens on each side. The times "
        "are medians. The length at which the LSTM and the fused kernel are equally fast is read "
        "from a line between the two nearest lengths, on logarithmic axes. Where the lines do not "
        "cross, it is the first or the last length. How far a gradient reaches through either is "
        "in `rnn-vs-attention`.",
        measure=measure_crossing,
        alone=True,
        settings={
            "quick": {
                "widths": (64, 256),
                "lengths": (32, 64, 128, 256, 512),
                "radius": 32,
                "repeats": 3,
            },
            "full": {
                "widths": (64, 128, 256, 512),
                "lengths": (64, 128, 256, 512, 1024, 2048, 4096, 8192),
                "radius": 32,
                "repeats": 3,
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "Self-attention is faster than a recurrent layer where the text has fewer tokens "
                "than the layer has dimensions.",
                _VASWANI,
                All(
                    *(
                        Ratio(
                            MILLISECONDS,
                            _at(LSTM, way, 256, length),
                            _at(FUSED, way, 256, length),
                            1.0,
                        )
                        for way in (FORWARD, GRADIENT)
                        for length in (64, 128)
                    )
                ),
                "An LSTM of width 256 that is faster at 64 or 128 tokens.",
            ),
            Claim(
                "The wider the layers, the longer the texts up to which self-attention is the "
                "faster one.",
                self_attention("6"),
                All(
                    *(
                        Monotone(CROSSING, "width", rising=True, where={"pass": way})
                        for way in (FORWARD, GRADIENT)
                    )
                ),
                "A wider layer whose lines cross at a shorter text.",
                judged_at=("full",),
            ),
            Claim(
                "A recurrent layer takes four times as long where it is twice as wide.",
                self_attention("6"),
                All(
                    *(
                        Exponent(
                            MILLISECONDS,
                            "width",
                            1.8,
                            2.2,
                            {"layer": LSTM, "pass": way, "length": 1024},
                        )
                        for way in (FORWARD, GRADIENT)
                    )
                ),
                "An exponent outside 1.8 to 2.2 over widths of 64 to 512. Work that does not "
                "depend on the width takes a part of each step, most where the layer is narrow.",
                judged_at=("full",),
            ),
            Claim(
                "With gradients, too, a doubled length costs self-attention four times the time.",
                self_attention("6"),
                Exponent(
                    MILLISECONDS,
                    "length",
                    1.8,
                    2.2,
                    {"layer": WRITTEN_OUT, "pass": GRADIENT, "width": 64},
                ),
                "An exponent outside 1.8 to 2.2 over these lengths. Work that does not depend on "
                "the length takes a part of each pass, and most where the text is short.",
                judged_at=("full",),
            ),
            Claim(
                "Within a window, self-attention costs time in proportion to the length.",
                Source("Beltagy et al., 2020", "section 3.1 and figure 1", read=False),
                All(
                    *(
                        Exponent(
                            MILLISECONDS,
                            "length",
                            0.8,
                            1.2,
                            {"layer": BANDED, "pass": way, "width": 256},
                        )
                        for way in (FORWARD, GRADIENT)
                    )
                ),
                "An exponent outside 0.8 to 1.2 over these lengths.",
                judged_at=("full",),
            ),
        ),
        plots=(
            Plot(MILLISECONDS, "length", "layer", {"pass": FORWARD, "width": 64}, logarithmic=True),
            Plot(
                MILLISECONDS, "length", "layer", {"pass": GRADIENT, "width": 64}, logarithmic=True
            ),
            Plot(
                MILLISECONDS, "length", "layer", {"pass": GRADIENT, "width": 256}, logarithmic=True
            ),
            Plot(CROSSING, "width", "pass", logarithmic=True),
        ),
    ),
)
