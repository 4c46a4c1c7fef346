"""Where the time of a translation goes: torch's profiler over one thread.

python benchmarks/search_profile.py --run runs/small --data test_2016_flickr.en.gz --beam 1

Prints the share of each operator, and of the matrix products how many rows they had (fewer than 16,
64, 256, 1,000, or more) and at which rate they were made: 2 · rows · inputs · outputs operations.
"""

import argparse
import gzip
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from attlas.allocator import keep_freed_memory
from attlas.decoding import DecodingConfig, Translator

PRODUCTS = {  # where the shapes of the rows and of the weight stand among an operator's inputs
    "mkldnn::_linear_pointwise": (0, 1),
    "aten::addmm": (1, 2),
    "aten::mm": (0, 1),
}
LIMITS = (16, 64, 256, 1000)


def main() -> None:
    """Translate twice, to be warm, and once under the profiler."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--run", type=Path, required=True, help="of a translation model")
    asked.add_argument("--data", type=Path, required=True, help="its source lines, .gz or plain")
    asked.add_argument("--lines", type=int, default=1000, help="so many of them")
    asked.add_argument("--rows", type=int, help="sentences a batch; default: as attlas translate")
    asked.add_argument("--beam", type=int, default=1, help="1 = greedy")
    options = asked.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    method = {"method": "beam", "beam": options.beam} if options.beam > 1 else {"method": "greedy"}
    translator = Translator(options.run, DecodingConfig.model_validate(method))
    opened = gzip.open if options.data.suffix == ".gz" else open
    with opened(options.data, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()[: options.lines]
    for _ in range(2):
        _translated(translator, lines, options.rows)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        took = _translated(translator, lines, options.rows)
    print(f"{len(lines)} lines in {took:.2f} s, under the profiler")
    print(profiled.key_averages().table(sort_by="self_cpu_time_total", row_limit=16))
    for line in products(profiled.key_averages(group_by_input_shape=True)):
        print(line)


def _translated(translator: Translator, lines: list[str], rows: int | None) -> float:
    begun = time.perf_counter()
    list(translator.many(lines, window=len(lines), rows=rows))
    return time.perf_counter() - begun


def products(events: Any) -> list[str]:
    """A line for each kind of product, the longest first, and one for all."""
    kinds: dict[tuple[str, int, int, str], list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for event in events:
        if event.key not in PRODUCTS:
            continue
        of_rows, of_weight = (event.input_shapes[place] for place in PRODUCTS[event.key])
        rows, inputs = of_rows
        outputs = of_weight[1 - of_weight.index(inputs)]
        limit = next((f"< {limit}" for limit in LIMITS if rows < limit), f">= {LIMITS[-1]}")
        found = kinds[event.key, inputs, outputs, limit]
        found[0] += event.count
        found[1] += 2 * rows * inputs * outputs * event.count
        found[2] += event.self_cpu_time_total / 1e6
    told = [
        f"{name}, {inputs} -> {outputs}, {limit} rows: {calls:,} calls, {seconds:.3f} s, "
        f"{work / seconds / 1e9:.0f} GFLOP/s"
        for (name, inputs, outputs, limit), (calls, work, seconds) in sorted(
            kinds.items(), key=lambda kind: -kind[1][2]
        )
    ]
    work, seconds = (sum(found[place] for found in kinds.values()) for place in (1, 2))
    return [*told, f"all products: {seconds:.2f} s, {work / 1e9:.0f} GFLOP"]


if __name__ == "__main__":
    main()
