"""The corpus that comes with attlas: short everyday English–German pairs from Tatoeba."""

from importlib.resources import as_file, files
from typing import Literal

from attlas.data.corpus import Corpus, SplitName
from attlas.data.files import read_pairs
from attlas.data.settings import DataSettings

SHIPPED = files("attlas") / "data" / "shipped"


class ShippedData(DataSettings):
    """English–German from Tatoeba (CC BY 2.0 FR), split by English sentence.

    No English sentence, whatever its case and punctuation, is on two sides.
    """

    kind: Literal["shipped"] = "shipped"
    direction: Literal["en-de", "de-en"] = "en-de"

    def corpus(self, split: SplitName) -> Corpus:
        columns = (1, 2) if self.direction == "en-de" else (2, 1)
        with as_file(SHIPPED / f"{split}.en-de.tsv.gz") as path:
            pairs = read_pairs((path,), columns, quoting="none")
            return pairs.renamed(f"tatoeba {self.direction} {split}")


def attribution() -> str:
    """Whose sentences these are, under which licence, and what was changed."""
    return (SHIPPED / "ATTRIBUTION.md").read_text(encoding="utf-8")
