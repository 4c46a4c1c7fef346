"""What every source of data answers."""

from abc import ABC, abstractmethod
from pathlib import Path

from attlas.config import Config
from attlas.data.corpus import Splits


class DataSettings(Config, ABC):
    """Where sentence pairs come from; told apart by `kind`."""

    @abstractmethod
    def load(self) -> Splits:
        """Read the three splits; a mistake in the data is an `AttlasError` that names its place."""

    def resolved(self, base: Path) -> "DataSettings":
        """The same with relative paths taken from `base`, the folder of the recipe file."""
        return self
