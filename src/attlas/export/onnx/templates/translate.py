"""Translate lines: python translate.py < source > target

Greedy search over encoder.onnx and decoder.onnx beside this file, with numpy, onnxruntime and, for
subwords, sentencepiece. Take from it what you need.
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
BATCH = 32  # lines


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

    def decode(self, ids: list[int]) -> str:
        """The text of these ids; "\N{REPLACEMENT CHARACTER}" is an unknown one."""
        spelt = b"".join(map(self.spelling, ids))
        return spelt.decode("utf-8", errors="replace").removeprefix(" ")

    def spelling(self, id_: int) -> bytes:
        """How a token is written: nothing, one byte, or characters."""
        piece: str = self.model.id_to_piece(id_)
        if id_ in (PAD, BEGIN, END):
            return b""
        if id_ == UNKNOWN:
            return "\N{REPLACEMENT CHARACTER}".encode()
        if self.model.is_byte(id_):  # <0x41>
            return bytes([int(piece[3:5], 16)])
        return piece.replace("▁", " ").encode()


class Listed:
    """Words or characters: id 4 + n is token n of a list."""

    def __init__(self, path: Path) -> None:
        table = json.loads(path.read_text(encoding="utf-8"))
        self.words, self.form = table["kind"] == "words", table.get("normalization", "none")
        unknown = "<unk>" if self.words else "\N{REPLACEMENT CHARACTER}"
        self.tokens = ["", unknown, "", "", *table["tokens"]]
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

    def decode(self, ids: list[int]) -> str:
        """The text of these ids."""
        return (" " if self.words else "").join(self.tokens[id_] for id_ in ids)


def vocabulary(folder: Path, side: str) -> "Subwords | Listed":
    """That of a side, source or target; a joint one is called tokenizer."""
    for name in (side, "tokenizer"):
        for suffix, kind in ((".model", Subwords), (".json", Listed)):
            if (path := folder / f"{name}{suffix}").is_file():
                return kind(path)
    raise SystemExit(f"{folder} has neither {side}.* nor tokenizer.*")


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


class Translator:
    """Texts in, translations out."""

    def __init__(self, folder: Path) -> None:
        check(folder)
        self.source, self.target = vocabulary(folder, "source"), vocabulary(folder, "target")
        self.encoder = onnxruntime.InferenceSession(folder / "encoder.onnx")
        self.decoder = onnxruntime.InferenceSession(folder / "decoder.onnx")
        self.encoded = [output.name for output in self.encoder.get_outputs()]
        self.inputs = [input_.name for input_ in self.decoder.get_inputs()]
        self.found = [output.name for output in self.decoder.get_outputs()]
        facts = self.decoder.get_modelmeta().custom_metadata_map
        self.factor = float(facts["max_len_a"])
        self.constant = int(facts["max_len_b"])
        self.least = int(facts["min_length"])
        self.positions = int(facts.get("longest", sys.maxsize))
        self.never = [PAD, BEGIN, *([UNKNOWN] if facts.get("unknown") == "forbid" else [])]
        max_source_length = int(facts.get("max_source_length", sys.maxsize))
        self.read = min(
            max_source_length, self.positions - 1
        )  # tokens of a source, its end not among them

    def __call__(self, texts: Sequence[str], first: int = 1) -> list[str]:
        """The translations of these texts, in one batch; that of an empty one is empty.

        What a reader has to know of one is printed on the standard error, with the number of its
        line. first: that of the first text.
        """
        translations = [""] * len(texts)
        encoded = {row: self.source.encode(text) for row, text in enumerate(texts) if text.strip()}
        sources = {row: ids[: self.read] for row, ids in encoded.items()}
        hypotheses = self.search(list(sources.values())) if sources else []
        for (row, source), (ids, finished) in zip(sources.items(), hypotheses, strict=True):
            translations[row] = self.target.decode(ids).replace("\n", " ")
            known = self.source.knows(texts[row], source)
            for remark in remarks(len(encoded[row]) - len(source), finished, known):
                print(f"line {first + row}: {remark}", file=sys.stderr)
        return translations

    def search(self, sources: Sequence[Sequence[int]]) -> list[tuple[list[int], bool]]:
        """The most probable token each time; sources are ids without end. Of each the ids of its
        target without end, and whether the end came.
        """
        sizes = np.array([len(source) + 1 for source in sources])
        token_mask = np.arange(sizes.max()) < sizes[:, None]
        ids = np.full(token_mask.shape, PAD, dtype=np.int64)
        for row, source in enumerate(sources):
            ids[row, : len(source) + 1] = [*source, END]
        state = self.start(ids, token_mask)
        tokens = np.full(len(sources), BEGIN, dtype=np.int64)
        max_lengths = [int(self.factor * size) + self.constant for size in sizes.tolist()]
        limits = np.minimum(max_lengths, self.positions - 1)
        finished = np.zeros(len(sources), dtype=bool)
        steps: list[Any] = []
        while not finished.all():
            logits, state = self.step(tokens, state)
            logits[:, self.never] = -np.inf
            if len(steps) < self.least:
                logits[:, END] = -np.inf
            tokens = logits.argmax(axis=1)
            finished |= (tokens == END) | (len(steps) == limits)
            steps.append(tokens)
        rows = np.stack(steps, axis=1).tolist()
        return [ended(row[: limit + 1]) for row, limit in zip(rows, limits.tolist(), strict=True)]

    def start(self, source: Any, token_mask: Any) -> dict[str, Any]:
        """What the decoder asks for before the first token."""
        outputs = self.encoder.run(None, {"source": source, "token_mask": token_mask})
        state = {"token_mask": token_mask, **dict(zip(self.encoded, outputs, strict=True))}
        for name in self.inputs:
            if name.startswith("past_") and name not in state:  # a Transformer's past is empty
                state[name] = state[name.replace("past_", "source_")][:, :, :0]
        return state

    def step(self, tokens: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Logits of what comes after these tokens, and the state behind them."""
        feeds = {"tokens": tokens, **state}
        logits, *after = self.decoder.run(None, {name: feeds[name] for name in self.inputs})
        past = {f"past_{name}": value for name, value in zip(self.found[1:], after, strict=True)}
        return logits, {**state, **past}


def ended(ids: list[int]) -> tuple[list[int], bool]:
    """The ids before the end, and whether it came; the last one is there only to be the end."""
    return (ids[: ids.index(END)], True) if END in ids else (ids[:-1], False)


def remarks(cut: int, finished: bool, known: bool) -> list[str]:
    """What a reader has to know of a translation beside its text."""
    notes = []
    if not known:
        notes.append(
            "None of its words is in the vocabulary, so the translation says nothing about it."
        )
    if cut:
        tokens = "token was" if cut == 1 else f"{cut:,} tokens were"
        notes.append(
            f"The text is longer than this model is set to read: its last {tokens} left out."
        )
    if not finished:
        notes.append("The model did not end what it wrote: it was cut off at the greatest length.")
    return notes


def batches(stream: Any) -> Iterator[list[str]]:
    """The lines of a stream, some at a time: they end with a line feed and nothing else, and a byte
    order mark before the first is none of its text. Where one is not UTF-8, those before it come.
    """
    batch: list[str] = []
    for number, line in enumerate(stream, 1):
        try:
            ended = b"\r\n" if line.endswith(b"\r\n") else b"\n"
            text = line.removesuffix(ended).decode("utf-8")
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
    translator, number = Translator(Path(__file__).resolve().parent), 1
    for batch in batches(sys.stdin.buffer):
        written = "".join(f"{text}\n" for text in translator(batch, number))
        sys.stdout.buffer.write(written.encode())
        sys.stdout.buffer.flush()
        number += len(batch)
