"""What every source of data answers."""

from abc import ABC, abstractmethod
from pathlib import Path

from pydantic import BeforeValidator

from attlas.config import Config
from attlas.data.corpus import Corpus, SplitName, Splits
from attlas.data.holding_back import overlap_told

EMPTY_IS_NONE = BeforeValidator(lambda value: None if value == "" else value)
"""So that `--set data.test=` says that there is none, for which TOML has no word."""


class DataSettings(Config, ABC):
    """Where sentence pairs come from; told apart by `kind`."""

    @abstractmethod
    def corpus(self, split: SplitName) -> Corpus:
        """Read one split alone; a mistake in the data is an `AttlasError` that names its place."""

    def load(self) -> Splits:
        """Read the three splits."""
        train, valid = self.corpus("train"), self.corpus("valid")
        return Splits(train, overlap_told(train, valid), self.corpus("test"))

    @property
    def passing(self) -> bool:
        """Whether a part of the data comes from the standard input, which can be read only once."""
        return False

    def resolved(self, base: Path) -> "DataSettings":
        """The same with relative paths taken from `base`, the folder of the recipe file."""
        return self
