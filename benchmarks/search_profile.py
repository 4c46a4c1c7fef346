"""Where the time of a translation goes: torch's profiler over one thread.

python benchmarks/search_profile.py --run runs/small --data test_2016_flickr.en.gz --num-beams 1

Prints the share of each operator, and the rates of the matrix products (`matrix_products.py`).
"""

import argparse
import gzip
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from matrix_products import report
from torch.profiler import ProfilerActivity, profile

from attlas._hardware import disable_malloc_trim
from attlas.decoding import DecodingConfig
from attlas.inference import Translator


def main() -> None:
    """Translate, and print."""
    requested = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    requested.add_argument("--run", type=Path, required=True, help="of a translation model")
    requested.add_argument(
        "--data", type=Path, required=True, help="its source lines, .gz or plain"
    )
    requested.add_argument("--lines", type=int, default=1000, help="so many of them")
    requested.add_argument(
        "--rows", type=int, help="sentences a batch; default: as attlas translate"
    )
    requested.add_argument("--num-beams", type=int, default=1, help="1 = greedy")
    requested.add_argument(
        "--longest", type=float, nargs=2, default=[3.0, 20], metavar=("FACTOR", "CONSTANT"),
        help="a translation of n tokens gets at most FACTOR n + CONSTANT (search_speed.py: 1.5 1)",
    )  # fmt: skip
    options = requested.parse_args()
    torch.set_num_threads(1)
    disable_malloc_trim()
    method = (
        {"method": "beam", "num_beams": options.num_beams}
        if options.num_beams > 1
        else {"method": "greedy"}
    )
    translator = Translator(
        options.run, DecodingConfig.model_validate(method | limits(options.longest))
    )
    opened = gzip.open if options.data.suffix == ".gz" else open
    with opened(options.data, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()[: options.lines]
    seconds, seen = profiled(translator, lines, options.rows)
    print(f"{len(lines)} lines in {seconds:.2f} s, under the profiler")
    print(report(seen, translator.model.parameters()))


def limits(longest: Sequence[float]) -> dict[str, float]:
    """The settings of a search that say how long a translation gets."""
    factor, constant = longest
    return {"max_len_a": factor, "max_len_b": int(constant)}


def profiled(translator: Translator, lines: list[str], rows: int | None) -> tuple[float, profile]:
    """The third time that these lines are translated, when all is warm, and its seconds."""

    def translated() -> float:
        begun = time.perf_counter()
        list(translator.stream(lines, window=len(lines), rows=rows))
        return time.perf_counter() - begun

    for _ in range(2):
        translated()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, acc_events=True) as seen:
        seconds = translated()
    return seconds, seen


if __name__ == "__main__":
    main()
