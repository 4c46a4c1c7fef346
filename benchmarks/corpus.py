"""The corpus of the benchmarks: the same subword pieces for every contender, made once.

train.source, train.target    a sentence a line, its pieces parted by spaces
valid.source, valid.target    the first 640 of them, for peers that want some
vocabulary.txt                the pieces, one a line, without the special ones
tokenizer.model               the same for sentencepiece, which makes them and puts them together
source.txt, target.txt        the sentences as they were: attlas has its own way to the pieces
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attlas.data import FilesData, Pair, VocabularyConfig, build_vocabularies

VOCABULARY = VocabularyConfig(kind="bpe", size=8000, shared=True)


def made(data: tuple[Path, Path], folder: Path) -> Path:
    """Write the corpus of these two files, unless it is what `folder` holds."""
    facts: dict[str, Any] = {
        "files": [hashlib.sha256(path.read_bytes()).hexdigest() for path in data],
        "valid": 640,
        "layout": 2,  # of this folder
        "vocabulary": VOCABULARY.model_dump(mode="json"),
    }
    stamp = folder / "made.json"
    if stamp.is_file() and json.loads(stamp.read_text(encoding="utf-8")) == facts:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)  # until all is written
    names = str(data[0]), str(data[1])
    pairs = FilesData(train=names, valid=names).load().train.pairs
    written(folder, VOCABULARY, {"train": pairs, "valid": pairs[: facts["valid"]]})
    _write(folder / "source.txt", [pair.source for pair in pairs])
    _write(folder / "target.txt", [pair.target for pair in pairs])
    stamp.write_text(json.dumps(facts), encoding="utf-8")
    return folder


def written(folder: Path, config: VocabularyConfig, splits: Mapping[str, Sequence[Pair]]) -> None:
    """The pieces of each split, by the vocabulary of "train", and that vocabulary's list."""
    vocabularies = build_vocabularies(config, splits["train"])
    vocabularies.save(folder)
    vocabulary = vocabularies.source
    for name, pairs in splits.items():
        for side, texts in {
            "source": [pair.source for pair in pairs],
            "target": [pair.target for pair in pairs],
        }.items():
            pieces = [" ".join(vocabulary.pieces_of(text)) for text in texts]
            _write(folder / f"{name}.{side}", pieces)
    _write(folder / "vocabulary.txt", vocabulary.pieces(list(range(4, len(vocabulary)))))


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
