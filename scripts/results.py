"""The README's tables of results: recorded from runs, never typed.

python scripts/results.py record runs/reverse runs/multi30k    evaluate runs, keep what came out
python scripts/results.py table                                write the table into the README
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
README = ROOT / "README.md"
BEGIN, END = "<!-- results: scripts/results.py -->", "<!-- end of results -->"


def recorded(run: Path) -> dict[str, Any]:
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
    scores = json.loads(evaluated.stdout)
    scores.pop("wrong" if classifier else "examples")
    scores["run"] = run.name
    scores["data"]["name"] = re.sub(
        r"\S*/", "", scores["data"]["name"]
    )  # where it lay is no matter
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (started, *_), (*_, ended) = events, events
    rates = [event["tokens_per_second"] for event in events if event["event"] == "trained"]
    scores["training"] = {
        "seconds": ended["seconds"],
        "updates": ended["update"],
        f"{'texts' if classifier else 'target_tokens'}_per_second": round(statistics.median(rates)),
        "parameters": started["parameters"],
        "device": started["device"],
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": settings["training"].get("threads") or os.cpu_count(),
    }
    return scores


def tables(results: list[dict[str, Any]]) -> str:
    """Translations, then classifiers."""
    told = [result for result in results if "accuracy" in result]
    written = [result for result in results if "accuracy" not in result]
    found = [table(written)] if written else []
    return "\n\n".join([*found, *([accuracies(told)] if told else [])])


def accuracies(results: list[dict[str, Any]]) -> str:
    """One row a classifier."""
    rows = [
        "| run | parameters | trained in | cores | texts/s | accuracy | 95 % interval | of |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        training, interval = result["training"], result["interval"]
        rows.append(
            f"| [{result['run']}](docs/results/{result['run']}.json)"
            f" | {training['parameters'] / 1e6:.1f} M"
            f" | {_clock(training['seconds'])}"
            f" | {training['threads']} of {training['cores']}"
            f" | {training['texts_per_second']:,}"
            f" | {result['accuracy']:.1%}"
            f" | {interval['low']:.1%}–{interval['high']:.1%}"
            f" | {result['data']['texts']:,} texts: {result['data']['name']} |"
        )
    return "\n".join(rows)


def table(results: list[dict[str, Any]]) -> str:
    """One row a run that translates."""
    rows = [
        "| run | parameters | trained in | cores | target tokens/s | search | BLEU | chrF2 "
        "| right |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        training, scores = result["training"], result["scores"]
        rows.append(
            f"| [{result['run']}](docs/results/{result['run']}.json)"
            f" | {training['parameters'] / 1e6:.1f} M"
            f" | {_clock(training['seconds'])}"
            f" | {training['threads']} of {training['cores']}"
            f" | {training['target_tokens_per_second']:,}"
            f" | {_search(result['decoding'])}"
            f" | {scores['BLEU']['value']:.1f}"
            f" | {scores['chrF2']['value']:.1f}"
            f" | {result['exactly_right']:.1%} |"
        )
    machines = sorted({r["training"]["processor"] for r in results})
    signatures = sorted({r["scores"]["BLEU"]["signature"] for r in results})
    how = [*machines, "BLEU " + ", ".join(f"`{signature}`" for signature in signatures)]
    return "\n".join([*rows, "", f"On test sets; {'; '.join(how)}."])


def with_table(text: str) -> str:
    """The README with its table made anew from docs/results."""
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(results)}\n{END}{after}"


def _search(decoding: dict[str, Any]) -> str:
    return f"beam {decoding['beam']}" if decoding["method"] == "beam" else decoding["method"]


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def processor() -> str:
    """The name of the machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main(verb: str, *runs: str) -> None:
    """`record RUN …` or `table`."""
    if verb == "record":
        RESULTS.mkdir(exist_ok=True)
        for run in map(Path, runs):
            target = RESULTS / f"{run.name}.json"
            target.write_text(json.dumps(recorded(run), indent=1) + "\n")
    elif verb != "table":
        sys.exit(__doc__)
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["help"]))
