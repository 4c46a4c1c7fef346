"""How a recurrent training slows down with the length of its texts.

python benchmarks/length_speed.py --model additive --lengths 20 300

Target tokens a second of whole updates (forward, backward, Adam) on random texts of one length, in
batches of as many tokens, by the CPU time of one thread. Two ways take turns in one process:
gradients of long sources as attlas has them, and written out, every tanh kept. The models are those
of `training_speed.py`. The ratio to the shortest texts is of the same turn, and the median of all.
"""

import argparse
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from contenders.attlas_models import MODELS

from attlas._hardware import disable_malloc_trim
from attlas.data import PAD
from attlas.models import RecurrentConfig, RecurrentModel, build
from attlas.ops import deferred_reads

VOCABULARY = 8000
WAYS = {"recomputed": deferred_reads.LONG, "kept": 1 << 60}  # the least keys of a long source


def update(model: RecurrentModel, optimizer: torch.optim.Optimizer, length: int, at: int) -> float:
    """Target tokens a second of one update on random texts."""
    rows = max(1, at // length)
    source, target = (torch.randint(PAD + 4, VOCABULARY, (rows, length + n)) for n in (0, 1))
    begun = time.process_time()
    optimizer.zero_grad(set_to_none=True)
    logits = model(source, target[:, :-1])
    F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten()).backward()
    optimizer.step()
    return rows * length / (time.process_time() - begun)


def main() -> None:
    """Measure, and print a table."""
    recurrent = [name for name, model in MODELS.items() if model["kind"] == "recurrent"]
    requested = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    requested.add_argument("--model", choices=recurrent, default="additive")
    requested.add_argument("--lengths", type=int, nargs="+", default=[20, 300])
    requested.add_argument("--tokens", type=int, default=4096, help="of a batch")
    requested.add_argument("--blocks", type=int, default=5, help="updates of each")
    options = requested.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    disable_malloc_trim()
    settings = {name: value for name, value in MODELS[options.model].items() if name != "kind"}
    model = build(RecurrentConfig(**settings), VOCABULARY).train()
    assert isinstance(model, RecurrentModel)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    rates: dict[tuple[str, int], list[float]] = {}
    for block in range(options.blocks + 1):
        for length in options.lengths:
            for way, least in WAYS.items():
                deferred_reads.LONG = least
                rate = update(model, optimizer, length, options.tokens)
                if block:
                    rates.setdefault((way, length), []).append(rate)
    shortest = min(options.lengths)
    print(f"{options.model}, batches of {options.tokens:,} tokens, torch {torch.__version__}, "
          f"1 thread, {options.blocks} turns")  # fmt: skip
    print(f"| gradients of sources | length | target tokens/s | ÷ length {shortest} | ÷ kept |")
    print("|---|---|---|---|---|")
    for (way, length), found in rates.items():
        ratios = [
            statistics.median(a / b for a, b in zip(found, rates[other], strict=True))
            for other in ((way, shortest), ("kept", length))
        ]
        numbers = " | ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"| {way} | {length} | {statistics.median(found):,.0f} | {numbers} |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
