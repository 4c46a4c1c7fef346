"""All benchmarks, one after another, and what came out: `make bench`, `make bench QUICK=yes`.

python benchmarks/run.py --data multi30k            about two hours
python benchmarks/run.py --data multi30k --quick    some ten minutes, and as rough as that
python benchmarks/run.py --data multi30k --suites quality    hours: how good after how long
python benchmarks/run.py --data multi30k --suites quality -- --courses long:120 --contenders JoeyNMT
python benchmarks/run.py --table                    writes the tables of the pages anew

Results go to benchmarks/results.json, each suite beside the machine, the versions, the commit and
the day that it was measured on; those of --quick go to benchmarks/quick.json, which is not kept and
of which no table is made. Each is written as soon as it is measured; what is not measured anew, or
fails, stays as it was. What stands after `--` is for time_to_bleu.py: then only that is measured
anew, and put beside the other curves.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from checkout import commit, warning
from readme import with_table
from suite import Suite, came_through, keep, lost, plain

from attlas._hardware import processor_name

HERE = Path(__file__).resolve().parent
PAGES = {
    HERE.parent / "docs" / "benchmarks.md": ("training", "decoding", "quality"),
    HERE / "README.md": ("search", "layers", "observe"),
}
LONG = ("quality",)  # only where asked for, and not in one sitting
TRAIN, VALID, TEST = (
    (f"{stem}.en.gz", f"{stem}.de.gz") for stem in ("train", "val", "test_2016_flickr")
)
NEEDED = {  # of Multi30k
    "training": TRAIN,
    "decoding": TEST[:1],
    "search": TRAIN,
    "layers": (),
    "observe": (),
    "quality": (*TRAIN, *VALID, *TEST),
}
INTERRUPTED = "interrupted"
RESULTS, QUICK = HERE / "results.json", HERE / "quick.json"
PACKAGES = ("attlas", "torch", "numpy", "transformers", "ctranslate2")


def suites(data: Path, trained: Path, quick: bool) -> dict[str, list[str]]:
    """The script of each suite, and what it is told; each writes its measurements to --json."""
    cores = os.cpu_count() or 1
    threads = ["--threads", *(str(n) for n in ([cores] if quick else sorted({1, cores})))]
    pairs = ["--data", *(str(data / f"train.{language}.gz") for language in ("en", "de"))]
    test = ["--run", str(trained), "--data", str(data / "test_2016_flickr.en.gz")]
    bleu = ["time_to_bleu.py", "--data", str(data), "--threads", str(cores)]
    if quick:
        few = [
            "training.max_steps=50",
            "training.schedule.total_steps=50",
            "training.schedule.warmup=10",
        ]
        return {
            "training": [
                "training_speed.py", *pairs, *threads, *_blocks(1, 1.5),
                "--without", "attlas, glibc's defaults", "attlas, bfloat16",
                "attlas, no input feeding, bfloat16",
            ],
            "decoding": [
                "decoding_speed.py", *test, *threads, *_blocks(1), "--num-beams", "5",
                "--batches", "64", "--every", "4",
                "--contenders", "attlas", "ctranslate2", "ctranslate2-int8", "transformers",
            ],
            "search": [
                "search_speed.py", *pairs, *threads, *_blocks(1, 0.5), "--model", "additive",
                "--updates", "100",
            ],
            "layers": ["layers_speed.py", "--quick", *threads, *_blocks(1)],
            "observe": [
                "observe_speed.py", "--quick", *threads, *_blocks(1),
                "--without", "generation, static cache", "generation of BART",
                "generation of T5", "generation of BLOOM",
            ],
            "quality": [
                *bleu, "--courses", "tiny:1", "--points", "1", "--contenders", "attlas",
                "--set", *few,
            ],
        }  # fmt: skip
    return {
        "training": ["training_speed.py", *pairs, *threads, *_blocks(5, 4)],
        "decoding": ["decoding_speed.py", *test, *threads, *_blocks(3)],
        "search": ["search_speed.py", *pairs, *threads, *_blocks(3, 2)],
        "layers": ["layers_speed.py", *threads, *_blocks(7)],
        "observe": ["observe_speed.py", "--threads", str(cores), *_blocks(5)],
        "quality": [*bleu, "--courses", "tiny:15", "long:120", "--points", "12"],
    }


def machine() -> dict[str, Any]:
    """Where it was measured."""
    return {
        "processor": f"{processor_name()} ({torch.backends.cpu.get_cpu_capability()})",
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "commit": commit(),
    }


def run(
    data: Path,
    trained: Path,
    quick: bool,
    only: Collection[str] | None = None,
    more: Sequence[str] = (),
) -> Iterator[tuple[str, Suite]]:
    """Every suite, or only some, with its name; one that fails says so, and the others are run.

    One that is interrupted is the last, where it has measured something; else the interrupt goes
    on. Decoding is left out where nothing is trained. more: what their scripts are told besides,
    where it goes before what is usual.
    """
    for name, (script, *reported) in suites(data, trained, quick).items():
        if not requested(name, quick, only):
            continue
        if name == "decoding" and not is_run(trained):
            print(f"left out: decoding, without a run in {trained}", file=sys.stderr)
            continue
        print("\n$ python benchmarks/" + " ".join([script, *reported, *more]), flush=True)
        begun, where = time.monotonic(), machine()
        failed, measurements = _measured([script, *reported, *more])
        suite = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "quick": quick,
            "seconds": round(time.monotonic() - begun),
            "machine": where,
            "failed": failed,
            "measurements": measurements,
        }
        yield name, plain(suite)
        if failed == INTERRUPTED:
            return


def requested(name: str, quick: bool, only: Collection[str] | None) -> bool:
    """Whether a suite is to be measured; what takes hours only where it is named."""
    return (quick or name not in LONG) if only is None else name in only


def is_run(folder: Path) -> bool:
    """Whether something was trained there."""
    return (folder / "config.toml").is_file()


def _measured(reported: list[str]) -> tuple[str | None, list[dict[str, Any]]]:
    """Why a script failed, or None; and what it measured, which may be a part then."""
    script, *options = reported
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "measurements.json"
        command = [sys.executable, str(HERE / script), *options, "--json", str(written)]
        try:
            code = subprocess.run(command, check=False).returncode
            failed = f"exit code {code}" if code else None
        except KeyboardInterrupt:
            if not written.is_file():
                raise
            failed = INTERRUPTED
        found = json.loads(written.read_text(encoding="utf-8")) if written.is_file() else []
    if failed is None and not any(came_through(one["contenders"]) for one in found):
        failed = "no contender came through"
    return failed, found


def main() -> None:
    """Run, write down, and tell in the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path("multi30k"), help="the folder of Multi30k (task 1)"
    )
    parser.add_argument(
        "--run", type=Path, default=Path("runs/small"), help="a trained Transformer, to translate"
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--suites", nargs="+", choices=[name for shown in PAGES.values() for name in shown],
        help="measure only these anew",
    )  # fmt: skip
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument(
        "more", nargs="*", metavar="-- OPTIONS", help="of the one suite that is named"
    )
    options = parser.parse_args()
    check(parser, options)
    if options.table:
        write_tables()
        return
    remark = warning()
    print(remark, end="", file=sys.stderr, flush=True)
    target = QUICK if options.quick else RESULTS
    reported: list[str] = []
    failed: list[str] = []
    given = options.data, options.run, options.quick, options.suites, options.more
    try:
        for name, suite in run(*given):
            keep(target, name, suite, part=bool(options.more))
            if not options.quick:
                write_tables()
            reported.append(f"{name} {suite['seconds']:,} s")
            if suite["failed"]:
                failed.append(f"{name} ({suite['failed']})")
            failed += [f"{name}, {one}" for one in lost(suite["measurements"])]
    except KeyboardInterrupt:
        failed.append("the suite that was interrupted")
    print(f"\nwritten: {target.relative_to(HERE.parent)} ({', '.join(reported) or 'nothing new'})")
    print(remark, end="", file=sys.stderr, flush=True)
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Leave, with the reason, where something is missing: now rather than in an hour."""
    if options.table:
        if not RESULTS.is_file():
            parser.error(f"expected results to show; got no {RESULTS}; measure first")
        return
    needed = dict.fromkeys(
        file
        for name, files in NEEDED.items()
        if requested(name, options.quick, options.suites)
        and (name != "decoding" or is_run(options.run))
        for file in files
    )
    without = [file for file in needed if not (options.data / file).is_file()]
    if without:
        parser.error(
            f"expected a folder with Multi30k's {', '.join(needed)}; got {options.data} without "
            f"{', '.join(without)}; name it (make bench DATA=…): "
            "https://github.com/multi30k/dataset, data/task1/raw"
        )
    if "decoding" in (options.suites or ()) and not is_run(options.run):
        parser.error(
            f"expected a trained run to measure decoding; got {options.run}, which is none; train "
            "one (attlas train small), name one (make bench MODEL=…), or leave decoding out"
        )
    if options.more and len(options.suites or ()) != 1:
        parser.error(
            f"expected one suite for {' '.join(options.more)}; got "
            f"{' '.join(options.suites or ['all suites'])}; name the one whose script they are for "
            "(--suites), or leave these out"
        )


def write_tables() -> None:
    """The tables of the results, in the pages."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for page, suites_there in PAGES.items():
        text = page.read_text(encoding="utf-8")
        page.write_text(with_table(text, results, suites_there), encoding="utf-8")


def _blocks(count: int, seconds: float | None = None) -> list[str]:
    return ["--blocks", str(count), *(["--seconds", str(seconds)] if seconds else [])]


if __name__ == "__main__":
    main()
