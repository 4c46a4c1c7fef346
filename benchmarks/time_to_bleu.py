"""How good a model translates after how many minutes of training, beside JoeyNMT.

A course is a recipe and so many minutes. attlas trains the recipe from its beginning to its own
end, whether that comes before the minutes are over or after, and validates as the recipe says; all
of that counts. JoeyNMT trains the model of the recipe (its widths, layers, dropout, vocabulary and
batches) for so many minutes, with its own loop, optimisation and schedule, and does not validate.
One after the other, each with all the threads. What was kept on the way then translates the test
set, each with its own beam search of 5. Scored by sacreBLEU: cased, detokenised, 13a; the last
point also as papers do it, where sacremoses is installed.

python benchmarks/time_to_bleu.py --data multi30k --courses tiny:15
python benchmarks/time_to_bleu.py --data multi30k --courses long:120 --contenders attlas \\
    --trained long=runs/long      of a run that goes on there, or is finished and only translates
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import corpus
from contest import write
from curve import evenly, late
from environments import environment
from paper_bleu import paper_bleu
from trained_run import begun, conditions

from attlas.data import FilesData
from attlas.errors import AttlasError
from attlas.metrics import corpus_score
from attlas.runs import CONFIG
from attlas.training import read_recipe

HERE = Path(__file__).resolve().parent
CONTENDERS = {"attlas": ("attlas_course", None), "JoeyNMT": ("joeynmt_course", "joeynmt")}
LANGUAGES = ("en", "de")
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
EVERY = 10**6  # checkpoints are kept


def main() -> None:
    """Train, translate, score, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of Multi30k (task 1)")
    parser.add_argument(
        "--courses", type=course, nargs="+", default=[("tiny", 15.0)], metavar="RECIPE:MINUTES",
        help="what is trained, and for how long",
    )  # fmt: skip
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE", help="put into these recipes"
    )
    parser.add_argument(
        "--trained", type=trained, nargs="+", default=[], metavar="RECIPE=RUN",
        help="where attlas trains this recipe or has trained it; else in a temporary folder",
    )  # fmt: skip
    parser.add_argument("--points", type=int, default=10, help="of a curve")
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json", type=Path, help="where to write what came out")
    options = parser.parse_args()
    known = [name for name, _ in options.courses]
    others = [name for name, _ in options.trained if name not in known]
    if others:
        parser.error(f"wanted --trained {known[0]}=RUN, of a course; got {', '.join(others)}")
    try:
        found = [
            curves(options, threads, name, minutes)
            for threads in options.threads
            for name, minutes in options.courses
        ]
    except AttlasError as error:
        sys.exit(f"time_to_bleu.py: {error}")
    write(found, options.json)


def course(text: str) -> tuple[str, float]:
    """RECIPE:MINUTES."""
    name, _, minutes = text.rpartition(":")
    return name, float(minutes)


def trained(text: str) -> tuple[str, Path]:
    """RECIPE=RUN."""
    name, _, run = text.rpartition("=")
    if not name:
        raise ValueError(text)
    return name, Path(run).resolve()


def curves(options: argparse.Namespace, threads: int, name: str, minutes: float) -> dict[str, Any]:
    """One measurement: a curve for each contender, or why there is none."""
    data = multi30k(options.data)
    splits = data.load()
    recipe = read_recipe(name, options.set).model_copy(update={"data": data})
    tables = dict.fromkeys(CONTENDERS, recipe.tables())
    run: Path | None = dict(options.trained).get(name)
    before = run is not None and (run / CONFIG).is_file()
    if run is not None and before:
        tables["attlas"] = begun(run, recipe, splits, threads).tables()
    else:
        lasting = {"threads": threads, "keep": EVERY}
        tables["attlas"] = {**recipe.tables(), "training": recipe.tables()["training"] | lasting}
    contenders: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus.written(
            folder, recipe.vocabulary, {"train": splits.train.pairs, "valid": splits.valid.pairs}
        )
        told = {
            "corpus": str(folder),
            "run": str(run or folder / "run"),
            "moments": evenly(minutes, options.points),
            "threads": threads,
            "sources": [pair.source for pair in splits.test.pairs],
            "decoding": recipe.decoding.model_dump(mode="json"),
        }
        references = [pair.target for pair in splits.test.pairs]
        for one in options.contenders:
            (folder / one).mkdir()
            trouble = played(one, told | {"recipe": tables[one]}, folder / one)
            found = {"lost": trouble} if trouble else scored(folder / one, references)
            contenders.append({"name": one, "version": versions(one), **found})
            if one == "attlas" and run is not None and before and not trouble:
                contenders[-1]["conditions"] = conditions(run)
    changed = "".join(f", {assignment}" for assignment in options.set)
    measurement = {
        "suite": "quality",
        "name": f"`{name}`{changed}, {minutes:g} min",
        "unit": "BLEU",
        "threads": threads,
        "moments": evenly(minutes, options.points),
        "command": " ".join(["python", "benchmarks/time_to_bleu.py", *sys.argv[1:]]),
        "contenders": contenders,
    }
    say(measurement)
    return measurement


def multi30k(folder: Path) -> FilesData:
    """Task 1, as its files are called."""
    return FilesData.model_validate(
        {
            split: [str((folder / f"{stem}.{one}.gz").resolve()) for one in LANGUAGES]
            for split, stem in SPLITS.items()
        }
    )


def versions(contender: str) -> str | None:
    """The release of a contender."""
    peer = CONTENDERS[contender][1]
    return environment(peer).versions.get(peer) if peer else version("attlas")


def played(contender: str, told: dict[str, Any], folder: Path) -> str | None:
    """Let it train and translate; what went wrong, or None."""
    script, peer = CONTENDERS[contender]
    found = environment(peer) if peer else None
    if found is not None and found.python is None:
        return found.trouble or "does not install"
    python = sys.executable if found is None else str(found.python)
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")
    done = subprocess.run(
        [python, str(HERE / "contenders" / f"{script}.py"), str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": str(told["threads"])},
        stdout=sys.stderr, stderr=subprocess.PIPE, encoding="utf-8", check=False,
    )  # fmt: skip
    if not done.returncode:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    print("\n".join([f"{contender} is lost:", *lines[-20:]]), file=sys.stderr)
    return lines[-1] if lines else f"exit code {done.returncode}"


def scored(folder: Path, references: Sequence[str]) -> dict[str, Any]:
    """The points of a curve, and the last of them as papers measure it."""
    found = json.loads((folder / "course.json").read_text(encoding="utf-8"))
    points = []
    for point in found["points"]:
        bleu = corpus_score(found["texts"][point["weights"]], references).bleu.value
        seconds, updates = round(point["seconds"], 1), point["updates"]
        points.append({"seconds": seconds, "updates": updates, "bleu": round(bleu, 2)})
    last = found["texts"][found["points"][-1]["weights"]]
    try:
        paper = paper_bleu(last, references, LANGUAGES[1])
    except ModuleNotFoundError:
        return {"points": points}
    return {"points": points, "paper_bleu": round(paper.score, 2)}


def say(measurement: dict[str, Any]) -> None:
    """The curves, on the console."""
    print(f"\n{measurement['name']}, threads: {measurement['threads']}\n")
    for one in measurement["contenders"]:
        points = one.get("points", [])
        for point in points:
            print(f"{one['name']}  {point['seconds'] / 60:6.1f} min  {point['bleu']:.2f} BLEU")
        if "paper_bleu" in one:
            print(f"{one['name']}  in the end, as papers measure it: {one['paper_bleu']:.2f}")
        if points and late(points, measurement["moments"]):
            end = measurement["moments"][-1] / 60
            print(f"{one['name']}  came late: the end was to be after {end:g} min")


if __name__ == "__main__":
    main()
