"""One measurement as it is written down: who took part, under which conditions, what came out."""

import json
import shlex
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from turns import Turns, quartiles, ratios


def measurement(
    suite: str,
    name: str,
    unit: str,
    threads: int,
    played: Turns,
    *,
    first: str,
    absent: Mapping[str, str] | None = None,
    versions: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """Figures of which more is better, as JSON takes them.

    first: the contender that the others are compared with, which stands before them: `ratio` is the
    median over the blocks of the first ÷ this, with its quartiles; where it has no figures, there
    are no ratios. absent: contenders that never began, and why; versions: of what the contenders
    run on, by their names.
    """
    contenders: list[dict[str, Any]] = []
    for contender, blocks in played.figures.items():
        low, middle, high = (_short(value) for value in quartiles(blocks))
        one = {
            "name": contender,
            "version": (versions or {}).get(contender),
            "median": middle,
            "quartiles": [low, high],
            "blocks": [_short(value) for value in blocks],
        }
        if first in played.figures:
            of_first = ratios(played.figures[first], blocks)
            one["ratio"] = round(statistics.median(of_first), 3)
            one["ratio_quartiles"] = [round(quartiles(of_first)[i], 3) for i in (0, 2)]
        contenders.append(one)
    for contender, why in {**(absent or {}), **played.lost}.items():
        contenders.append({"name": contender, "lost": why})
    return {
        "suite": suite,
        "name": name,
        "unit": unit,
        "threads": threads,
        "command": shlex.join(command),
        "contenders": sorted(contenders, key=lambda one: one["name"] != first),
    }


def called(argv: Sequence[str]) -> list[str]:
    """A script's command line, for anybody to call.

    Without --json, and with the last two names of every path: where things lay is no matter.
    """
    script, *words = argv
    if "--json" in words:
        place = words.index("--json")
        del words[place : place + 2]
    return ["python", f"benchmarks/{PurePath(script).name}", *map(_anywhere, words)]


def write(found: Sequence[Mapping[str, Any]], target: Path | None) -> None:
    """All measurements so far, as JSON, where that was asked for; the file is written whole."""
    if target is not None:
        begun = target.with_suffix(".begun")
        begun.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        begun.replace(target)


def _anywhere(word: str) -> str:
    """A path, or KEY=PATH, with no more than the last two names of the path."""
    key, sign, path = word.rpartition("=")
    if "/" not in path or '"' in path:
        return word
    return f"{key}{sign}{PurePath(*PurePath(path).parts[-2:])}"


def _short(value: float) -> float:
    """Four digits say enough."""
    return float(f"{value:.4g}")
