"""What a whole corpus says about a model: every text read once, its statistics row by row."""

from attlas.corpus_statistics.huggingface import HuggingFaceFolder, HuggingFaceReader
from attlas.corpus_statistics.readers import (
    ClassifierReader,
    Look,
    Reader,
    Text,
    TranslatorReader,
    Window,
    batches_of,
    windows_of,
)
from attlas.corpus_statistics.table import (
    ALSO,
    COLUMNS,
    TOKEN_COLUMNS,
    Column,
    Frame,
    Kind,
    Measured,
    columns_of,
    frames,
    measured,
)

__all__ = [
    "ALSO",
    "COLUMNS",
    "TOKEN_COLUMNS",
    "ClassifierReader",
    "Column",
    "Frame",
    "HuggingFaceFolder",
    "HuggingFaceReader",
    "Kind",
    "Look",
    "Measured",
    "Reader",
    "Text",
    "TranslatorReader",
    "Window",
    "batches_of",
    "columns_of",
    "frames",
    "measured",
    "windows_of",
]
