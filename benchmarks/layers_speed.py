"""How fast the layers are, and how much memory they take, beside how one would write them by hand.

python benchmarks/layers_speed.py --threads 1 2 --json layers.json
python benchmarks/layers_speed.py --quick                  under four minutes, and as rough as that

Every contender of a suite is a process of its own, and they take turns case by case. All compute
the same from the same numbers, which each checks against the formula first; only "dense" of the
suite "banded" sees more, and is there to show what a window saves. "forward" keeps nothing for
gradients; "forward and backward" makes those of the inputs and of the weights.
Peak memory is what one pass adds to a process that holds the inputs already, each in a process of
its own.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from measurement import measurement
from torch import Tensor, nn
from turns import Turns, serve, turns

import attlas
from attlas.layers import Additive, MultiHead
from attlas.patterns import window

RADIUS = 64  # of the windows: 129 slots
PASSES = ("forward", "forward and backward")
Shape = tuple[int, ...]


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


def drawn(*shapes: Shape) -> list[Tensor]:
    """Leaves, the same in every process."""
    torch.manual_seed(1)
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


# --- softmax(q kᵀ / √d) v: (batch, heads, length, width) -----------------------------------------


def softmax_by_hand(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The formula."""
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ value


def dot(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Shape], Work]:
    """One way to compute it."""

    def work(shape: Shape) -> Work:
        leaves = drawn(shape, shape, shape)
        return Work(lambda: attend(*leaves), leaves)

    return work


# --- multi-head self-attention: (batch, length, width), 8 heads ----------------------------------


def multihead(shape: Shape) -> tuple[MultiHead, Tensor]:
    """The layer whose weights all contenders have, and its source."""
    (source,) = drawn(shape)
    return MultiHead(shape[-1], 8).eval(), source


def ours(shape: Shape) -> Work:
    """`MultiHead`."""
    layer, source = multihead(shape)
    return Work(lambda: layer(source, layer.remember(source)), [source, *layer.parameters()])


def ours_with_weights(shape: Shape) -> Work:
    """`MultiHead`, and the weights of each head."""
    layer, source = multihead(shape)

    def run() -> Tensor:
        memory = layer.remember(source)
        layer.weigh(source, memory)
        context: Tensor = layer(source, memory)
        return context

    return Work(run, [source, *layer.parameters()])


def multihead_by_formula(shape: Shape) -> Work:
    """The layer with its weights written out."""
    layer, source = multihead(shape)
    return Work(lambda: layer.explicit(source, layer.remember(source)), [source])


def of_torch(*, weights: bool) -> Callable[[Shape], Work]:
    """`nn.MultiheadAttention` with the same weights."""

    def work(shape: Shape) -> Work:
        layer, source = multihead(shape)
        theirs = nn.MultiheadAttention(shape[-1], 8, batch_first=True).eval()
        linears = (layer.of_query, layer.of_key, layer.of_value)
        with torch.no_grad():
            theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in linears]))
            theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in linears]))
            theirs.out_proj.load_state_dict(layer.of_heads.state_dict())

        def run() -> Tensor:
            context, _ = theirs(
                source, source, source, need_weights=weights, average_attn_weights=False
            )
            found: Tensor = context
            return found

        return Work(run, [source, *theirs.parameters()])

    return work


# --- additive attention: (batch, queries, slots), all widths 256 ---------------------------------


def additive(*, by_hand: bool) -> Callable[[Shape], Work]:
    """`Additive`, or as the formula is usually written down: one tensor of every pair."""

    def work(shape: Shape) -> Work:
        batch, queries, slots = shape
        query, source = drawn((batch, queries, 256), (batch, slots, 256))
        layer = Additive(256, 256, 256).eval()

        def formula() -> Tensor:
            pairs = layer.of_query(query).unsqueeze(2) + layer.of_key(source).unsqueeze(1)
            scores = layer.energy(torch.tanh(pairs)).squeeze(-1)
            return torch.softmax(scores, dim=-1) @ source

        run = formula if by_hand else lambda: layer(query, layer.remember(source))
        return Work(run, [query, source, *layer.parameters()])

    return work


# --- a window, as the length grows: (batch, heads, length, width) --------------------------------


def masked(shape: Shape) -> Work:
    """The fused kernel of torch, with the window as a mask."""
    leaves = drawn(shape, shape, shape)
    places = torch.arange(shape[2])
    seen = (places.unsqueeze(1) - places).abs() <= RADIUS
    return Work(lambda: F.scaled_dot_product_attention(*leaves, attn_mask=seen), leaves)


def banded(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Ours."""
    return attlas.attend(query, key, value, pattern=window(RADIUS))


@dataclass(frozen=True)
class Suite:
    """Contenders, ours first; the shapes of --quick, and those that come beside them otherwise.

    formula: what all contenders compute, but `others`. memory: the shapes whose peak is measured.
    """

    axes: str
    contenders: dict[str, Callable[[Shape], Work]]
    formula: Callable[[Shape], Work]
    quick: tuple[Shape, ...]
    more: tuple[Shape, ...] = ()
    memory: tuple[Shape, ...] = ()
    others: tuple[str, ...] = ()

    def cells(self, *, quick: bool) -> list[tuple[Shape, str]]:
        """All that is timed."""
        shapes = self.quick if quick else (*self.quick, *self.more)
        return [(shape, which) for shape in shapes for which in PASSES]


SUITES = {
    "dot": Suite(
        "batch × heads × length × width",
        {
            "attlas.attend": dot(attlas.attend),
            "F.scaled_dot_product_attention": dot(F.scaled_dot_product_attention),
            "softmax(q kᵀ) v by hand": dot(softmax_by_hand),
        },
        dot(softmax_by_hand),
        quick=((64, 8, 32, 64), (8, 8, 512, 64)),
        more=((1, 8, 2048, 64),),
        memory=((1, 8, 2048, 64),),
    ),
    "multihead": Suite(
        "batch × length × width",
        {
            "MultiHead": ours,
            "nn.MultiheadAttention, need_weights=False": of_torch(weights=False),
            "MultiHead, with weigh": ours_with_weights,
            "nn.MultiheadAttention, need_weights=True": of_torch(weights=True),
        },
        multihead_by_formula,
        quick=((64, 32, 512), (8, 256, 512)),
        more=((2, 1024, 512),),
    ),
    "additive": Suite(
        "batch × queries × slots",
        {
            "Additive": additive(by_hand=False),
            "v · tanh(W q + U k) by hand": additive(by_hand=True),
        },
        additive(by_hand=True),
        quick=((64, 32, 32), (16, 128, 128)),
        more=((64, 1, 32), (4, 512, 512)),
        memory=((16, 128, 128), (4, 512, 512)),
    ),
    "banded": Suite(
        "batch × heads × length × width",
        {
            f"attlas.attend, window({RADIUS})": dot(banded),
            "F.scaled_dot_product_attention, mask": masked,
            "F.scaled_dot_product_attention, dense": dot(F.scaled_dot_product_attention),
        },
        masked,
        quick=((1, 4, 512, 64), (1, 4, 2048, 64), (1, 4, 8192, 64)),
        more=((1, 4, 1024, 64), (1, 4, 4096, 64), (1, 4, 16384, 64)),
        memory=((1, 4, 8192, 64), (1, 4, 16384, 64)),
        others=("F.scaled_dot_product_attention, dense",),
    ),
}  # fmt: skip


def check(suite: Suite, contender: str) -> None:
    """That it computes what the formula says, in the smallest case."""
    if contender not in suite.others:
        shape = suite.quick[0]
        found, wanted = (
            make(shape).forward() for make in (suite.contenders[contender], suite.formula)
        )
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


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
            timed(cell)  # the first call sets things up
            repeats[cell] = max(1, round(seconds / timed(cell)))
        return 0.0

    serve(block)


def peak(suite: Suite, contender: str, shape: Shape, which: str) -> float:
    """MiB that one pass adds to what the process holds before it."""
    make = suite.contenders[contender]
    small = (1, *(min(size, 64) for size in shape[1:]))
    make(small).once(which)()  # what the kernels load once does not count
    once = make(shape).once(which)
    # From here on the system's high-water mark counts anew.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _kibibytes("VmRSS")
    once()
    return (_kibibytes("VmHWM") - before) / 1024


def _kibibytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise SystemExit(f"no {name} in /proc/self/status: peak memory can be measured on Linux alone")


def played(
    name: str, threads: int, *, quick: bool, blocks: int, seconds: float
) -> list[dict[str, Any]]:
    """All measurements of a suite."""
    suite, cells = SUITES[name], SUITES[name].cells(quick=quick)
    same = ["--threads", str(threads), "--seconds", str(seconds), *(["--quick"] if quick else [])]
    commands = {
        contender: [sys.executable, __file__, *same, "--contender", name, contender]
        for contender in suite.contenders
    }
    every = turns(commands, blocks * len(cells))
    found = []
    for place, (shape, which) in enumerate(cells):
        figures = {who: values[place :: len(cells)] for who, values in every.figures.items()}
        one = measurement(
            "layers",
            f"{name}, {'×'.join(map(str, shape))}, {which}",
            "calls/s",
            threads,
            Turns(figures, every.lost),
            versions=dict.fromkeys(suite.contenders, torch.__version__),
        )
        one |= {"case": name, "axes": suite.axes, "shape": list(shape), "pass": which}
        if shape in suite.memory:
            for contender in (some for some in one["contenders"] if "lost" not in some):
                contender["peak_mib"] = _peak_of(commands, contender["name"], shape, which)
        found.append(one)
    return found


def _peak_of(commands: dict[str, list[str]], contender: str, shape: Shape, which: str) -> float:
    asked = [*commands[contender], "--peak", ",".join(map(str, shape)), which]
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
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
                    f"{contender['ratio']:.2f}",
                ]  # fmt: skip
            else:
                cells += [contender.get("lost", ""), "", ""]
            cells.append(f"{contender['peak_mib']:,.0f}" if "peak_mib" in contender else "")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines).strip()


def main() -> None:
    """Take turns; or, as one of the contenders, answer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", nargs="*", choices=SUITES, default=list(SUITES))
    parser.add_argument("--quick", action="store_true", help="fewer shapes, fewer blocks")
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
        suite, contender = SUITES[options.contender[0]], options.contender[1]
        if options.peak:
            shape = tuple(map(int, options.peak[0].split(",")))
            print(json.dumps(peak(suite, contender, shape, options.peak[1])))
        else:
            contend(suite, contender, quick=options.quick, seconds=seconds)
        return
    begun = time.monotonic()
    found = [
        one
        for threads in options.threads
        for name in options.suite
        for one in played(name, threads, quick=options.quick, blocks=blocks, seconds=seconds)
    ]
    print(table(found))
    print(f"\n{len(found)} cases in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
