"""From settings to corpora."""

from typing import Annotated

from pydantic import Field

from attlas.data.corpus import Splits
from attlas.data.files import FilesData
from attlas.data.huggingface import HuggingFaceData
from attlas.data.labelled_data import LabelledData
from attlas.data.shipped_corpus import ShippedData
from attlas.data.toy import ToyData

DataConfig = Annotated[
    FilesData | ShippedData | ToyData | HuggingFaceData | LabelledData,
    Field(discriminator="kind"),
]
"""Where the data of any task comes from; `kind` tells."""


def load_splits(config: FilesData | ShippedData | ToyData | HuggingFaceData) -> Splits:
    """The three splits of sentence pairs that the settings describe, each with its report."""
    return config.load()
