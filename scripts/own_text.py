"""What `attlas train --pairs` reaches on tables of several sizes: the figures of the tutorial.

python scripts/own_text.py en-de.tsv.gz --sizes 300 3000 30000 --out own-text

TABLE has a sentence, a tab and its translation in each line, such as a file of
https://www.manythings.org/anki. From it come FOLDER/test.tsv, 1,000 sentences with one translation
each, and FOLDER/SIZE.tsv, the pairs to train on. No sentence of the test is in any of the others,
whatever its case and punctuation, and no translation of the test. The choice depends on the
sentences alone (by hash), and a smaller table is the beginning of a larger one.

Each size is then trained and scored on the test, and a row of the table is printed.
`--only-write` writes the files alone.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from attlas.data import Pair, read_pairs
from attlas.runs import Run

TEST = 1_000


def key(sentence: str) -> str:
    """Sentences with the same key are the same sentence to us."""
    return " ".join(re.findall(r"\w+", sentence.casefold()))


def chance(text: str) -> bytes:
    """A fixed lot for a text."""
    return hashlib.sha256(text.encode()).digest()


def split(pairs: Iterable[Pair], sizes: Sequence[int]) -> tuple[list[Pair], dict[int, list[Pair]]]:
    """The test, and the pairs to train on by size."""
    translations: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        translations[key(pair.source)].append(pair)
    order = sorted(translations, key=chance)
    test = [
        min(translations[source], key=lambda pair: chance("\t".join(pair)))
        for source in order[:TEST]
    ]
    held_out = {key(pair.target) for pair in test}
    rest = [
        pair
        for source in order[TEST:]
        for pair in translations[source]
        if key(pair.target) not in held_out
    ]
    return test, {size: rest[:size] for size in sizes}


def write(path: Path, pairs: Iterable[Pair]) -> None:
    """A pair a line, with a tab between."""
    text = "".join(f"{pair.source}\t{pair.target}\n" for pair in pairs)
    path.write_text(text, encoding="utf-8", newline="\n")


def attlas(*arguments: object) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "attlas", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measured(folder: Path, size: int) -> str:
    """Train on one size, score it, and describe it in a row."""
    run = folder / f"run-{size}"
    attlas("train", "--pairs", folder / f"{size}.tsv", "--out", run)
    test = folder / "test.tsv"
    lines = [line.split("\t") for line in test.read_text(encoding="utf-8").splitlines()]
    sides = [folder / "test.source", folder / "test.target"]
    for path, side in zip(sides, zip(*lines, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in side), encoding="utf-8", newline="\n")
    found = json.loads(
        attlas("evaluate", run, "--source", sides[0], "--reference", sides[1], "--json")
    )
    events, scores = Run(run).events(), found["scores"]
    started = next(event for event in events if event["event"] == "started")
    return (
        f"| {size:,} | {started['parameters'] / 1e6:.1f} M | {events[-1]['update']:,} "
        f"| {events[-1]['seconds'] / 60:.1f} min | {scores['BLEU']['value']:.1f} "
        f"| {scores['chrF2']['value']:.1f} |"
    )


def main() -> None:
    """Write the files, then train and score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path, help="a sentence, a tab, its translation; or gzipped")
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 3_000, 30_000])
    parser.add_argument("--out", type=Path, default=Path("own-text"), help="the folder to write to")
    parser.add_argument("--only-write", action="store_true", help="write the tables, train nothing")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    test, by_size = split(read_pairs([given.table]).pairs, given.sizes)
    write(given.out / "test.tsv", test)
    for size, pairs in by_size.items():
        write(given.out / f"{size}.tsv", pairs)
    if given.only_write:
        return
    rows = [measured(given.out, size) for size in given.sizes]
    print("| pairs | parameters | updates | time | BLEU | chrF |\n|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
