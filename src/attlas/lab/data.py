"""Data and models that experiments read beside what attlas ships."""

import os
from pathlib import Path
from typing import Any

from attlas.errors import DataError, missing_extra

VARIABLE = "ATTLAS_LAB_DATA"
"""The environment variable that names the folder with the data."""

# Where each comes from. A folder of that name is looked for under $ATTLAS_LAB_DATA.
ORIGINS = {
    "multi30k": "https://github.com/multi30k/dataset (train, val, test_2016_flickr)",
    "stories260K": "https://huggingface.co/karpathy/tinyllamas (as a transformers folder)",
    "imdb": "https://ai.stanford.edu/~amaas/data/sentiment/ (train.jsonl.gz: text, label)",
    "tatoeba": "https://www.manythings.org/anki/ (en-de.tsv.gz: English, tab, German)",
    "word-alignment": "https://github.com/lilt/alignment-scripts (English–French Hansards)",
}


def data_folder(name: str) -> Path | None:
    """The folder of that name under $ATTLAS_LAB_DATA; None where there is none."""
    root = os.environ.get(VARIABLE)
    if not root:
        return None
    folder = Path(root) / name
    return folder if folder.is_dir() else None


def required(name: str) -> Path:
    """The folder of that name.

    Raises:
        DataError: If it is not there.
    """
    folder = data_folder(name)
    if folder is None:
        raise DataError(
            f"a folder {name} under ${VARIABLE}",
            os.environ.get(VARIABLE) or f"no ${VARIABLE}",
            f"get it from {ORIGINS[name]}",
        )
    return folder


def language_model(name: str) -> Any:
    """The trained model of that folder, which writes text, ready to be asked.

    Raises:
        DataError: If the folder is not there.
    """
    try:
        from transformers import AutoModelForCausalLM
    except ImportError:
        raise missing_extra("a Hugging Face model", "hub") from None
    folder = required(name)
    folder = folder / "hf" if (folder / "hf").is_dir() else folder
    model: Any = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    return model.eval()
