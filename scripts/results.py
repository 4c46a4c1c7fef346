"""The tables of results in README.md and docs/benchmarks.md: recorded from runs, never typed.

python scripts/results.py record runs/reverse runs/multi30k    evaluate runs, keep what came out
python scripts/results.py table                                write the tables into both pages
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attlas._hardware import processor_name

Result = dict[str, Any]
Columns = Mapping[str, Callable[[Result], str]]  # what a cell says, by the head of its column
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
README, BENCHMARKS = ROOT / "README.md", ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- results: scripts/results.py -->", "<!-- end of results -->"
_WORDS = "right: translations that are the reference, token for token; α: length penalty"


def recorded(run: Path) -> Result:
    """The test scores of a run with their signatures, and what its training took.

    A classifier without a test set is scored on the part of its data that was held back. Where
    attlas refuses, its message and its exit code are the script's.
    """
    config = run / "config.toml"
    settings = tomllib.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
    command = [sys.executable, "-m", "attlas", "evaluate", str(run), "--json"]
    classifier = settings.get("model", {}).get("kind") == "classifier"
    if classifier and not settings["data"].get("test"):
        command.append("--valid")
    evaluated = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
    if evaluated.returncode:
        print(evaluated.stderr, end="", file=sys.stderr)
        sys.exit(evaluated.returncode)
    scores: Result = json.loads(evaluated.stdout)
    scores.pop("wrong" if classifier else "examples")
    scores["run"] = run.name
    scores["data"]["name"] = re.sub(
        r"\S*/", "", scores["data"]["name"]
    )  # where it lay is no matter
    scores["training"] = trained(run, settings, "texts" if classifier else "target_tokens")
    scores["recorded_on"] = {
        "machine": platform.platform(),
        "processor": processor_name(),
        "cores": os.cpu_count(),
    }
    return scores


def trained(run: Path, settings: dict[str, Any], counted: str) -> Result:
    """What the training took, and where it was, as far as the run knows.

    counted: what its journal counts by the second. threads: None where the recipe leaves them to
    torch.
    """
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (started, *_), (*_, ended) = events, events
    made = json.loads((run / "provenance.json").read_text(encoding="utf-8"))
    rates = [event["tokens_per_second"] for event in events if event["event"] == "trained"]
    return {
        "seconds": ended["seconds"],
        "updates": ended["update"],
        f"{counted}_per_second": round(statistics.median(rates)),
        "parameters": started["parameters"],
        "device": started["device"],
        "machine": made["machine"],
        # Runs of before 2026-11-24 did not note it.
        **({"processor": made["processor"]} if "processor" in made else {}),
        "threads": settings["training"].get("threads"),
    }


def tables(results: list[Result]) -> str:
    """Translations, then classifiers, and under each how they were measured."""
    reported = [result for result in results if "accuracy" in result]
    written = [result for result in results if "accuracy" not in result]
    found = []
    if written:
        signatures = sorted({f"`{r['scores']['BLEU']['signature']}`" for r in written})
        measure = f"On test sets; BLEU {', '.join(signatures)}; {_WORDS}."
        found += [table(written, TRANSLATING), f"{measure} {machines(written)}"]
    if reported:
        methods = ", ".join(sorted({r["interval"]["method"] for r in reported}))
        measure = f"On what the last column names; intervals: {methods}."
        found += [table(reported, CLASSIFYING), f"{measure} {machines(reported)}"]
    return "\n\n".join(found)


def table(results: list[Result], columns: Columns) -> str:
    """One row a run."""
    rows = [[cell(result) for cell in columns.values()] for result in results]
    lines = [f"| {' | '.join(cells)} |" for cells in [list(columns), *rows]]
    return "\n".join([lines[0], "|---" * len(columns) + "|", *lines[1:]])


def machines(results: list[Result]) -> str:
    """Where runs were recorded and where they were trained, which may be another machine."""
    # What was recorded before "recorded_on" has its processor and cores under "training".
    on: list[Result] = [r["recorded_on"] if "recorded_on" in r else r["training"] for r in results]
    recorded = dict.fromkeys(f"{one['processor']}, {one['cores']} cores" for one in on)
    trained: dict[str, list[str]] = {}
    for result in results:
        trained.setdefault(_trained_on(result), []).append(result["run"])
    several = len(trained) > 1
    places = [
        f"{reported} ({', '.join(runs)})" if several else reported
        for reported, runs in trained.items()
    ]
    return f"Recorded on {'; '.join([*recorded, *places])}."


def _trained_on(result: Result) -> str:
    training = result["training"]
    if "recorded_on" in result and "processor" in training:
        return f"trained on {training['processor']}"
    if "machine" in training:
        # "Linux-6.1.0-x86_64-with-glibc2.36": the build of a kernel says nothing to a reader.
        return f"trained on {training['machine'].partition('-')[0]}"
    return "the machine of the training was not noted"


def with_tables(page: Path) -> str:
    """The text of a page with its tables made anew from docs/results.

    README.md gets a row a run; docs/benchmarks.md gets every figure.
    """
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    made = table(results, OVERVIEW) if page == README else tables(results)
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def _score(result: Result) -> str:
    if "accuracy" in result:
        return f"{result['accuracy']:.1%} accuracy"
    return f"{result['scores']['BLEU']['value']:.1f} BLEU"


def _search(decoding: dict[str, Any]) -> str:
    if decoding["method"] != "beam":
        return str(decoding["method"])
    return f"beam {decoding['num_beams']}, α {decoding['length_penalty']}"


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _interval(interval: dict[str, float]) -> str:
    return f"{interval['low']:.1%}–{interval['high']:.1%}"


TRAINED: Columns = {
    "run": lambda r: f"[{r['run']}](results/{r['run']}.json)",
    "parameters": lambda r: f"{r['training']['parameters'] / 1e6:.1f} M",
    "trained in": lambda r: _clock(r["training"]["seconds"]),
    "threads": lambda r: str(r["training"]["threads"] or "all"),
}
TRANSLATING: Columns = {
    **TRAINED,
    "target tokens/s": lambda r: f"{r['training']['target_tokens_per_second']:,}",
    "search": lambda r: _search(r["decoding"]),
    "BLEU": lambda r: f"{r['scores']['BLEU']['value']:.1f}",
    "chrF2": lambda r: f"{r['scores']['chrF2']['value']:.1f}",
    "right": lambda r: f"{r['exactly_right']:.1%}",
}
CLASSIFYING: Columns = {
    **TRAINED,
    "texts/s": lambda r: f"{r['training']['texts_per_second']:,}",
    "accuracy": lambda r: f"{r['accuracy']:.1%}",
    "95 % interval": lambda r: _interval(r["interval"]),
    "of": lambda r: f"{r['data']['texts']:,} texts: {r['data']['name']}",
}
OVERVIEW: Columns = {
    "recipe": lambda r: f"[{r['run']}](docs/results/{r['run']}.json)",
    "parameters": TRAINED["parameters"],
    "trained in": TRAINED["trained in"],
    "score": _score,
    "measured on": lambda r: r["data"]["name"],
}


def main(verb: str, *runs: str) -> None:
    """`record RUN …` or `table`."""
    if verb == "record":
        RESULTS.mkdir(exist_ok=True)
        for run in map(Path, runs):
            target = RESULTS / f"{run.name}.json"
            target.write_text(json.dumps(recorded(run), indent=1) + "\n")
    elif verb != "table":
        sys.exit(__doc__)
    for page in (README, BENCHMARKS):
        page.write_text(with_tables(page), encoding="utf-8")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["help"]))
