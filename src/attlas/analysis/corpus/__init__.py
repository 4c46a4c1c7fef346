"""What a whole corpus says about a model: every text read once, its statistics row by row."""

from attlas.analysis.corpus.classifier_reader import ClassifierReader
from attlas.analysis.corpus.columns import ALSO, COLUMNS, TOKEN_COLUMNS, Column, Kind, columns_of
from attlas.analysis.corpus.frames import Frame, frames
from attlas.analysis.corpus.huggingface_folder import HuggingFaceFolder
from attlas.analysis.corpus.huggingface_reader import HuggingFaceReader
from attlas.analysis.corpus.measured import Measured, measured
from attlas.analysis.corpus.reader import Look, Reader
from attlas.analysis.corpus.text import Text
from attlas.analysis.corpus.translator_reader import TranslatorReader
from attlas.analysis.corpus.windows import Window, batches_of, windows_of

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
