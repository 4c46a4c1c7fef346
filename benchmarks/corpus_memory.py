"""How much memory, and how many seconds, a training of many pairs takes to start and to resume.

python benchmarks/corpus_memory.py 300000 1000000
python benchmarks/corpus_memory.py 10000000 --folder /big/disk --json found.json
python benchmarks/corpus_memory.py 10000000 --text en-de.tsv train.en train.de --numbers 0.25

The pairs are made of the shipped text, or of other pairs: each joins one to three of them, drawn
with a seed. A share of them (`--numbers`) ends in a number below ten millions on both sides, so
that there are more different words than a vocabulary is counted from. 20 updates of a small model
are trained, then the run is resumed for another one.

start, resume    seconds from the command to the first update, imports included
computed         the seconds of all cores until then, which other work on the machine changes less
peak             the most resident memory of the process, and that of all its processes together, in
                 which a page that several share counts once; both with the pages of mapped files
run              the bytes of the run folder
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attlas.data import Pair, ShippedData, read_pairs

ROOT = Path(__file__).resolve().parents[1]
SEED = 1
STEPS = 20
LARGEST = 10_000_000  # number
PAUSE = 0.1  # seconds between two looks at the memory

RECIPE = """
[data]
kind = "files"
train = ["train.en", "train.de"]
valid = ["valid.en", "valid.de"]
[vocabulary]
kind = "{kind}"
size = 8000
sampling = {sampling}
[batching]
max_tokens = 2048
[model]
kind = "transformer"
embed_dim = 64
num_heads = 4
ffn_dim = 128
encoder_layers = 1
decoder_layers = 1
[training]
max_steps = {steps}
log_every = 1
learning_rate = 1e-3
[training.validation]
translate = false
criterion = "loss"
"""


def written(folder: Path, pairs: int, text: Sequence[str], numbers: float) -> None:
    """Write so many pairs, and 200 to validate by, unless they are there."""
    done, made_of = folder / "done", f"{pairs} {[*text]} {numbers}"
    if done.is_file() and done.read_text(encoding="utf-8") == made_of:
        return
    shipped = ShippedData()
    known, chance = known_pairs(text), random.Random(f"{SEED} {pairs}")
    folder.mkdir(parents=True, exist_ok=True)
    done.unlink(missing_ok=True)
    sides = [(folder / f"train.{side}").open("w", encoding="utf-8") for side in ("en", "de")]
    for _ in range(pairs):
        parts = chance.choices(known, k=1 + int(3 * chance.random()))
        has_number = numbers > 0 and chance.random() < numbers
        last = f" {int(LARGEST * chance.random())}" if has_number else ""
        for side, file in enumerate(sides):
            file.write(" ".join(pair[side] for pair in parts) + f"{last}\n")
    for file in sides:
        file.close()
    for index, name in enumerate(("en", "de")):
        texts = [pair[index] for pair in shipped.corpus("valid").pairs[:200]]
        text = "".join(f"{line}\n" for line in texts)
        (folder / f"valid.{name}").write_text(text, encoding="utf-8")
    done.write_text(made_of, encoding="utf-8")


def known_pairs(text: Sequence[str]) -> Sequence[Pair]:
    """The pairs of these files, tables or sources followed by their targets; of none, those that
    come with attlas.
    """
    if not text:
        return ShippedData().corpus("train").pairs
    tables = [[path] for path in text if ".tsv" in path]
    sides = [path for path in text if ".tsv" not in path]
    files = [*tables, *map(list, zip(sides[::2], sides[1::2], strict=True))]
    return tuple(pair for names in files for pair in read_pairs(names, None).pairs)


def measured(command: Sequence[str], run: Path, update: int, threads: int) -> dict[str, Any]:
    """Run a training; look at its memory until it ends, and at its journal until it has trained
    this update.
    """
    begin, first, computed = time.perf_counter(), None, 0.0
    most = most_of_all = 0
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": str(threads),
    }
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        while process.poll() is None:
            time.sleep(PAUSE)
            most = max(most, _resident(process.pid))
            most_of_all = max(most_of_all, sum(map(_share, _descendants(process.pid))))
            if first is None:
                computed = _computed(process.pid) or computed
                if _has_trained(run / "metrics.jsonl", update):
                    first = time.perf_counter() - begin
        if process.returncode:
            said.seek(0)
            sys.exit(f"{' '.join(command)}\n{said.read()}")
    if first is None:  # between the last look and the end
        first = time.perf_counter() - begin
    return {
        "seconds": round(first, 1),
        "computed": round(computed, 1),
        "peak": most,
        "peak_of_all": most_of_all,
    }


def _has_trained(journal: Path, update: int) -> bool:
    try:
        lines = journal.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(f'"event": "trained", "update": {update},' in line for line in lines)


def _resident(process: int) -> int:
    return _kilobytes(Path(f"/proc/{process}/status"), "VmHWM:")


def _share(process: int) -> int:
    return _kilobytes(Path(f"/proc/{process}/smaps_rollup"), "Pss:")


def _computed(process: int) -> float:
    """The seconds of a process and of its children that have ended; 0 where it has ended itself."""
    try:
        content = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    ticks = content.rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _kilobytes(path: Path, name: str) -> int:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:  # it has ended
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def _descendants(process: int) -> list[int]:
    try:
        path = Path(f"/proc/{process}/task/{process}/children")
        children = [int(word) for word in path.read_text(encoding="utf-8").split()]
    except OSError:
        children = []
    return [process, *(other for child in children for other in _descendants(child))]


def size_of(folder: Path) -> int:
    """The bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def of_size(folder: Path, pairs: int, options: argparse.Namespace) -> dict[str, Any]:
    """Start and resume a training of so many pairs."""
    data = folder / f"{pairs}-pairs"
    written(data, pairs, options.text, options.numbers)
    recipe = data / "recipe.toml"
    settings = {"kind": options.kind, "sampling": options.sampling, "steps": STEPS}
    recipe.write_text(RECIPE.format(**settings), encoding="utf-8")
    with tempfile.TemporaryDirectory(dir=folder) as name:
        run = Path(name) / "run"
        command = [sys.executable, "-m", "attlas", "train", str(recipe), "--out", str(run)]
        start = measured(command, run, 1, options.threads)
        more = ["--set", f"training.max_steps={STEPS + 1}"]
        resume = measured([*command, *more], run, STEPS + 1, options.threads)
        return {
            "pairs": pairs,
            "threads": options.threads,
            "kind": options.kind,
            "sampling": options.sampling,
            "numbers": options.numbers,
            "text": size_of(data),
            "run": size_of(run),
            "start": start,
            "resume": resume,
        }


def row(found: dict[str, Any]) -> str:
    """A line of the table."""
    start, resume = found["start"], found["resume"]
    return (
        f"{found['pairs']:>12,} pairs: start {_seconds(start)}, {_giga(start)}; "
        f"resume {_seconds(resume)}, {_giga(resume)}; run {found['run'] / 1e6:,.0f} MB"
    )


def _seconds(part: dict[str, Any]) -> str:
    return f"{part['seconds']:6.1f} s (computed {part['computed']:.1f})"


def _giga(part: dict[str, Any]) -> str:
    return f"peak {part['peak'] / 1e9:.2f} GB ({part['peak_of_all'] / 1e9:.2f} of all)"


def arguments_parser() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=int, nargs="+")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--kind", default="bpe", choices=("bpe", "unigram", "words"))
    parser.add_argument("--sampling", type=float, default=0.0)
    parser.add_argument("--text", nargs="+", default=[], help="files of pairs to make these of")
    parser.add_argument("--numbers", type=float, default=0.0, help="the share that ends in one")
    parser.add_argument("--folder", type=Path, help="for the data, which is kept there")
    parser.add_argument("--json", type=Path, help="write what was found into this file")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each size, and print a line of each."""
    options = arguments_parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        found = []
        for pairs in options.pairs:
            found.append(of_size(folder, pairs, options))
            print(row(found[-1]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
