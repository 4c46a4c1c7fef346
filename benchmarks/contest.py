"""Contenders on the corpus, in turn: what training_speed.py and search_speed.py share."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import corpus
from environments import environment
from measurement import called, measurement
from turns import table, turns

HERE = Path(__file__).resolve().parent
CORPUS = HERE / ".corpus"


@dataclass(frozen=True)
class Contender:
    """name: in the table; script: contenders/SCRIPT.py; model: as the script calls it.

    peer: whose environment it runs in (None = attlas's, which has transformers as well); package:
    whose version is told.
    """

    name: str
    script: str
    model: str
    peer: str | None = None
    package: str = "attlas"


def parser(description: str | None) -> argparse.ArgumentParser:
    """What every suite on the corpus may be asked."""
    requested = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    requested.add_argument(
        "--data", type=Path, nargs=2, required=True, metavar=("SOURCE", "TARGET")
    )
    requested.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    requested.add_argument("--blocks", type=int, default=15)
    requested.add_argument("--seconds", type=float, default=6.0, help="of a block, at least")
    requested.add_argument("--tokens", type=int, default=4096, help="of a batch, padding included")
    requested.add_argument("--json", type=Path, help="where to write what came out")
    return requested


def contest(
    suite: str,
    title: str,
    unit: str,
    contenders: Sequence[Contender],
    threads: int,
    options: argparse.Namespace,
    more: Sequence[str] = (),
) -> dict[str, Any]:
    """One measurement, printed as well; the first of the contenders is the one to compare with.

    more: what each contender is told besides.
    """
    made = corpus.made(tuple(options.data), CORPUS)
    absent: dict[str, str] = {}
    versions: dict[str, str] = {}
    commands: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, one in enumerate(contenders):
            python = sys.executable
            if one.peer is None:
                versions[one.name] = version(one.package)
            else:
                found = environment(one.peer)
                if found.python is None:
                    absent[one.name] = found.trouble or "does not install"
                    continue
                python, versions[one.name] = found.python, found.versions[one.package]
            commands[one.name] = [
                python, str(HERE / "contenders" / f"{one.script}.py"),
                "--corpus", str(made), "--folder", f"{folder}/{number}", "--model", one.model,
                "--tokens", str(options.tokens), "--threads", str(threads),
                "--seconds", str(options.seconds), *more,
            ]  # fmt: skip
        played = turns(commands, options.blocks, {"OMP_NUM_THREADS": str(threads)})
    first = contenders[0].name
    print(f"\n{title}, threads: {threads}\n\n{table(played.figures, unit, first)}", flush=True)
    return measurement(
        suite, title, unit, threads, played, first=first, absent=absent, versions=versions,
        command=called(sys.argv),
    )  # fmt: skip
