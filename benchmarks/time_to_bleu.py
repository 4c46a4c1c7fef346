"""How good a model translates after how many minutes of training, beside JoeyNMT.

A course is a recipe and so many minutes. Both train the model of that recipe (its widths, layers,
dropout, vocabulary and batches), each with its own loop and its own optimisation, as many side by
side as the machine has cores for. Nobody validates. Every so many minutes the weights are kept; in
the end each of them translates the test set with its own beam search of 5. Scored by sacreBLEU:
cased, detokenised, 13a.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import corpus
from contest import write
from environments import environment

from attlas.data import FilesData
from attlas.metrics import corpus_score
from attlas.training import Recipe, read_recipe

HERE = Path(__file__).resolve().parent
CONTENDERS = {"attlas": ("attlas_course", None), "JoeyNMT": ("joeynmt_course", "joeynmt")}
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


def main() -> None:
    """Train, translate, score, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of Multi30k (task 1)")
    parser.add_argument(
        "--courses", type=_course, nargs="+", default=[("tiny", 15.0)], metavar="RECIPE:MINUTES",
        help="whose model is trained, and for how long",
    )  # fmt: skip
    parser.add_argument("--points", type=int, default=10, help="of a curve")
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json", type=Path, help="where to write what came out")
    options = parser.parse_args()
    found = [
        curves(options, threads, *course)
        for threads in options.threads
        for course in options.courses
    ]
    write(found, options.json)


def _course(text: str) -> tuple[str, float]:
    name, _, minutes = text.rpartition(":")
    return name, float(minutes)


def curves(options: argparse.Namespace, threads: int, name: str, minutes: float) -> dict[str, Any]:
    """One measurement: a curve for each contender, or why there is none."""
    recipe = read_recipe(name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        references = prepared(options.data, recipe, folder)
        played = trained(options, threads, minutes, folder)
        contenders = []
        for one, trouble in played.items():
            peer = CONTENDERS[one][1]
            packages = environment(peer).versions if peer else {"attlas": version("attlas")}
            told: dict[str, Any] = {"name": one, "version": packages.get(peer or "attlas")}
            if trouble is None:
                told["points"] = scored(folder / one, references)
            else:
                told["lost"] = trouble
            contenders.append(told)
    for one in contenders:
        for point in one.get("points", []):
            print(f"{one['name']}  {point['seconds'] / 60:6.1f} min  {point['bleu']:.2f} BLEU")
    return {
        "suite": "quality",
        "name": f"the model of `{name}`",
        "unit": "BLEU",
        "threads": threads,
        "command": " ".join(["python", "benchmarks/time_to_bleu.py", *sys.argv[1:]]),
        "contenders": contenders,
    }


def prepared(data: Path, recipe: Recipe, folder: Path) -> list[str]:
    """Write pieces, texts and the recipe for all; the references of the test set."""
    names = {
        split: [str(data / f"{stem}.{language}.gz") for language in ("en", "de")]
        for split, stem in SPLITS.items()
    }
    files = FilesData.model_validate({"kind": "files", **names})
    splits = files.load()
    assert splits.test is not None  # it was named
    pairs = {"train": splits.train.pairs, "valid": splits.valid.pairs, "test": splits.test.pairs}
    corpus.written(folder, recipe.vocabulary, pairs)
    tables = recipe.tables() | {"data": files.model_dump(mode="json")}
    (folder / "recipe.json").write_text(json.dumps(tables), encoding="utf-8")
    return [pair.target for pair in splits.test.pairs]


def trained(
    options: argparse.Namespace, threads: int, minutes: float, folder: Path
) -> dict[str, str | None]:
    """Let everyone train and translate; what went wrong with each, or None."""
    together = max(1, (os.cpu_count() or 1) // threads)
    trouble: dict[str, str | None] = {}
    waiting = list(options.contenders)
    while waiting:
        now, waiting = waiting[:together], waiting[together:]
        running = {}
        for one in now:
            script, peer = CONTENDERS[one]
            found = environment(peer) if peer else None
            python = sys.executable if found is None else found.python
            if python is None:
                trouble[one] = found.trouble if found else None
                continue
            (folder / one).mkdir()
            command = [
                python, str(HERE / "contenders" / f"{script}.py"), str(folder), str(folder / one),
                str(minutes), str(options.points), str(threads),
            ]  # fmt: skip
            environ = {**os.environ, "OMP_NUM_THREADS": str(threads)}
            running[one] = subprocess.Popen(
                command, env=environ, stdout=sys.stderr, stderr=subprocess.PIPE, encoding="utf-8"
            )
        for one, process in running.items():
            _, said = process.communicate()
            lines = [line.strip() for line in said.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"exit code {process.returncode}"
            trouble[one] = reason if process.returncode else None
            if process.returncode:
                print("\n".join([f"{one} is lost:", *lines[-20:]]), file=sys.stderr)
    return {one: trouble[one] for one in options.contenders}


def scored(folder: Path, references: list[str]) -> list[dict[str, float]]:
    """The points of a curve: `course.json` names files of translations."""
    points = json.loads((folder / "course.json").read_text(encoding="utf-8"))
    found = []
    for point in points:
        lines = (folder / point["file"]).read_text(encoding="utf-8").split("\n")[:-1]
        bleu = corpus_score(lines, references).bleu.value
        seconds, updates = round(point["seconds"], 1), point["updates"]
        found.append({"seconds": seconds, "updates": updates, "bleu": round(bleu, 2)})
    return found


if __name__ == "__main__":
    main()
