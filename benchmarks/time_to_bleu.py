"""How good a model translates after how many minutes of training, beside JoeyNMT.

A course is a recipe and so many minutes. attlas trains the recipe from its beginning to its own
end, whether that comes before the minutes are over or after, and validates as the recipe says; all
of that counts. JoeyNMT trains the model of the recipe (its widths, layers, dropout, vocabulary and
batches) for so many minutes, with its own loop, optimisation and schedule, and does not validate.
One after the other, each with all the threads. What was kept on the way then translates the test
set, each with its own beam search of 5 and the length penalty of the recipe. Scored by sacreBLEU:
cased, detokenised, 13a; the last point also as papers do it, where sacremoses is installed.

python benchmarks/time_to_bleu.py --data multi30k --courses tiny:15
python benchmarks/time_to_bleu.py --data multi30k --courses long:120 --contenders attlas \\
    --trained long=runs/long      of a run that goes on there, or is finished and only translates
python benchmarks/time_to_bleu.py --data multi30k --courses long:120 --contenders JoeyNMT \\
    --kept courses                what was broken off goes on: a training that has ended translates
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import corpus
from curve import evenly, late
from environments import environment
from kept import TOLD, check_same, place
from measurement import called, write
from paper_bleu import paper_bleu
from terms import check_model, check_search
from trained_run import begun, conditions

from attlas.data import FilesData, Splits
from attlas.errors import AttlasError
from attlas.metrics import corpus_score
from attlas.runs import CONFIG
from attlas.training import Recipe, read_recipe

HERE = Path(__file__).resolve().parent
CONTENDERS = {"attlas": ("attlas_course", None), "JoeyNMT": ("joeynmt_course", "joeynmt")}
LANGUAGES = ("en", "de")
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
EVERY = 10**6  # checkpoints are kept


@dataclass(frozen=True)
class Plan:
    """A course that can begin.

    run: where attlas trains (None: in a temporary folder), and whether it has begun there; tables:
    of the recipe, as that contender gets them.
    """

    name: str
    minutes: float
    threads: int
    splits: Splits
    recipe: Recipe
    tables: dict[str, dict[str, Any]]
    run: Path | None
    begun: bool


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
    parser.add_argument(
        "--kept", type=Path, metavar="FOLDER",
        help="where contenders keep what they do, and go on after they were broken off",
    )  # fmt: skip
    parser.add_argument("--points", type=int, default=10, help="of a curve")
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json", type=Path, help="where to write what came out")
    options = parser.parse_args()
    if options.points < 1:
        parser.error(
            f"expected a curve of one point at least; got {options.points}; raise --points"
        )
    known = [name for name, _ in options.courses]
    others = [name for name, _ in options.trained if name not in known]
    if others:
        parser.error(f"expected --trained {known[0]}=RUN, of a course; got {', '.join(others)}")
    try:
        # All that can be wrong is found before the first hour.
        plans = [
            planned(options, threads, name, minutes)
            for threads in options.threads
            for name, minutes in options.courses
        ]
        for one in options.contenders:
            made(one)
        found: list[dict[str, Any]] = []
        for plan in plans:
            for so_far in curves(options, plan):
                write([*found, so_far], options.json)  # what comes later may fail
            found.append(so_far)
            say(so_far)
    except AttlasError as error:
        sys.exit(f"time_to_bleu.py: {error}")


def course(text: str) -> tuple[str, float]:
    """RECIPE:MINUTES."""
    name, _, minutes = text.rpartition(":")
    if not (name and 0 < float(minutes) < float("inf")):
        raise ValueError(text)
    return name, float(minutes)


def trained(text: str) -> tuple[str, Path]:
    """RECIPE=RUN."""
    name, _, run = text.rpartition("=")
    if not name:
        raise ValueError(text)
    return name, Path(run).resolve()


def planned(options: argparse.Namespace, threads: int, name: str, minutes: float) -> Plan:
    """A course, once it is sure that data, recipe and run go together.

    Errors: `AttlasError` where they do not.
    """
    data = multi30k(options.data)
    splits = data.load()
    recipe = read_recipe(name, options.set).model_copy(update={"data": data})
    check_search(name, recipe)
    if "JoeyNMT" in options.contenders:
        check_model(name, recipe)
    tables = dict.fromkeys(CONTENDERS, recipe.tables())
    run: Path | None = dict(options.trained).get(name)
    before = run is not None and (run / CONFIG).is_file()
    if run is not None and before:
        own = begun(run, recipe, splits, threads)
        tables["attlas"] = own.model_copy(update={"data": data}).tables()
    else:
        lasting = {"threads": threads, "keep_last": EVERY}
        tables["attlas"] = {**recipe.tables(), "training": recipe.tables()["training"] | lasting}
    return Plan(name, minutes, threads, splits, recipe, tables, run, before)


def curves(options: argparse.Namespace, plan: Plan) -> Iterator[dict[str, Any]]:
    """One measurement, told anew after each contender: its curve, or why there is none."""
    moments, splits = evenly(plan.minutes, options.points), plan.splits
    references = [pair.target for pair in splits.test.pairs]
    changed = "".join(f", {assignment}" for assignment in options.set)
    measurement: dict[str, Any] = {
        "suite": "quality",
        "name": f"`{plan.name}`{changed}, {plan.minutes:g} min",
        "unit": "BLEU",
        "threads": plan.threads,
        "moments": moments,
        "command": shlex.join(called(sys.argv)),
        "contenders": [],
    }
    with place(options.kept, f"{plan.name}-{plan.minutes:g}-{plan.threads}") as folder:
        pairs = {"train": splits.train.pairs, "valid": splits.valid.pairs}
        corpus.written(folder, plan.recipe.vocabulary, pairs)
        reported = {
            "corpus": str(folder),
            "run": str(plan.run or folder / "run"),
            "moments": moments,
            "threads": plan.threads,
            "sources": [pair.source for pair in splits.test.pairs],
            "decoding": plan.recipe.decoding.model_dump(mode="json"),
        }
        for one in options.contenders:
            requested = reported | {"recipe": plan.tables[one]}
            (folder / one).mkdir(exist_ok=True)
            check_same(requested, folder / one)
            trouble = played(one, requested, folder / one)
            found = {"lost": trouble} if trouble else scored(folder / one, references)
            if one == "attlas" and plan.run is not None and plan.begun and not trouble:
                found["conditions"] = conditions(plan.run)
            curve = {"name": one, "version": versions(one), **found}
            measurement = measurement | {"contenders": [*measurement["contenders"], curve]}
            yield measurement


def multi30k(folder: Path) -> FilesData:
    """Task 1, as its files are called."""
    return FilesData.model_validate(
        {
            split: [str((folder / f"{stem}.{one}.gz").resolve()) for one in LANGUAGES]
            for split, stem in SPLITS.items()
        }
    )


def made(contender: str) -> tuple[str | None, str | None]:
    """Its interpreter, or why there is none."""
    peer = CONTENDERS[contender][1]
    if peer is None:
        return sys.executable, None
    found = environment(peer)
    return found.python, None if found.python else found.trouble or "does not install"


def versions(contender: str) -> str | None:
    """The release of a contender."""
    peer = CONTENDERS[contender][1]
    return environment(peer).versions.get(peer) if peer else version("attlas")


def played(contender: str, reported: dict[str, Any], folder: Path) -> str | None:
    """Let it train and translate; what went wrong, or None."""
    python, trouble = made(contender)
    if python is None:
        return trouble
    (folder / TOLD).write_text(json.dumps(reported), encoding="utf-8")
    done = subprocess.run(
        [python, str(HERE / "contenders" / f"{CONTENDERS[contender][0]}.py"), str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": str(reported["threads"])},
        stdout=sys.stderr, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False,
    )  # fmt: skip
    if not done.returncode:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if done.returncode < 0:  # what it said last is not why
        lines.append(f"killed by signal {-done.returncode}")
    print("\n".join([f"{contender} is lost:", *lines[-20:]]), file=sys.stderr)
    return lines[-1] if lines else f"exit code {done.returncode}"


def scored(folder: Path, references: Sequence[str]) -> dict[str, Any]:
    """The points of a curve, the last of them as papers measure it, and what else it tells."""
    found = json.loads((folder / "course.json").read_text(encoding="utf-8"))
    points = []
    for point in found["points"]:
        bleu = corpus_score(found["texts"][point["weights"]], references).bleu.value
        seconds, updates = round(point["seconds"], 1), point["updates"]
        points.append({"seconds": seconds, "updates": updates, "bleu": round(bleu, 2)})
    curve = {"points": points, **found.get("facts", {})}
    last = found["texts"][found["points"][-1]["weights"]]
    try:
        paper = paper_bleu(last, references, LANGUAGES[1])
    except ModuleNotFoundError:
        return curve
    return {**curve, "paper_bleu": round(paper.score, 2)}


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
