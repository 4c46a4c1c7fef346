"""From settings to corpora."""

from typing import Annotated

from pydantic import Field

from attlas.data.corpus import Splits
from attlas.data.files import FilesData
from attlas.data.huggingface import HuggingFaceData
from attlas.data.shipped_corpus import ShippedData
from attlas.data.toy import ToyData

DataConfig = Annotated[
    FilesData | ShippedData | ToyData | HuggingFaceData, Field(discriminator="kind")
]


def load_splits(config: FilesData | ShippedData | ToyData | HuggingFaceData) -> Splits:
    """The three splits that the settings describe; every `Corpus` carries its filter report."""
    return config.load()
