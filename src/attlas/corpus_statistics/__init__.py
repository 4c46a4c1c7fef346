"""Attention statistics of a whole corpus: every text is read once, row by row."""

from attlas.corpus_statistics.huggingface import HuggingFaceFolder, HuggingFaceReader
from attlas.corpus_statistics.readers import (
    ClassifierReader,
    CorpusText,
    MapRecord,
    Reader,
    TextWindow,
    TranslatorReader,
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
    measure_joined_maps,
    measure_map,
)

__all__ = [
    "ALSO",
    "COLUMNS",
    "TOKEN_COLUMNS",
    "ClassifierReader",
    "Column",
    "CorpusText",
    "Frame",
    "HuggingFaceFolder",
    "HuggingFaceReader",
    "Kind",
    "MapRecord",
    "Measured",
    "Reader",
    "TextWindow",
    "TranslatorReader",
    "batches_of",
    "columns_of",
    "frames",
    "measure_joined_maps",
    "measure_map",
    "windows_of",
]
