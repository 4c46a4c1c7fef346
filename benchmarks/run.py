"""All benchmarks, one after another, and what came out: `make bench`, `make bench QUICK=yes`.

python benchmarks/run.py --data multi30k            about an hour
python benchmarks/run.py --data multi30k --quick    under ten minutes, and as rough as that
python benchmarks/run.py --data multi30k --suites quality    over two hours: how good after how long
python benchmarks/run.py --table                    writes the tables of the READMEs anew

Results go to benchmarks/results.json, each suite beside the machine, the versions and the day that
it was measured on (--suites measures some anew and keeps the others); those of --quick go to
benchmarks/quick.json, which is not kept and of which no table is made.
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
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path
from typing import Any

from readme import with_table

HERE = Path(__file__).resolve().parent
PAGES = {
    HERE.parent / "README.md": ("training", "decoding", "quality"),
    HERE / "README.md": ("search", "layers"),
}
LONG = ("quality",)  # only where asked for
RESULTS, QUICK = HERE / "results.json", HERE / "quick.json"
PACKAGES = ("attlas", "torch", "numpy", "transformers", "ctranslate2")


def suites(data: Path, trained: Path, quick: bool) -> dict[str, list[str]]:
    """The script of each suite, and what it is told; each writes its measurements to --json."""
    cores = os.cpu_count() or 1
    threads = ["--threads", *(str(n) for n in ([cores] if quick else sorted({1, cores})))]
    pairs = ["--data", *(str(data / f"train.{language}.gz") for language in ("en", "de"))]
    test = ["--run", str(trained), "--data", str(data / "test_2016_flickr.en.gz")]
    bleu = ["time_to_bleu.py", "--data", str(data), "--threads", "1"]  # each has a core
    if quick:
        return {
            "training": ["training_speed.py", *pairs, *threads, *_blocks(2, 1.5)],
            "decoding": ["decoding_speed.py", *test, *threads, *_blocks(1), "--beam", "5"],
            "search": [
                "search_speed.py", *pairs, *threads, *_blocks(2, 0.5),
                "--model", "additive", "luong",
            ],
            "layers": ["layers_speed.py", "--quick", *threads, *_blocks(2)],
            "quality": [*bleu, "--courses", "tiny:1", "--points", "1"],
        }  # fmt: skip
    return {
        "training": ["training_speed.py", *pairs, *threads, *_blocks(5, 4)],
        "decoding": ["decoding_speed.py", *test, *threads, *_blocks(3)],
        "search": ["search_speed.py", *pairs, *threads, *_blocks(5, 2)],
        "layers": ["layers_speed.py", *threads],
        "quality": [*bleu, "--courses", "tiny:15", "long:120", "--points", "12"],
    }


def machine() -> dict[str, Any]:
    """Where it was measured."""
    sys.path.append(str(HERE.parent / "scripts"))
    from results import processor

    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "commit": _commit(),
    }


def run(
    data: Path, trained: Path, quick: bool, only: Collection[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Every suite, or only some; one that fails is told as that, and the others are run."""
    found: dict[str, dict[str, Any]] = {}
    for name, (script, *told) in suites(data, trained, quick).items():
        if name in LONG if only is None else name not in only:
            continue
        begun = time.monotonic()
        failed, measurements = None, []
        if name == "decoding" and not trained.is_dir():
            failed = f"no run in {trained} (attlas train small)"
            print(f"left out: {failed}", file=sys.stderr)
        else:
            print("\n$ python benchmarks/" + " ".join([script, *told]), flush=True)
            failed, measurements = _measured([script, *told])
        found[name] = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "quick": quick,
            "seconds": round(time.monotonic() - begun),
            "machine": machine(),
            "failed": failed,
            "measurements": measurements,
        }
    return found


def _measured(told: list[str]) -> tuple[str | None, list[dict[str, Any]]]:
    """Why a script failed, or None; and what it measured."""
    script, *options = told
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "measurements.json"
        command = [sys.executable, str(HERE / script), *options, "--json", str(written)]
        done = subprocess.run(command, check=False)
        if done.returncode:
            return f"exit code {done.returncode}", []
        return None, json.loads(written.read_text(encoding="utf-8"))


def main() -> None:
    """Run, write down, and tell in the README."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder of Multi30k (task 1)")
    parser.add_argument(
        "--run", type=Path, default=Path("runs/small"), help="a trained Transformer, to translate"
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--suites", nargs="+", choices=[name for shown in PAGES.values() for name in shown],
        help="measure only these anew",
    )  # fmt: skip
    parser.add_argument("--table", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if not options.table:
        if options.data is None or not (options.data / "train.en.gz").is_file():
            parser.error(
                f"wanted Multi30k's train.en.gz and train.de.gz; got "
                f"{options.data or 'no --data'}; name their folder (make bench DATA=…): https://github.com/multi30k/dataset"
            )
        found = run(options.data, options.run, options.quick, options.suites)
        target = QUICK if options.quick else RESULTS
        if options.suites and target.is_file():
            found = json.loads(target.read_text(encoding="utf-8")) | found
        target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"\nwritten: {target.relative_to(HERE.parent)}")
        if options.quick:
            return
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for page, suites_there in PAGES.items():
        text = page.read_text(encoding="utf-8")
        page.write_text(with_table(text, results, suites_there), encoding="utf-8")


def _blocks(count: int, seconds: float | None = None) -> list[str]:
    return ["--blocks", str(count), *(["--seconds", str(seconds)] if seconds else [])]


def _commit() -> str | None:
    """Of the source; "+" where it has been changed since."""
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(git, capture_output=True, encoding="utf-8", check=False)
    return done.stdout.strip() or None


if __name__ == "__main__":
    main()
