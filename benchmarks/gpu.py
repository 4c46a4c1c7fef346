"""A GPU: attention statistics beside one fused forward pass, training and translating beside loops.

    python benchmarks/gpu.py                 # some minutes; writes results_gpu.json
    python benchmarks/gpu.py --parts agreement rows
    python benchmarks/gpu.py --dry-run       # every part at toy size on a CPU, in the interpreter

Contenders take turns. A ratio is the median of the ratios turn by turn. A part that fails is
written down with its reason, and the others go on. After `--minutes`, and in a run of all parts
after the seconds of a part, no further case begins and no further turn. What is left out is written
down, too: a card may be lent for a quarter of an hour.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

HERE = Path(__file__).resolve().parent
DRY = "--dry-run" in sys.argv[1:]
if DRY:
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from gpu_models import (  # noqa: E402
    CASES,
    DEFAULT_CASES,
    case_name,
    named_cases,
    training,
    translation,
)
from gpu_observe import engine, observing, watching  # noqa: E402
from gpu_recipes import base, tiny  # noqa: E402
from torch import Tensor  # noqa: E402

from attlas.patterns import (  # noqa: E402
    Pattern,
    causal,
    either,
    everywhere,
    landmarks,
    window,
)
from attlas.recording import FactoredAttentionMap  # noqa: E402
from attlas.recording.maps import row_kernels  # noqa: E402

ROWS = (
    "entropy", "max_logit", "max_weight", "argmax", "distance", "num_visible",
    "first_weight", "self_weight",
)  # fmt: skip


Case = TypeVar("Case")

TOO_LATE = "the time was over: ask for this part by --parts, or for more --minutes"


@dataclass(frozen=True)
class Shape:
    """Queries and keys of one layer of one text."""

    tokens: int
    heads: int
    kv_heads: int
    width: int
    dtype: torch.dtype
    pattern: Pattern = causal

    def map(self, device: torch.device, seed: int = 1) -> FactoredAttentionMap:
        """A map of random numbers."""
        generator = torch.Generator(device).manual_seed(seed)
        query, keys = (
            torch.randn(
                (1, heads, self.tokens, self.width),
                generator=generator, device=device, dtype=self.dtype,
            )
            for heads in (self.heads, self.kv_heads)
        )  # fmt: skip
        return FactoredAttentionMap(query, keys, self.width**-0.5, self.pattern, 0)

    def __str__(self) -> str:
        kind = str(self.dtype).removeprefix("torch.")
        return (
            f"{self.tokens:,} tokens x {self.heads} heads ({self.kv_heads} of keys) x "
            f"{self.width}, {kind}, {self.pattern}"
        )


def fused(attention_map: FactoredAttentionMap) -> Tensor:
    """One forward pass of PyTorch's fused attention, with the keys as values."""
    query, keys = attention_map.query, attention_map.keys
    return F.scaled_dot_product_attention(
        query, keys, keys, is_causal=attention_map.pattern == causal,
        scale=attention_map.scale, enable_gqa=query.shape[1] != keys.shape[1],
    )  # fmt: skip


class Machine:
    """The device, and a clock that waits for it.

    Args:
        minutes: After so many no further case begins.
        multi30k: The folder of that corpus.
    """

    def __init__(self, minutes: float, multi30k: Path = Path("multi30k")) -> None:
        self.multi30k = multi30k
        self._end = self._part_end = time.perf_counter() + 60 * minutes
        if not DRY and not torch.cuda.is_available():
            raise SystemExit("no CUDA device: try --dry-run")
        self.device = torch.device("cpu" if DRY else "cuda")
        if DRY:
            row_kernels.is_available = lambda device: True

    @property
    def has_time(self) -> bool:
        """Return True if another case may begin."""
        return time.perf_counter() < min(self._end, self._part_end)

    @property
    def seconds_left(self) -> float:
        """Until the end of the whole run."""
        return max(0.0, self._end - time.perf_counter())

    def begin_part(self, seconds: float | None) -> None:
        """Let the next part have so many seconds; None = all that are left."""
        self._part_end = self._end if seconds is None else time.perf_counter() + seconds

    def cases(self, every: Iterable[Case], found: dict[str, Any]) -> Iterator[Case]:
        """Those for which there is time; the others are written down."""
        for case in every:
            if self.has_time:
                yield case
            else:
                found.setdefault("left out, as the time was over", []).append(str(case))

    def seconds(self, work: Callable[[], Any]) -> float:
        self._wait()
        begin = time.perf_counter()
        work()
        self._wait()
        return time.perf_counter() - begin

    def compare(self, repeats: int, **works: Callable[[], Any]) -> dict[str, Any]:
        """Seconds of each by turns, and ratios to the first; the first turn is not counted."""
        turns: list[dict[str, float]] = []
        planned = 1 if DRY else repeats + 1
        while len(turns) < planned and (len(turns) < 2 or self.has_time):
            turns.append({name: self.seconds(work) for name, work in works.items()})
        left_out = planned - len(turns)
        turns = turns[1:] or turns
        first = next(iter(works))
        return {
            "seconds": {name: [turn[name] for turn in turns] for name in works},
            "median": {name: median(turn[name] for turn in turns) for name in works},
            "ratio": {
                name: median(turn[name] / turn[first] for turn in turns)
                for name in works
                if name != first
            },
        } | ({"turns left out, as the time was over": left_out} if left_out else {})

    def memory(self, work: Callable[[], Any]) -> tuple[float, int | None]:
        """Seconds of one call, and how many bytes of the device it took besides what was there."""
        if DRY:
            return self.seconds(work), None
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        seconds = self.seconds(work)
        return seconds, torch.cuda.max_memory_allocated() - before

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


NO_KERNELS = {
    "engine": "blocks", "left out": "the kernels do not run here, and blocks would take minutes"
}  # fmt: skip


def by_blocks(work: Callable[[], Any]) -> Any:
    """The same without the kernels."""
    available = row_kernels.is_available
    row_kernels.is_available = lambda device: False
    try:
        return work()
    finally:
        row_kernels.is_available = available


def size(real: int, toy: int) -> int:
    """The number of a real run, or of a dry one."""
    return toy if DRY else real


# The parts.


def agreement(machine: Machine) -> dict[str, Any]:
    """The largest differences of the kernels from float64 and from the blocks, on this device."""
    found: dict[str, Any] = {}
    for dtype in machine.cases((torch.bfloat16, torch.float32, torch.float16), found):
        for pattern in (everywhere, causal, either(window(5), landmarks(0))):
            shape = Shape(size(1500, 18), 4, 2, size(64, 8), dtype, pattern)
            attention_map = shape.map(machine.device)
            ours = attention_map.summary(*ROWS, "received")
            twin = by_blocks(partial(attention_map.summary, *ROWS, "received"))
            errors = {}
            for name in (*ROWS, "received"):
                difference = getattr(ours, name).double() - getattr(twin, name).double()
                errors[name] = float(difference.abs().max())
            query, keys = attention_map.query.double(), attention_map.keys.double()
            scores = query @ keys.repeat_interleave(2, 1).mT * attention_map.scale
            seen = pattern.mask(shape.tokens, shape.tokens, device=machine.device)
            weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
            entropy = -torch.special.xlogy(weights, weights).sum(-1)
            found[str(shape)] = {
                "engine": engine(attention_map),
                "from blocks": errors,
                "entropy from float64": float((ours.entropy.double() - entropy).abs().max()),
                "received from float64": float(
                    (ours.received.double() - weights.sum(-2).cpu()).abs().max()
                ),
            }
    return found


def rows(machine: Machine) -> dict[str, Any]:
    """Row statistics, also with column sums, beside one fused forward pass: goals 1.3 and 2.5."""
    shapes = [
        Shape(size(8192, 18), size(16, 2), size(16, 1), size(128, 8), torch.bfloat16),
        Shape(size(32768, 18), size(16, 2), size(16, 2), size(128, 8), torch.bfloat16),
        Shape(size(32768, 18), size(16, 2), size(16, 2), size(64, 8), torch.bfloat16, everywhere),
        Shape(size(32768, 18), 1, 1, size(64, 8), torch.float32, everywhere),
    ]
    found: dict[str, Any] = {}
    for shape in machine.cases(shapes, found):
        attention_map = shape.map(machine.device)
        if engine(attention_map) != "kernels":
            found[str(shape)] = NO_KERNELS
            continue
        found[str(shape)] = {"engine": engine(attention_map)} | machine.compare(
            5,
            fused=partial(fused, attention_map),
            entropy=partial(attention_map.summary, "entropy"),
            rows=partial(attention_map.summary, *ROWS),
            received=partial(attention_map.summary, *ROWS, "received"),
        )
    return found


def blocks(machine: Machine) -> dict[str, Any]:
    """The kernels beside the blocks, which are their twin."""
    shape = Shape(size(8192, 18), size(16, 2), size(16, 2), size(64, 8), torch.bfloat16)
    attention_map = shape.map(machine.device)
    question = partial(attention_map.summary, *ROWS, "received")
    return {str(shape): {"engine": engine(attention_map)} | machine.compare(
        2,
        kernels=question,
        blocks=partial(by_blocks, question),
        topk=partial(attention_map.topk, 4),
    )}  # fmt: skip


def _long(machine: Machine, tokens: int, heads: int, kv_heads: int) -> dict[str, Any]:
    shape = Shape(tokens, heads, kv_heads, size(128, 8), torch.bfloat16)
    attention_map = shape.map(machine.device)
    if engine(attention_map) != "kernels":
        return {str(shape): NO_KERNELS}
    few = replace(attention_map, query=attention_map.query[:, :, :128])
    few.summary("entropy", "max_logit")  # the compiler's time is not the kernel's
    few.summary("received")
    found: dict[str, Any] = {"engine": engine(attention_map)}
    questions = {"rows": ("entropy", "max_logit"), "received": ("received",)}
    for name, names in machine.cases(questions.items(), found):
        seconds, memory = machine.memory(partial(attention_map.summary, *names))
        found[name] = {"seconds": seconds, "bytes besides queries and keys": memory}
    return {str(shape): found}


def long(machine: Machine) -> dict[str, Any]:
    """131,072 tokens × 32 heads: goal, seconds."""
    return _long(machine, size(131_072, 20), size(32, 2), size(8, 1))


def million(machine: Machine) -> dict[str, Any]:
    """1,048,576 tokens, one layer of 32 heads: goal, completed in bounded memory."""
    return _long(machine, size(1_048_576, 33), size(32, 2), size(8, 1))


def overview(machine: Machine) -> dict[str, Any]:
    """The picture of 131,072² weights in 1,024 cells a side by maxima: goal 0.3 s; and a window."""
    found: dict[str, Any] = {}
    tokens, cells = size(131_072, 21), size(1024, 3)
    for dtype in machine.cases((torch.bfloat16, torch.float32), found):
        shape = Shape(tokens, 1, 1, size(64, 8), dtype, everywhere)
        attention_map = shape.map(machine.device)
        if engine(attention_map) != "kernels":
            found[str(shape)] = NO_KERNELS
            continue
        window = (tokens // 2, tokens // 2 + tokens // 16 + cells)
        found[str(shape)] = {"engine": engine(attention_map)} | machine.compare(
            3,
            fused=partial(fused, attention_map),
            overview=partial(attention_map.pool, shape=(cells, cells), how="max"),
            window=partial(attention_map.pool, window, window, (cells, cells), "max"),
        )
    return found


PARTS: Mapping[str, Callable[[Machine], dict[str, Any]]] = {
    part.__name__: part
    for part in (
        agreement, rows, long, million, overview, observing, translation, training, tiny, watching,
        blocks, base,
    )
}  # fmt: skip
"""The shortest of those that matter most come first."""

SECONDS = {
    "agreement": 50, "rows": 40, "long": 20, "million": 85, "overview": 20, "observing": 25,
    "translation": 45, "training": 105, "tiny": 50, "watching": 20, "blocks": 20,
}  # fmt: skip
"""Of each part of a run that names none, eight minutes together; base is asked for by name."""


def card() -> dict[str, Any]:
    """The device, its driver and the versions."""
    found: dict[str, Any] = {
        "python": platform.python_version(), "torch": torch.__version__,
        "cuda": torch.version.cuda, "machine": platform.machine(), "dry_run": DRY,
    }  # fmt: skip
    try:
        import triton
    except ImportError:
        found["triton"] = None
    else:
        found["triton"] = triton.__version__
    if torch.cuda.is_available():
        given = torch.cuda.get_device_properties(0)
        found |= {"card": given.name, "bytes": given.total_memory}
        found["driver"] = said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    found["commit"] = said("git", "-C", str(HERE), "describe", "--always", "--dirty=+")
    found["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    return found


def said(*command: str) -> str | None:
    """What a command prints; None where there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def main() -> int:
    """Run the parts, write their results; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), help="default: all but base")
    parser.add_argument(
        "--cases", nargs="+", metavar="CASE",
        help=f"of training, or all: {', '.join(map(repr, map(case_name, CASES)))}; "
        f"default: {', '.join(map(repr, map(case_name, DEFAULT_CASES)))}",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="toy sizes on a CPU")
    parser.add_argument("--minutes", type=float, default=8.0, help="no case begins later")
    parser.add_argument("--multi30k", type=Path, default=Path("multi30k"), help="its folder")
    parser.add_argument("--out", type=Path, help="default: results_gpu.json; of a dry run, nowhere")
    given = parser.parse_args()
    cases = named_cases(given.cases, parser.error)
    parts = PARTS | {"training": partial(training, cases=cases)}
    machine = Machine(given.minutes, given.multi30k)
    results: dict[str, Any] = {"of": card(), "parts": {}}
    out = given.out or (None if given.dry_run else HERE / "results_gpu.json")
    failed = False
    for name in given.parts or SECONDS:
        begin = time.perf_counter()
        machine.begin_part(None if given.parts or given.cases else SECONDS[name])
        try:
            found = parts[name](machine) if machine.has_time else {"left out": TOO_LATE}
        except Exception as error:
            failed = True
            found = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
            print(f"{name} failed: {error}", file=sys.stderr)
        results["parts"][name] = found
        print(f"{name}: {time.perf_counter() - begin:.1f} s", flush=True)
        print(json.dumps(found, indent=1), flush=True)
        if out is not None:  # after each part: a card may be taken away
            out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
