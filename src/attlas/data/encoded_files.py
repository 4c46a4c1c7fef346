"""The training pairs as ids in files of a run, which are mapped into memory.

Of pairs whose text is too large for memory (see `IN_MEMORY`), the ids are written once, and opened
by every later session whose data is the same.

00000.ids, 00001.ids, …      the ids of 262,144 pairs each: all sources, then all targets
source.lengths, target.lengths   how many ids each side of each pair has
lines                        the line of each pair in its file
valid.txt                    the validation pairs: a line for each side
seal.json                    what they were made of, and the SHA-256 of each of these files
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from attlas._files import TEMPORARY, explained, parse_json, sha256_of, stored_bytes
from attlas._parallel import POSSIBLE, ForkPool
from attlas.data.batching import EncodedCorpus, encoders_of
from attlas.data.bucketing import typecode_of
from attlas.data.corpus import Corpus, Fault, FilterReport
from attlas.data.stored_pairs import AbsentPairs, Pair, StoredPairs
from attlas.data.vocabularies import Vocabularies
from attlas.errors import DataError

ENCODED = "encoded"
"""The folder of these files in a run."""

ROWS = 2**18  # pairs of a file
_LAYOUT = 1  # of the folder; files of another one are written anew
_SEAL, _VALID, _LINES = "seal.json", "valid.txt", "lines"
_SIDES = ("source", "target")


class StoredRows:
    """One side of encoded pairs: `Rows` whose ids lie in mapped files.

    Args:
        files: The ids of each file; those of this side begin where `begins` says.
        lengths: Of all rows.
    """

    def __init__(
        self,
        files: Sequence[NDArray[np.integer[Any]]],
        begins: Sequence[int],
        lengths: NDArray[np.integer[Any]],
    ) -> None:
        self._files, self.lengths = files, lengths
        self._starts = []
        for number, begin in enumerate(begins):
            part = lengths[number * ROWS : (number + 1) * ROWS]
            starts = np.full(len(part) + 1, begin, dtype=np.uint32)
            starts[1:] += np.cumsum(part, dtype=np.uint32)
            self._starts.append(starts)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> NDArray[np.integer[Any]]:
        """The ids of one row: a view of the file."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        number, place = divmod(row, ROWS)
        starts = self._starts[number]
        return self._files[number][starts[place] : starts[place + 1]]


class _Lines(Sequence[int]):
    """Numbers of lines in a mapped file."""

    def __init__(self, numbers: NDArray[np.integer[Any]]) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...
    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        if isinstance(place, slice):
            return _Lines(self._numbers[place])
        return int(self._numbers[place])


# Writing.


def write_encoded(
    run: Path,
    train: Corpus,
    valid: Corpus,
    vocabularies: Vocabularies,
    made_of: Mapping[str, Any],
    processes: int = 1,
) -> None:
    """Encode the training pairs, each in its one best segmentation, into the folder of a run.

    The files get their name when all of them are written. A kill leaves a folder whose name ends in
    .tmp, which the next session takes away.

    Args:
        train: Whose text lies in a file.
        made_of: What the files depend on beside the pairs, as JSON: see `EncodedFiles`.
        processes: That share the work, on Linux.

    Raises:
        AttlasError: If the disk refuses.
    """
    folder, temporary = run / ENCODED, _temporary(run)
    with explained(folder):
        forget_encoded(run)
        temporary.mkdir()
        try:
            _write(temporary, train, valid, vocabularies, made_of, processes)
            temporary.rename(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def forget_encoded(run: Path) -> None:
    """Take away the files, and what a killed session left of them."""
    for folder in (run / ENCODED, _temporary(run)):
        if folder.is_dir():
            shutil.rmtree(folder)


def _temporary(run: Path) -> Path:
    return run / f"{ENCODED}{TEMPORARY}"


def _write(
    folder: Path,
    train: Corpus,
    valid: Corpus,
    vocabularies: Vocabularies,
    made_of: Mapping[str, Any],
    processes: int,
) -> None:
    pairs = train.pairs.pairs if isinstance(train.pairs, AbsentPairs) else train.pairs
    assert isinstance(pairs, StoredPairs)  # others are small
    sizes = [len(vocabularies.source), len(vocabularies.target)]
    typecode = typecode_of(max(sizes))
    encoders = encoders_of(vocabularies, typecode)

    def encoded(number: int) -> tuple[str, int, list[NDArray[np.integer[Any]]]]:
        """Write the ids of a file: its SHA-256 and size, and the lengths of both sides."""
        begin, end = number * ROWS, min(len(pairs), (number + 1) * ROWS)
        lengths: list[NDArray[np.integer[Any]]] = []
        digest, size = hashlib.sha256(), 0
        with (folder / _name(number)).open("wb") as file:
            rows = [
                [encode(texts) for encode, texts in zip(encoders, block, strict=True)]
                for block in pairs.blocks(begin, end)
            ]
            for side in zip(*rows, strict=True):
                for part in side:
                    content = part.ids.tobytes()
                    digest.update(content)
                    size += file.write(content)
                lengths.append(np.concatenate([part.lengths for part in side]).astype(np.uint32))
        return digest.hexdigest(), size, lengths

    numbers = range(-(-len(pairs) // ROWS))
    count = min(processes, len(numbers)) if POSSIBLE else 1
    with ForkPool(encoded, count if count > 1 else 0, "of the encoding") as pool:
        found = pool.map(numbers)
    files = {_name(n): (digest, size) for n, (digest, size, _) in enumerate(found)}
    for side, name in enumerate(_SIDES):
        lengths = np.concatenate([lengths[side] for _, _, lengths in found])
        files[f"{name}.lengths"] = _put(folder / f"{name}.lengths", lengths)
    files[_LINES] = _put(folder / _LINES, np.asarray(train.lines, dtype=np.uint32))
    text = "".join(f"{text}\n" for pair in valid.pairs for text in pair).encode()
    files[_VALID] = _put(folder / _VALID, np.frombuffer(text, dtype=np.uint8))
    seal = {
        "layout": _LAYOUT,
        "pairs": len(train),
        "rows": ROWS,
        "ids": typecode,
        "made_of": made_of,
        "train": _facts(train),
        "valid": {**_facts(valid), "lines": list(valid.lines)},
        "files": {name: {"sha256": sha, "bytes": size} for name, (sha, size) in files.items()},
    }
    sealed = {"sha256": _checksum(seal), "seal": seal}
    (folder / _SEAL).write_bytes(json.dumps(sealed).encode() + b"\n")


def _checksum(seal: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(seal, sort_keys=True).encode()).hexdigest()


def _put(path: Path, numbers: NDArray[Any]) -> tuple[str, int]:
    content = numbers.tobytes()
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest(), len(content)


def _name(number: int) -> str:
    return f"{number:05}.ids"


def _facts(corpus: Corpus) -> dict[str, Any]:
    return {"name": corpus.name, "sha256": corpus.checksum, "report": asdict(corpus.report)}


# Opening.


@dataclass(frozen=True)
class EncodedFiles:
    """The files in the folder of a run.

    Args:
        made_of: What files have to be made of beside the pairs, to be of use: the vocabularies
            ("vocabularies": a SHA-256 by name), and where it is known, the data ("data": its
            settings and the SHA-256 of each of its files). Where that is the same, the data need
            not be read.
    """

    run: Path
    made_of: Mapping[str, Any]

    @cached_property
    def _seal(self) -> dict[str, Any] | None:
        """What the seal says; None: there is none, or another one than was written, or it is of
        another layout or of other vocabularies.
        """
        try:
            sealed = parse_json(stored_bytes(self.run / ENCODED / _SEAL))
        except (OSError, ValueError):
            return None
        seal = sealed.get("seal") if isinstance(sealed, dict) else None
        if not isinstance(seal, dict) or sealed.get("sha256") != _checksum(seal):
            return None
        if (seal["layout"], seal["rows"]) != (_LAYOUT, ROWS):
            return None
        same = seal["made_of"]["vocabularies"] == self.made_of["vocabularies"]
        return seal if same else None

    def fault(self) -> str:
        """What is wrong with the files, in words; "" = nothing, or there are none.

        All of them are read, and compared with the seal.
        """
        folder = self.run / ENCODED
        if not folder.is_dir():
            return ""
        if not (folder / _SEAL).is_file():
            return f"{folder} has no {_SEAL}"
        if self._seal is None:
            return f"{folder / _SEAL} is damaged, or of another version or vocabulary"
        files = {folder / name: known for name, known in self._seal["files"].items()}
        try:
            for path, known in files.items():
                if path.stat().st_size != known["bytes"]:
                    return f"{path} has another size"
            for (path, known), found in zip(files.items(), sha256_of([*files]), strict=True):
                if found != known["sha256"]:
                    return f"{path} has other bytes"
        except OSError as error:
            return f"{error.filename or folder}: {(error.strerror or str(error)).lower()}"
        return ""

    def corpora(
        self, reading: Callable[[], Corpus], *, compared: bool = False
    ) -> tuple[Corpus, Corpus] | None:
        """The training and the validation pairs, where the files are of the same data; None if not.

        Args:
            reading: Reads the training pairs, if somebody asks for their text.
            compared: Another process of this training has found that the data is the same.
        """
        seal, data = self._seal, self.made_of.get("data")
        if seal is None:
            return None
        if not compared and (data is None or seal["made_of"].get("data") != data):
            return None
        valid = seal["valid"]
        lines = (self.run / ENCODED / _VALID).read_bytes().decode().split("\n")
        pairs = tuple(map(Pair, lines[:-1:2], lines[1::2]))
        found = Corpus(valid["name"], pairs, tuple(valid["lines"]), _report(valid["report"]))
        return self._train(reading), found

    def without_text(self, train: Corpus, reading: Callable[[], Corpus]) -> Corpus:
        """The training pairs, of which the text is read again if somebody asks for it."""
        return self._train(reading) if self._is_of(train) else train

    def encoded(self, train: Corpus) -> EncodedCorpus | None:
        """The ids of these pairs; None where the files are of others."""
        seal, folder = self._seal, self.run / ENCODED
        if seal is None or not self._is_of(train):
            return None
        lengths = [_mapped(folder / f"{name}.lengths", np.uint32) for name in _SIDES]
        numbers = range(-(-len(train) // ROWS))
        files = [_mapped(folder / _name(number), seal["ids"]) for number in numbers]
        ends = [int(lengths[0][n * ROWS : (n + 1) * ROWS].sum()) for n in numbers]
        source = StoredRows(files, [0] * len(files), lengths[0])
        target = StoredRows(files, ends, lengths[1])
        return EncodedCorpus(train.name, source, target, train.lines)

    def _is_of(self, train: Corpus) -> bool:
        return self._seal is not None and self._seal["train"]["sha256"] == train.checksum

    def _train(self, reading: Callable[[], Corpus]) -> Corpus:
        assert self._seal is not None
        facts, count = self._seal["train"], self._seal["pairs"]

        def read() -> Sequence[Pair]:
            corpus = reading()
            if corpus.checksum != facts["sha256"]:
                raise DataError(
                    f"the training data of {self.run} as it was when it was encoded",
                    f"other pairs ({len(corpus):,} of {corpus.name})",
                    "restore the data",
                )
            return corpus.pairs

        lines = _Lines(_mapped(self.run / ENCODED / _LINES, np.uint32))
        pairs = AbsentPairs(read, count, facts["sha256"])
        return Corpus(facts["name"], pairs, lines, _report(facts["report"]))


def _mapped(path: Path, dtype: type[np.integer[Any]] | str) -> NDArray[np.integer[Any]]:
    """The numbers of a file, mapped; a plain array, of which slices are made faster."""
    if not path.stat().st_size:
        return np.zeros(0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def _report(facts: Mapping[str, Any]) -> FilterReport:
    """What `asdict` made of a report."""
    faults = {
        name: tuple(Fault(f["reason"], f["count"], tuple(f["first"])) for f in facts[name])
        for name in ("left_out", "cut")
    }
    return FilterReport(**{**facts, **faults, "remarks": tuple(facts["remarks"])})
