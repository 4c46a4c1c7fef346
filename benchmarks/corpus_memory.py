"""How much memory, and how many seconds, a training of many pairs takes to start and to resume.

python benchmarks/corpus_memory.py 300000 1000000
python benchmarks/corpus_memory.py 10000000 --folder /big/disk --json found.json

The pairs are made of the shipped text: each joins one to three of its pairs, drawn with a seed. One
update of a small model is trained, then the run is resumed for another one.

start, resume    seconds from the command to the first update, imports included
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

from attlas.data import ShippedData

ROOT = Path(__file__).resolve().parents[1]
SEED = 1
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
max_steps = 1
log_every = 1
learning_rate = 1e-3
[training.validation]
translate = false
criterion = "loss"
"""


def written(folder: Path, pairs: int) -> None:
    """Write so many pairs, and 200 to validate by, unless they are there."""
    done = folder / "done"
    if done.is_file() and done.read_text(encoding="utf-8") == f"{pairs}":
        return
    shipped = ShippedData()
    known, chance = shipped.corpus("train").pairs, random.Random(f"{SEED} {pairs}")
    folder.mkdir(parents=True, exist_ok=True)
    done.unlink(missing_ok=True)
    sides = [(folder / f"train.{side}").open("w", encoding="utf-8") for side in ("en", "de")]
    for _ in range(pairs):
        parts = chance.choices(known, k=1 + int(3 * chance.random()))
        for side, file in enumerate(sides):
            file.write(" ".join(pair[side] for pair in parts) + "\n")
    for file in sides:
        file.close()
    for number, side in enumerate(("en", "de")):
        texts = [pair[number] for pair in shipped.corpus("valid").pairs[:200]]
        text = "".join(f"{line}\n" for line in texts)
        (folder / f"valid.{side}").write_text(text, encoding="utf-8")
    done.write_text(f"{pairs}", encoding="utf-8")


def measured(command: Sequence[str], run: Path, update: int, threads: int) -> dict[str, Any]:
    """Run a training; look at its memory until it ends, and at its journal until it has trained
    this update.
    """
    begin, first = time.perf_counter(), None
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
            if first is None and _has_trained(run / "metrics.jsonl", update):
                first = time.perf_counter() - begin
        if process.returncode:
            said.seek(0)
            sys.exit(f"{' '.join(command)}\n{said.read()}")
    if first is None:  # between the last look and the end
        first = time.perf_counter() - begin
    return {"seconds": round(first, 1), "peak": most, "peak_of_all": most_of_all}


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


def of_size(
    folder: Path, pairs: int, threads: int, kind: str = "bpe", sampling: float = 0.0
) -> dict[str, Any]:
    """Start and resume a training of so many pairs."""
    data = folder / f"{pairs}-pairs"
    written(data, pairs)
    recipe = data / "recipe.toml"
    recipe.write_text(RECIPE.format(kind=kind, sampling=sampling), encoding="utf-8")
    with tempfile.TemporaryDirectory(dir=folder) as name:
        run = Path(name) / "run"
        command = [sys.executable, "-m", "attlas", "train", str(recipe), "--out", str(run)]
        start = measured(command, run, 1, threads)
        resume = measured([*command, "--set", "training.max_steps=2"], run, 2, threads)
        return {
            "pairs": pairs,
            "threads": threads,
            "kind": kind,
            "sampling": sampling,
            "text": size_of(data),
            "run": size_of(run),
            "start": start,
            "resume": resume,
        }


def row(found: dict[str, Any]) -> str:
    """A line of the table."""
    start, resume = found["start"], found["resume"]
    return (
        f"{found['pairs']:>12,} pairs: start {start['seconds']:6.1f} s, {_giga(start)}; "
        f"resume {resume['seconds']:6.1f} s, {_giga(resume)}; run {found['run'] / 1e6:,.0f} MB"
    )


def _giga(part: dict[str, Any]) -> str:
    return f"peak {part['peak'] / 1e9:.2f} GB ({part['peak_of_all'] / 1e9:.2f} of all)"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each size, and print a line of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=int, nargs="+")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--kind", default="bpe", choices=("bpe", "unigram", "words"))
    parser.add_argument("--sampling", type=float, default=0.0)
    parser.add_argument("--folder", type=Path, help="for the data, which is kept there")
    parser.add_argument("--json", type=Path, help="write what was found into this file")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        found = []
        for pairs in options.pairs:
            found.append(of_size(folder, pairs, options.threads, options.kind, options.sampling))
            print(row(found[-1]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
