"""Choose and write the corpus that ships with attlas: python scripts/ship_corpus.py en-de.tsv.gz.

The input is the English–German file of manythings.org/anki: English, tab, German. The choice
depends on the sentences alone (by hash), so the same input gives the same corpus.
"""

import argparse
import gzip
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from attlas.data import Pair, read_pairs

TEST, VALID, TRAIN = 1_000, 1_000, 60_000
ENGLISH_WORDS = range(3, 11)
GERMAN_WORDS = range(2, 13)
SEEN_ENGLISH, SEEN_GERMAN = 5, 3  # how often each word of a sentence occurs in the whole input
OUT = Path(__file__).resolve().parents[1] / "src" / "attlas" / "data" / "shipped"


def words(sentence: str) -> list[str]:
    """What is left of a sentence without case and punctuation."""
    return re.findall(r"\w+", sentence.casefold())


def key(sentence: str) -> str:
    """Sentences with the same key are the same sentence to us."""
    return " ".join(words(sentence))


def chance(text: str) -> bytes:
    """A fixed lot for a text."""
    return hashlib.sha256(text.encode()).digest()


def suitable(pairs: Iterable[Pair]) -> list[Pair]:
    """Short sentences of known words, in one line of plain spaces."""
    pairs = list(pairs)
    english = Counter(word for source in {p.source for p in pairs} for word in words(source))
    german = Counter(word for target in {p.target for p in pairs} for word in words(target))
    return [
        pair
        for pair in pairs
        if len(pair.source.split()) in ENGLISH_WORDS
        and len(pair.target.split()) in GERMAN_WORDS
        and all(english[word] >= SEEN_ENGLISH for word in words(pair.source))
        and all(german[word] >= SEEN_GERMAN for word in words(pair.target))
        and "\N{NO-BREAK SPACE}" not in pair.source + pair.target
    ]


def one_each(pairs: Iterable[Pair]) -> list[Pair]:
    """One pair for each English sentence; which of its translations, and the order, is by lot."""
    translations: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        translations[key(pair.source)].append(pair)
    return [
        min(translations[english], key=lambda pair: chance("\t".join(pair)))
        for english in sorted(translations, key=chance)
    ]


def split(pairs: list[Pair]) -> dict[str, list[Pair]]:
    """Test, validation and training pairs; no German sentence of the first two is in the third."""
    test, valid, rest = pairs[:TEST], pairs[TEST : TEST + VALID], pairs[TEST + VALID :]
    held_out = {key(pair.target) for pair in test + valid}
    train = [pair for pair in rest if key(pair.target) not in held_out][:TRAIN]
    return {"train": train, "valid": valid, "test": test}


def write(path: Path, pairs: Iterable[Pair]) -> None:
    """Gzipped TSV without a time or a name in its header."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as zipped:
        zipped.write("".join(f"{p.source}\t{p.target}\n" for p in pairs).encode())


def main() -> None:
    """Read, choose, write, and say how many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tatoeba", type=Path, help="English, tab, German; may be gzipped")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder to write to")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, pairs in split(one_each(suitable(read_pairs([given.tatoeba]).pairs))).items():
        path = given.out / f"{name}.en-de.tsv.gz"
        write(path, pairs)
        print(f"{path.name}: {len(pairs):,} pairs, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
