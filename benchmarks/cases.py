"""Ways to compute the same, case by case: what layers_speed.py and observe_speed.py share.

Every contender of a suite is a process of its own, and they take turns case by case. Each checks
first that it computes what the formula says. Peak memory is what one pass adds to a process that
holds the inputs already, each in a process of its own; --quick leaves it out, and so does a system
that is not Linux.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from measurement import called, measurement, write
from torch import Tensor
from turns import Turns, serve, turns

PASSES = ("forward", "forward and backward")
Shape = tuple[int, ...]
MARK = Path("/proc/self/clear_refs")  # who writes "5" there begins the high-water mark anew


@dataclass(frozen=True)
class Work:
    """What is timed, and the tensors whose gradients count."""

    run: Callable[[], Tensor]
    leaves: Sequence[Tensor]

    def forward(self) -> Tensor:
        """No gradients."""
        with torch.no_grad():
            return self.run()

    def backward(self) -> Tensor:
        """All gradients."""
        out = self.run()
        torch.autograd.grad(out, self.leaves, torch.ones_like(out))
        return out

    def once(self, which: str) -> Callable[[], Tensor]:
        """The function of this pass."""
        return self.forward if which == PASSES[0] else self.backward


@dataclass(frozen=True)
class Suite:
    """Contenders, ours first; the shapes of --quick, and those that come beside them otherwise.

    formula: what all contenders compute, but `others`. memory: the shapes whose peak is measured;
    blocks: at most so many, where a call takes long.
    """

    axes: str
    contenders: dict[str, Callable[[Shape], Work]]
    formula: Callable[[Shape], Work]
    quick: tuple[Shape, ...]
    more: tuple[Shape, ...] = ()
    memory: tuple[Shape, ...] = ()
    others: tuple[str, ...] = ()
    passes: tuple[str, ...] = PASSES
    blocks: int | None = None

    def cells(self, *, quick: bool) -> list[tuple[Shape, str]]:
        """All that is timed."""
        shapes = self.quick if quick else (*self.quick, *self.more)
        return [(shape, which) for shape in shapes for which in self.passes]


def drawn(*shapes: Shape) -> list[Tensor]:
    """Leaves, the same in every process."""
    torch.manual_seed(1)
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def check(suite: Suite, contender: str) -> None:
    """That it computes what the formula says, in the smallest case."""
    if contender not in suite.others:
        shape = suite.quick[0]
        found, expected = (
            make(shape).forward() for make in (suite.contenders[contender], suite.formula)
        )
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def contend(suite: Suite, contender: str, *, quick: bool, seconds: float) -> None:
    """Be this contender: block 0 warms up, block n is one of the cells in turn, in calls/s."""
    check(suite, contender)
    cells = suite.cells(quick=quick)
    works = {shape: suite.contenders[contender](shape) for shape, _ in cells}
    once = [works[shape].once(which) for shape, which in cells]
    repeats = [1] * len(cells)

    def timed(cell: int) -> float:
        start = time.perf_counter()
        for _ in range(repeats[cell]):
            once[cell]()
        return (time.perf_counter() - start) / repeats[cell]

    def block(number: int) -> float:
        if number:
            return 1 / timed((number - 1) % len(cells))
        for cell in range(len(cells)):
            if timed(cell) < seconds:  # the first call sets things up
                repeats[cell] = max(1, round(seconds / timed(cell)))
        return 0.0

    serve(block)


def peak(suite: Suite, contender: str, shape: Shape, which: str) -> float:
    """MiB that one pass adds to what the process holds before it."""
    make = suite.contenders[contender]
    small = (1, *(min(size, 64) for size in shape[1:]))
    make(small).once(which)()  # what the kernels load once does not count
    once = make(shape).once(which)
    MARK.write_text("5", encoding="ascii")
    before = _kibibytes("VmRSS")
    once()
    return (_kibibytes("VmHWM") - before) / 1024


def _kibibytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise SystemExit(f"expected {name} in /proc/self/status; got none")


def played(
    kind: str, name: str, suite: Suite, threads: int, *, quick: bool, blocks: int, seconds: float
) -> list[dict[str, Any]]:
    """All measurements of a suite, which are of this kind."""
    cells = suite.cells(quick=quick)
    blocks = min(blocks, suite.blocks or blocks)
    same = ["--threads", str(threads), "--seconds", str(seconds), *(["--quick"] if quick else [])]
    commands = {
        contender: [sys.executable, sys.argv[0], *same, "--contender", name, contender]
        for contender in suite.contenders
    }
    every = turns(commands, blocks * len(cells))
    found = []
    for place, (shape, which) in enumerate(cells):
        figures = {who: values[place :: len(cells)] for who, values in every.figures.items()}
        one = measurement(
            kind,
            f"{name}, {'×'.join(map(str, shape))}, {which}",
            "calls/s",
            threads,
            Turns(figures, every.lost),
            first=next(iter(suite.contenders)),
            versions=dict.fromkeys(suite.contenders, torch.__version__),
            command=called(sys.argv),
        )
        one |= {"case": name, "axes": suite.axes, "shape": list(shape), "pass": which}
        if shape in suite.memory and not quick and MARK.exists():
            for contender in (some for some in one["contenders"] if "lost" not in some):
                most = _peak_of(commands, contender["name"], shape, which)
                if most is not None:
                    contender["peak_mib"] = most
        found.append(one)
    return found


def _peak_of(
    commands: dict[str, list[str]], contender: str, shape: Shape, which: str
) -> float | None:
    """None where it does not come through, perhaps for want of memory."""
    requested = [*commands[contender], "--peak", ",".join(map(str, shape)), which]
    done = subprocess.run(requested, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        reported = f"{contender}, {shape}, {which}: no peak, exit code {done.returncode}"
        print(reported, file=sys.stderr)
        return None
    return float(json.loads(done.stdout))


def table(measurements: Sequence[dict[str, Any]]) -> str:
    """Markdown: milliseconds, the first's speed ÷ this one's, and peak memory where it counts."""
    lines: list[str] = []
    heading = ""
    for one in measurements:
        if heading != (heading := f"**{one['case']}** ({one['axes']}), threads: {one['threads']}"):
            lines += [
                "",
                heading,
                "",
                "| case | pass | contender | ms, median | quartiles | first ÷ this | peak MiB |",
                "|---|---|---|---|---|---|---|",
            ]
        for contender in one["contenders"]:
            cells = ["×".join(map(str, one["shape"])), one["pass"], contender["name"]]
            if "median" in contender:
                slow, fast = (1000 / value for value in contender["quartiles"])
                cells += [
                    f"{1000 / contender['median']:,.3g}", f"{fast:,.3g}–{slow:,.3g}",
                    f"{contender['ratio']:.2f}" if "ratio" in contender else "–",
                ]  # fmt: skip
            else:
                cells += [contender.get("lost", ""), "", ""]
            cells.append(f"{contender['peak_mib']:,.0f}" if "peak_mib" in contender else "")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines).strip()


def main(description: str | None, kind: str, suites: Mapping[str, Suite]) -> None:
    """Take turns; or, as one of the contenders, answer."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", nargs="*", choices=suites, default=list(suites))
    parser.add_argument("--without", nargs="*", choices=suites, default=[])
    parser.add_argument(
        "--quick", action="store_true", help="fewer shapes, fewer blocks, no memory"
    )
    parser.add_argument("--blocks", type=int, help="per case; 15, or 3 with --quick")
    parser.add_argument("--seconds", type=float, help="of a block; 0.3, or 0.1 with --quick")
    parser.add_argument("--threads", type=int, nargs="*", default=[torch.get_num_threads()])
    parser.add_argument("--json", type=Path, help="write the measurements here")
    parser.add_argument("--contender", nargs=2, metavar=("SUITE", "NAME"), help=argparse.SUPPRESS)
    parser.add_argument("--peak", nargs=2, metavar=("SHAPE", "PASS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    blocks = options.blocks or (3 if options.quick else 15)
    seconds = options.seconds or (0.1 if options.quick else 0.3)
    if options.contender:
        torch.set_num_threads(options.threads[0])
        suite, contender = suites[options.contender[0]], options.contender[1]
        if options.peak:
            shape = tuple(map(int, options.peak[0].split(",")))
            print(json.dumps(peak(suite, contender, shape, options.peak[1])))
        else:
            contend(suite, contender, quick=options.quick, seconds=seconds)
        return
    begun = time.monotonic()
    found: list[dict[str, Any]] = []
    for threads in options.threads:
        for name in (one for one in options.suite if one not in options.without):
            settings = {"quick": options.quick, "blocks": blocks, "seconds": seconds}
            found += played(kind, name, suites[name], threads, **settings)
            write(found, options.json)  # what comes later may fail
    print(table(found))
    print(f"\n{len(found)} cases in {time.monotonic() - begun:.0f} s", file=sys.stderr)
