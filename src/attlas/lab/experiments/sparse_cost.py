"""What sparse patterns cost beside dense attention: time and memory by length."""

import math
import time
import weakref
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot, Published, Source
from attlas.lab.verdict import All, Exponent, Ratio
from attlas.layers import MultiheadAttention
from attlas.patterns import Pattern, either, everywhere, landmarks, strided, window

TIME, BYTES, PAIRS = "milliseconds of processor time", "bytes at the peak", "pairs that are seen"
WRITTEN_OUT = "dense, written out"


class PeakBytes(TorchDispatchMode):
    """The greatest sum of bytes, so far, of the tensors that operations have made and that live."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._alive: dict[int, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self._count((args, kwargs), made=False)  # what is new here was there before
        result = func(*args, **(kwargs or {}))
        self._count(result, made=True)
        self.peak = max(self.peak, sum(self._alive.values()))
        return result

    def _count(self, values: Any, made: bool) -> None:
        for one in tree_leaves(values):
            if not isinstance(one, Tensor):
                continue
            storage = one.untyped_storage()
            address = storage.data_ptr()
            if storage.nbytes() and address not in self._alive:
                self._alive[address] = storage.nbytes() if made else 0
                weakref.finalize(storage, self._alive.pop, address, None)


def peak_bytes(work: Callable[[], object]) -> int:
    """How many bytes of tensors `work` holds at the most, beside those that were there before.

    What a kernel keeps to itself does not count.
    """
    counted = PeakBytes()
    with counted:
        work()
    return counted.peak


def patterns_at(length: int, radius: int) -> dict[str, Pattern]:
    """The patterns by name; the stride is the root of the length, and its window as wide."""
    local, root = window(radius), round(math.sqrt(length))
    return {
        "dense": everywhere,
        WRITTEN_OUT: everywhere,
        "local": local,
        "strided": either(window(root), strided(root)),
        "global": either(local, landmarks(0)),
    }


def measure_cost(context: Context) -> Iterator[Measurement]:
    """Passes forward and back through one layer, the patterns in turn."""
    s = context.settings
    torch.manual_seed(context.seed)
    for length in s["lengths"]:
        inputs = torch.randn(1, length, s["dim"], requires_grad=True)
        patterns = patterns_at(length, s["radius"])
        passes = {
            name: pass_of(MultiheadAttention(s["dim"], s["heads"], pattern=pattern), inputs, name)
            for name, pattern in patterns.items()
        }
        spent: dict[str, list[float]] = {name: [] for name in passes}
        for turn in range(s["repeats"] + 1):
            for name, work in passes.items():
                begun = time.process_time()
                work()
                if turn:  # the first is not counted
                    spent[name].append(1000 * (time.process_time() - begun))
        for name, work in passes.items():
            where = {"pattern": name, "length": length}
            yield Measurement(TIME, median(spent[name]), where)
            yield Measurement(BYTES, float(peak_bytes(work)), where)
            pairs = patterns[name].mask(length, length).sum().item()
            yield Measurement(PAIRS, float(pairs), where)


def pass_of(layer: MultiheadAttention, inputs: Tensor, name: str) -> Callable[[], object]:
    """A pass forward and back through a layer whose queries and keys are the inputs."""
    attend = layer.forward_reference if name == WRITTEN_OUT else layer.attend
    leaves = [inputs, *layer.parameters()]

    def work() -> object:
        output: Tensor = attend(inputs, layer.project_kv(inputs))
        return torch.autograd.grad(output.sum(), leaves)

    return work


def _at(pattern: str, length: int = 2048) -> dict[str, str | int]:
    return {"pattern": pattern, "length": length}


_CHILD = Source("Child et al., 2019", "abstract and section 1", read=True)
_TABLE = Source("Child et al., 2019", "table 2", read=True)
_BELTAGY = Source("Beltagy et al., 2020", "section 3.1 and figure 1", read=False)
_ROOT = (
    "nothing in the rule, but the pattern: its window was 32 at every length. That is not the "
    "pattern of the paper, whose window is as wide as its stride."
)
_TIMES = (
    Published("time of an update on Enwik8, dense", 1.31, _TABLE),
    Published("time of an update on Enwik8, strided", 0.35, _TABLE),
)
EXPERIMENTS = (
    Experiment(
        name="sparse-cost",
        title="What sparse attention costs",
        method="One attention layer of four heads reads one text, forward and back, with the "
        "patterns in turn. Dense is all pairs by the fused kernel; the same with the weights "
        "written out stands beside it. Local is a window. Strided is a window of the root of the "
        "length, and each distance that is a multiple of that root. Global is the local window and "
        "the first position. attlas computes windows and global positions by blocks, in which the "
        "hidden pairs are few. For "
        "strides it has no such kernel: all pairs are computed, and a mask hides most of them. "
        "Bytes are those of the tensors that live at the same time. What the patterns can do is in "
        "`sparse-reviews` and `sparse-copying`.",
        measure=measure_cost,
        alone=True,
        settings={
            "quick": {
                "lengths": (256, 512, 1024, 2048),
                "dim": 64,
                "heads": 4,
                "radius": 16,
                "repeats": 3,
            },
            "full": {
                "lengths": (512, 1024, 2048, 4096),
                "dim": 64,
                "heads": 4,
                "radius": 32,
                "repeats": 7,
            },
        },
        seeds={"quick": 2, "full": 3},
        deterministic=(BYTES, PAIRS),
        claims=(
            Claim(
                "The time of dense attention grows with the square of the length.",
                _CHILD,
                Exponent(TIME, "length", 1.7, 2.3, {"pattern": "dense"}),
                "An exponent outside 1.7 to 2.3 over these lengths.",
                judged_at=("full",),
            ),
            Claim(
                "The memory of dense attention grows with the square of the length, where its "
                "weights are written out.",
                _CHILD,
                Exponent(BYTES, "length", 1.8, 2.2, {"pattern": WRITTEN_OUT}),
                "An exponent outside 1.8 to 2.2 over these lengths.",
            ),
            Claim(
                "The memory of dense attention grows with the square of the length, with a fused "
                "kernel, too.",
                _CHILD,
                Exponent(BYTES, "length", 1.8, 2.2, {"pattern": "dense"}),
                "An exponent outside 1.8 to 2.2 over these lengths.",
            ),
            Claim(
                "Time and memory of a window grow in proportion to the length.",
                _BELTAGY,
                All(
                    Exponent(TIME, "length", 0.7, 1.3, {"pattern": "local"}),
                    Exponent(BYTES, "length", 0.9, 1.1, {"pattern": "local"}),
                ),
                "An exponent outside of these bounds.",
                judged_at=("full",),
            ),
            Claim(
                "At 2,048 tokens a window takes at most half the time of dense attention.",
                _BELTAGY,
                Ratio(TIME, _at("dense"), _at("local"), 2.0),
                "A window that takes more than half the time.",
            ),
            Claim(
                "A global position adds at most a quarter to the time of a window.",
                _BELTAGY,
                Ratio(TIME, _at("local"), _at("global"), 0.8),
                "A window with a global position that takes more than 1.25 times as long.",
            ),
            Claim(
                "A strided pattern sees n√n pairs.",
                _CHILD,
                Exponent(PAIRS, "length", 1.3, 1.7, {"pattern": "strided"}),
                "An exponent outside 1.3 to 1.7.",
                judged_at=("full",),
                revised=_ROOT,
            ),
            Claim(
                "A pattern that sees fewer pairs takes less time, whatever computes it: at 2,048 "
                "tokens a strided one takes at most two thirds of the time of dense attention.",
                _CHILD,
                Ratio(TIME, _at("dense"), _at("strided"), 1.5),
                "A strided pattern that takes more than two thirds of the time.",
                _TIMES,
                revised=_ROOT,
            ),
        ),
        plots=(
            Plot(TIME, "length", "pattern", logarithmic=True),
            Plot(BYTES, "length", "pattern", logarithmic=True),
        ),
    ),
)
