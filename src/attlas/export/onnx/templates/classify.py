"""Classify lines: python classify.py < texts > labels

The label of each line and its probability, by classifier.onnx beside this file, with numpy,
onnxruntime and, for subwords, sentencepiece. Take from it what you need.
"""

import hashlib
import json
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

PAD, UNKNOWN, BEGIN, END = range(4)
BATCH = 8  # lines; a text may be long
BREAK = re.compile(r"<\s*(?:/\s*)?br\b[^<>]*>", re.IGNORECASE)


def normalized(text: str, form: str) -> str:
    """The text in this form of Unicode, "none", "nfc" or "nfkc"."""
    return text if form == "none" else unicodedata.normalize(form.upper(), text)  # type: ignore[arg-type]


class Subwords:
    """A sentencepiece model with byte fallback; "▁", its sign of a space, is spelt in bytes."""

    def __init__(self, path: Path) -> None:
        import sentencepiece

        model = path.read_bytes()
        ruled: Any = sentencepiece.SentencePieceProcessor(model_proto=model)
        composes = "e\u0301" not in ruled.normalize("e\u0301")
        compatible = "\ufb01" not in ruled.normalize("\ufb01")
        self.form = ("nfkc" if compatible else "nfc") if composes else "none"
        # Python's rules are whole, those of the model are not: an empty precompiled_charsmap.
        model_bytes = model + (b"\x1a\x02\x12\x00" if composes else b"")
        self.model: Any = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
        self.of_space = [self.model.piece_to_id(f"<0x{byte:02X}>") for byte in "▁".encode()]

    def encode(self, text: str) -> list[int]:
        """The ids of a text, which is read with one space before it."""
        first, *others = f" {normalized(text, self.form)}".split("▁")
        ids: list[int] = self.model.encode(first)
        for other in others:
            ids += [*self.of_space, *self.model.encode(other)]
        return ids

    def knows(self, text: str, ids: Sequence[int]) -> bool:
        """Whether a word of the text is known at least in part; a byte of a character is none."""
        pieces = [self.model.id_to_piece(id_) for id_ in ids if not self.model.is_byte(id_)]
        if any(map(str.isalnum, text)):
            return any(any(map(str.isalnum, piece)) for piece in pieces)
        return any(piece != "▁" for piece in pieces)


class Listed:
    """Words or characters: id 4 + n is token n of a list."""

    def __init__(self, path: Path) -> None:
        table = json.loads(path.read_text(encoding="utf-8"))
        self.words, self.form = table["kind"] == "words", table.get("normalization", "none")
        self.ids = {token: id_ for id_, token in enumerate(table["tokens"], 4)}
        # A token of several characters is a symbol; of two that begin alike the longer one counts.
        symbols = sorted((token for token in table["tokens"] if len(token) > 1), key=len)
        self.one = re.compile("|".join([*map(re.escape, reversed(symbols)), "."]), re.DOTALL)

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        normalized_text = normalized(text, self.form)
        tokens = normalized_text.split() if self.words else self.one.findall(normalized_text)
        return [self.ids.get(token, UNKNOWN) for token in tokens]

    def knows(self, text: str, ids: Sequence[int]) -> bool:
        """Whether a word of the text is in the list; punctuation is none."""
        tokens = [token for token, id_ in self.ids.items() if id_ in ids]
        if any(map(str.isalnum, text)):
            return any(any(map(str.isalnum, token)) for token in tokens)
        return any(token != " " for token in tokens)


def vocabulary(folder: Path) -> "Subwords | Listed":
    """How the ids of a text are found."""
    path = folder / "tokenizer.model"
    return Subwords(path) if path.is_file() else Listed(folder / "tokenizer.json")


def check(folder: Path) -> None:
    """That the files here are those that were exported: attlas.json has their SHA-256."""
    try:
        files = json.loads((folder / "attlas.json").read_bytes())["files"]
        other = [name for name, digest in files.items() if sha256(folder / name) != digest]
    except FileNotFoundError as error:
        raise SystemExit(f"no {error.filename}: take the whole folder that was exported") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SystemExit(f"{folder / 'attlas.json'} is damaged ({error!r}): export again") from None
    if other:
        raise SystemExit(f"{folder} has other bytes in {', '.join(other)}: export again")


def sha256(path: Path) -> str:
    """The checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Classifier:
    """Texts in, the probabilities of their labels out."""

    def __init__(self, folder: Path) -> None:
        check(folder)
        self.vocabulary = vocabulary(folder)
        self.labels: list[str] = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
        self.model = onnxruntime.InferenceSession(folder / "classifier.onnx")
        facts = self.model.get_modelmeta().custom_metadata_map
        self.longest = int(facts.get("longest", sys.maxsize))  # tokens that have a position
        self.seen = int(facts.get("seen", sys.maxsize))  # tokens of a text that is seen as a whole

    def __call__(self, texts: Sequence[str], first: int = 1) -> list[dict[str, float]]:
        """Of each text the probability of every label, in one batch.

        What a reader has to know of one is printed on the standard error, with the number of its
        line. first: that of the first text.
        """
        rows = [self.read(text, f"line {number}") for number, text in enumerate(texts, first)]
        sizes = np.array([len(row) for row in rows])
        token_mask = np.arange(sizes.max()) < sizes[:, None]
        source = np.full(token_mask.shape, PAD, dtype=np.int64)
        for row, ids in enumerate(rows):
            source[row, : len(ids)] = ids
        (probabilities,) = self.model.run(
            ["probabilities"], {"source": source, "token_mask": token_mask}
        )
        return [dict(zip(self.labels, row, strict=True)) for row in probabilities.tolist()]

    def read(self, text: str, place: str) -> list[int]:
        """The ids of a text, and the end."""
        line = " ".join(BREAK.sub(" ", text).split())
        ids = self.vocabulary.encode(line)
        ids_read = ids[: self.longest - 1]
        for remark in self.remarks(line, ids_read, len(ids) - len(ids_read)):
            print(f"{place}: {remark}", file=sys.stderr)
        return [*ids_read, END]

    def remarks(self, line: str, ids_read: Sequence[int], cut: int) -> Iterator[str]:
        """What a reader has to know of a line, of whose ids some are kept and some cut off."""
        if not line:
            yield "there is no word in it"
        elif not self.vocabulary.knows(line, ids_read):
            yield "none of its words is in the vocabulary, so its label says nothing about it"
        if cut:
            tokens = "1 token" if cut == 1 else f"{cut:,} tokens"
            yield f"longer than the model can read: {tokens} of it had no part in its label"
        if len(ids_read) > self.seen:
            yield "its label comes from what its first token sees, which may not be all of it"


def batches(stream: Any) -> Iterator[list[str]]:
    """The lines of a stream, some at a time: they end with a line feed and nothing else, and a byte
    order mark before the first is none of its text. Where one is not UTF-8, those before it come.
    """
    batch: list[str] = []
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            if batch:
                yield batch
            byte = f"byte 0x{line[error.start]:02x} at byte {error.start + 1}"
            raise SystemExit(f"line {number} is not UTF-8: {byte}") from None
        batch.append(text.removeprefix("\ufeff") if number == 1 else text)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


if __name__ == "__main__":
    classifier, number = Classifier(Path(__file__).resolve().parent), 1
    for batch in batches(sys.stdin.buffer):
        for found in classifier(batch, number):
            best = max(found, key=found.__getitem__)
            sys.stdout.buffer.write(f"{best}\t{found[best]:.4f}\n".encode())
        sys.stdout.buffer.flush()
        number += len(batch)
