"""Where the time of a training goes: torch's profiler over some updates on one thread.

python benchmarks/training_profile.py --data train.en.gz train.de.gz --model luong-free

The models and batches are those of `training_speed.py`. Prints the share of each operator, and the
rates of the matrix products (`matrix_products.py`); recurrent layers make theirs by themselves.
"""

import argparse
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corpus
from contenders.attlas_models import MODELS, endlessly
from contest import CORPUS
from matrix_products import report
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from attlas._hardware import disable_malloc_trim
from attlas.training import Recipe, train
from attlas.training.learner import Learner, Update


@dataclass(frozen=True)
class Profiled:
    """So many seconds, in which so many target tokens were learnt from, and what was seen."""

    seconds: float
    tokens: int
    seen: profile
    weights: list[Tensor]


class _Seen(Exception):  # noqa: N818 (nothing went wrong)
    """All updates that were to be seen."""


def main() -> None:
    """Train, and print."""
    requested = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    requested.add_argument(
        "--data", type=Path, nargs=2, required=True, metavar=("SOURCE", "TARGET")
    )
    requested.add_argument("--model", choices=MODELS, required=True)
    requested.add_argument("--tokens", type=int, default=4096, help="of a batch, padding included")
    requested.add_argument("--autocast", choices=("none", "bf16"), default="none")
    requested.add_argument("--warm", type=int, default=10, help="so many updates before")
    requested.add_argument("--updates", type=int, default=20, help="so many under the profiler")
    options = requested.parse_args()
    if options.warm < 0 or options.updates < 1:
        requested.error("expected --warm of at least 0 and --updates of at least 1")
    disable_malloc_trim()
    made = corpus.made(tuple(options.data), CORPUS)
    training = endlessly(options.model, made, options.tokens, 1, options.autocast)
    found = profiled(training, options.warm, options.updates)
    rate = found.tokens / found.seconds
    print(f"{options.updates} updates in {found.seconds:.2f} s, under the profiler: "
          f"{found.tokens:,} target tokens, {rate:,.0f} a second")  # fmt: skip
    print(report(found.seen, found.weights))


def profiled(recipe: Recipe, warm: int, updates: int) -> Profiled:
    """The updates after the first `warm` ones, with everything between them.

    The recipe has to have as many. It trains in a folder that is left to nobody.
    """
    profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True, acc_events=True)
    plain = Learner.update
    done = tokens = 0
    begun = seconds = 0.0
    weights: list[Tensor] = []

    def watched(self: Learner[Any, Any], *given: Any) -> Update:
        nonlocal done, tokens, begun, seconds
        if done == warm:
            weights.extend(self.parameters)
            profiler.start()
            begun = time.perf_counter()
        update = plain(self, *given)
        done += 1
        if done > warm:
            tokens += update.tokens
        if done == warm + updates:
            seconds = time.perf_counter() - begun
            profiler.stop()
            raise _Seen
        return update

    Learner.update = watched  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        try:
            with suppress(_Seen):
                train(recipe, Path(folder) / "run")
        finally:
            Learner.update = plain  # type: ignore[method-assign]
            if begun and not seconds:  # something went wrong meanwhile
                profiler.stop()
    return Profiled(seconds, tokens, profiler, weights)


if __name__ == "__main__":
    main()
