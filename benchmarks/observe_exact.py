"""That what is said of a map of 131,072 tokens is exact: against rows in float64, here and there.

python benchmarks/observe_exact.py                         some minutes; --length 16384 is quick

The overview and every statistic are made as a viewer would ask for them, in float32 and without
the matrix (64 GiB of it); then whole rows of cells, and rows of the map, are computed in float64
from the formula. It ends with an error where something differs by more than 1e-5 of its size.
"""

import argparse
import sys
import time

import torch
from observe_maps import CELLS, THRESHOLD, attention_map, overview
from torch import Tensor

from attlas.recording import FactoredAttentionMap

WANTED = 1e-5


def rows(one: FactoredAttentionMap, start: int, stop: int) -> Tensor:
    """The weights of some rows, in float64."""
    requested, keys = one.query[0, 0, start:stop].double(), one.keys[0, 0].double()
    hidden = ~one.pattern.mask(stop - start, len(keys), start)
    return torch.softmax((requested @ keys.T * one.scale).masked_fill(hidden, -torch.inf), -1)


def differs(found: Tensor, expected: Tensor) -> float:
    """The greatest difference, of the greatest size that is wanted or of 1."""
    return float((found.double() - expected).abs().max() / max(1.0, float(expected.abs().max())))


def main() -> None:
    """Ask, compare, tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--length", type=int, default=131072)
    parser.add_argument("--places", type=int, default=5, help="how many parts are compared")
    options = parser.parse_args()
    worst: dict[str, float] = {}

    def compare(name: str, found: Tensor, expected: Tensor) -> None:
        worst[name] = max(worst.get(name, 0.0), differs(found, expected))

    for ahead in (True, False):
        one = attention_map((1, 1, options.length, 64), ahead=ahead)
        begun = time.perf_counter()
        cells, summary = overview(one)[0, 0], one.summary(threshold=THRESHOLD)
        seconds = time.perf_counter() - begun
        print(f"{'all slots' if ahead else 'causal'}: {seconds:.0f} s", file=sys.stderr)
        side = options.length // CELLS
        for place in torch.linspace(0, CELLS - 1, options.places).long().tolist():
            start = place * side
            weights = rows(one, start, start + side)
            mean = weights.unflatten(-1, (CELLS, side)).mean((0, 2))
            compare("overview, of its greatest cell", cells[place] / mean.max(), mean / mean.max())
            window = one.pool((start, start + side), (0, options.length), (side, CELLS), "max")
            expected = weights.unflatten(-1, (CELLS, side)).amax(-1)
            compare("a window", window[0, 0], expected)
            near = min(start, options.length - CELLS)
            window = one.pool((start, start + side), (near, near + CELLS))
            compare("a window, zoomed in", window[0, 0], weights[:, near : near + CELLS])
            queries = torch.arange(start, start + side).unsqueeze(-1)
            distance = (weights * (queries - torch.arange(options.length)).abs()).sum(-1)
            for name, exact in (
                ("entropy", torch.special.entr(weights).sum(-1)),
                ("max_weight", weights.amax(-1)),
                ("count_above", (weights > THRESHOLD).sum(-1)),
                ("distance", distance),
            ):
                requested = getattr(summary, name)[0, 0, start : start + side]
                compare(name, requested, exact.double())
    for name, difference in worst.items():
        print(f"{name}: {difference:.1e}")
    if max(worst.values()) > WANTED:
        sys.exit(f"expected at most {WANTED}; got {max(worst.values()):.1e}")


if __name__ == "__main__":
    main()
