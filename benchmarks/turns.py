"""Contenders in processes of their own that take turns, and what their blocks come to.

A contender says "ready", reads the number of a block from its input, and answers with the figure of
that block, until the input ends. This file needs nothing but Python, so that every peer's
environment can read it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TypeVar

Batch = TypeVar("Batch")


class Talk:
    """In a contender: what it says. From now on whatever others print goes to the error output."""

    def __init__(self) -> None:
        self._output, sys.stdout = sys.stdout, sys.stderr

    def say(self, answer: object) -> None:
        """One line of JSON."""
        print(json.dumps(answer), file=self._output, flush=True)


def serve(block: Callable[[int], float]) -> None:
    """In a contender: answer each line "n" with the figure of block n, until the input ends."""
    talk = Talk()
    talk.say("ready")
    for line in sys.stdin:
        talk.say(block(int(line)))


class Pace:
    """In a contender whose training has a loop of its own: tokens a second, block by block.

    A block is over with the first update that ends `seconds` or more after it began. Between two
    blocks the loop stands still, inside `updated`. Where the input ends, so does the process:
    nobody wants its checkpoints.
    """

    def __init__(self, seconds: float) -> None:
        self._talk, self._seconds = Talk(), seconds
        self._tokens, self._begun = 0, 0.0

    def begin(self) -> None:
        """Everything is built; the first update is next."""
        self._talk.say("ready")
        self._wait()

    def updated(self, tokens: int) -> None:
        """An update is done, of so many real target tokens."""
        self._tokens += tokens
        passed = time.perf_counter() - self._begun
        if passed >= self._seconds:
            self._talk.say(self._tokens / passed)
            self._wait()

    def through(self, batches: Iterable[Batch], tokens: Callable[[Batch], int]) -> Iterator[Batch]:
        """The batches, for a loop that makes an update of each and then asks for the next."""
        self.begin()
        for batch in batches:
            seen = tokens(batch)  # before the loop gets at it
            yield batch
            self.updated(seen)

    def _wait(self) -> None:
        if not sys.stdin.readline():
            os._exit(0)
        self._tokens, self._begun = 0, time.perf_counter()


@dataclass(frozen=True)
class Turns:
    """The figures of those that came through, block by block, and why the others did not."""

    figures: dict[str, list[float]] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)


def turns(
    commands: Mapping[str, Sequence[str]],
    blocks: int,
    environment: Mapping[str, str] | None = None,
) -> Turns:
    """Run the contenders block by block; one unmeasured block of each comes first.

    environment: variables that they see beside ours. A contender that ends early is lost, and the
    others go on; the last thing that it said on its error output is the reason.
    """
    running: dict[str, _Contender] = {}
    figures: dict[str, list[float]] = {}
    lost: dict[str, str] = {}

    def requested(name: str, question: str | None) -> object:
        """Its answer; None where it is lost, which is then noted."""
        answer = running[name].requested(question)
        if answer is None:
            said = running.pop(name).ended()
            lost[name] = said[-1]
            figures.pop(name, None)
            print("\n".join([f"{name} is lost:", *said[-20:]]), file=sys.stderr)
        return answer

    try:
        for name, command in commands.items():
            running[name] = _Contender(command, {**os.environ, **(environment or {})})
        for name in list(running):
            if requested(name, None) is not None:
                figures[name] = []
        for number in range(blocks + 1):
            for name in list(running):
                figure = requested(name, f"{number}\n")
                if number and figure is not None:
                    figures[name].append(float(str(figure)))
                    reported = f"block {number}/{blocks}  {name:<28} {figures[name][-1]:10,.0f}"
                    print(reported, file=sys.stderr)
    finally:
        for contender in running.values():
            contender.ended()
    return Turns(figures, lost)


def table(figures: Mapping[str, Sequence[float]], unit: str, first: str) -> str:
    """Markdown: median, quartiles, and the median of the ratio to the first, block by block."""
    lines = [f"| contender | {unit}, median | quartiles | first ÷ this |", "|---|---|---|---|"]
    for name, values in figures.items():
        low, middle, high = quartiles(values)
        ratio = (
            f"{statistics.median(ratios(figures[first], values)):.2f}" if first in figures else "–"
        )
        lines.append(f"| {name} | {middle:,.0f} | {low:,.0f}–{high:,.0f} | {ratio} |")
    return "\n".join(lines)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def ratios(of: Sequence[float], to: Sequence[float]) -> list[float]:
    """of ÷ to, block by block: what slows the machine down for a while slows both."""
    return [one / other for one, other in zip(of, to, strict=True)]


class _Contender:
    """A process, its two pipes, and what it writes on its error output."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            encoding="utf-8", env=environment,
        )  # fmt: skip

    def requested(self, question: str | None) -> object:
        """What it answers, to nothing as well; None where it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if question is not None:
            try:
                self._process.stdin.write(question)
                self._process.stdin.flush()
            except BrokenPipeError:
                return None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def ended(self) -> list[str]:
        """Let it end; what it said on its error output, and how it ended if that says more."""
        self._process.communicate()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").splitlines()
        self._errors.close()
        said = [line.strip() for line in lines if line.strip()]
        code = self._process.returncode
        if code < 0:  # what it said last is not why
            said.append(f"killed by signal {-code}")
        return said or [f"ended early, with exit code {code}"]
