"""Contenders in processes of their own that take turns, and what their blocks come to."""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence


def serve(block: Callable[[int], float]) -> None:
    """In a contender: answer each line "n" with the figure of block n, until the input ends."""
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(block(int(line))), flush=True)


def take_turns(commands: dict[str, Sequence[str]], blocks: int) -> dict[str, list[float]]:
    """Run the contenders block by block; one unmeasured block of each comes first."""
    running = {
        name: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name, command in commands.items()
    }
    for name, process in running.items():
        if _answer(name, process) != "ready":
            raise SystemExit(f"{name} did not say that it is ready")
    figures: dict[str, list[float]] = {name: [] for name in running}
    for number in range(blocks + 1):
        for name, process in running.items():
            assert process.stdin is not None
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            figure = float(_answer(name, process))
            if number:
                figures[name].append(figure)
                print(f"block {number}/{blocks}  {name:<24} {figure:10,.0f}", file=sys.stderr)
    for process in running.values():
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    return figures


def table(figures: dict[str, list[float]], unit: str) -> str:
    """Markdown: median, quartiles, and the median of the ratio to the first, block by block."""
    first = next(iter(figures.values()))
    lines = [f"| contender | {unit}, median | quartiles | first ÷ this |", "|---|---|---|---|"]
    for name, values in figures.items():
        low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
        ratio = statistics.median(a / b for a, b in zip(first, values, strict=True))
        lines.append(f"| {name} | {middle:,.0f} | {low:,.0f}–{high:,.0f} | {ratio:.2f} |")
    return "\n".join(lines)


def _answer(name: str, process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{name} ended early, with exit code {process.wait()}")
    return str(json.loads(line))
