"""The matrix products of a profile: how many rows they had, and at which rate they were made.

A product of rows × inputs with inputs × outputs is 2 · rows · inputs · outputs operations.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.profiler import profile

PRODUCTS = {  # where the shapes of the rows and of the weight stand among an operator's inputs
    "mkldnn::_linear_pointwise": (0, 1),
    "aten::addmm": (1, 2),
    "aten::mm": (0, 1),
    "aten::bmm": (0, 1),  # of many at a time, as in an attention
    "aten::baddbmm": (1, 2),
}
LIMITS = (16, 64, 256, 1000)


def report(profiled: profile, weights: Iterable[Tensor]) -> str:
    """The operators that took the most time by themselves, and then the products."""
    sizes = {size for weight in weights for size in weight.shape}
    operators = profiled.key_averages().table(sort_by="self_cpu_time_total", row_limit=16)
    return "\n".join(
        [operators, *products(profiled.key_averages(group_by_input_shape=True), sizes)]
    )


def products(events: Any, sizes: set[int]) -> list[str]:
    """A line for each kind of product, the longest first, and one for all of these.

    sizes: of the model's weights. A product over another number of inputs goes over the rows of a
    batch, for the gradient of a weight. Products that an operator makes inside are not among them,
    as those of recurrent layers and of a fused attention.
    """
    kinds: dict[tuple[str, str, str, int], list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for event in events:
        if event.key not in PRODUCTS:
            continue
        of_rows, of_weight = (event.input_shapes[place] for place in PRODUCTS[event.key])
        *rows_of_all, inputs = of_rows
        rows, pair = math.prod(rows_of_all), of_weight[-2:]
        outputs = pair[1 - pair.index(inputs)]
        if inputs in sizes:
            found = kinds[event.key, _some(rows), str(inputs), outputs]
        else:
            found = kinds[event.key, str(rows), _some(inputs), outputs]
        found[0] += event.count
        found[1] += 2 * rows * inputs * outputs * event.count
        found[2] += event.self_cpu_time_total / 1e6
    reported = [
        f"{name}, {rows} × {inputs} × {outputs}: {calls:,} calls, {seconds:.3f} s, "
        f"{work / seconds / 1e9:.0f} GFLOP/s"
        for (name, rows, inputs, outputs), (calls, work, seconds) in sorted(
            kinds.items(), key=lambda kind: -kind[1][2]
        )
    ]
    work, seconds = (sum(found[place] for found in kinds.values()) for place in (1, 2))
    return [*reported, f"all of these: {seconds:.2f} s, {work / 1e9:.0f} GFLOP"]


def _some(rows: int) -> str:
    return next((f"< {limit}" for limit in LIMITS if rows < limit), f">= {LIMITS[-1]}")
