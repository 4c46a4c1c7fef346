"""Subwords by sentencepiece: any text in, the same text out."""

import io
import random
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from attlas._files import stored_bytes
from attlas._text import has_part_of_word, in_blocks
from attlas.data.bucketing import Ragged
from attlas.data.normalization import (
    WITHOUT_RULES,
    Normalization,
    form_of_model,
    normalized,
    sentencepiece_rules,
)
from attlas.data.subword_sampling import Lattice, Merges
from attlas.data.vocabulary import (
    BEGIN,
    END,
    MOST,
    PAD,
    SPECIAL,
    UNKNOWN,
    Symbols,
    Vocabulary,
)
from attlas.data.word_counts import SPACE, sentences_of, without_input_format
from attlas.errors import AttlasError, CheckpointError, ConfigError, DataError, quoted

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_WORD = re.compile(f"{SPACE}[^{SPACE}]*|[^{SPACE}]+")  # no piece goes beyond one


class Subwords(Vocabulary):
    """A sentencepiece model (BPE or unigram) with byte fallback.

    normalization: the form of Unicode into which a text is brought first; the model has rules for
    it, which programs without attlas go by. Without one, decode(encode(text)) == text for every
    text: double, leading and trailing spaces, any script,
    emoji. A text is read with one space before it, so that a word has the same pieces at the start
    and inside of a sentence. The character "▁" itself, which sentencepiece would confuse with a
    space, is written as its three bytes.

    Sennrich, Haddow & Birch, 2016 (BPE); Kudo, 2018 (unigram); Kudo & Richardson, 2018.
    """

    suffix: ClassVar[str] = ".model"
    step = 1  # when it was trained: 2 = every second text was read; see `word_counts`

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        sentencepiece.set_min_log_level(2)  # errors only; we report in our own words
        if not model:  # of which sentencepiece makes a processor that knows nothing
            raise CheckpointError("a whole sentencepiece model", "an empty one", "train it again")
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            self.normalization = form_of_model(processor)
            if self.normalization != "none":  # which is ours to do, exactly
                processor = sentencepiece.SentencePieceProcessor(model_proto=model + WITHOUT_RULES)
            self._processor = processor
            # Of a piece that is not UTF-8 sentencepiece knows, and Python does not.
            self._labels: list[str] = self._processor.id_to_piece(list(range(len(self))))
        except (RuntimeError, ValueError) as error:
            raise CheckpointError(
                "a whole sentencepiece model", str(error), "train it again"
            ) from None
        self.model = model
        if tuple(self._labels[:4]) != SPECIAL:
            raise CheckpointError(
                f"a sentencepiece model whose ids 0 to 3 are {', '.join(SPECIAL)}",
                quoted(", ".join(self._labels[:4])),
                "use a model that attlas trained",
            )
        self._bytes = [self._as_bytes(id_) for id_ in range(len(self))]
        self._of_space = self._spelt(SPACE)

    def __len__(self) -> int:
        return int(self._processor.vocab_size())

    def encode(self, text: str) -> list[int]:
        return self._pieced(text)

    def encoder(self, typecode: str) -> Callable[[Iterable[str]], Ragged]:
        """What gives for each text the ids of `encode`, as a row; for BPE in less time.

        No piece goes beyond a word, and the best merges of a word are the same in every sentence,
        so that a word need be encoded only once. (The sums of a unigram model are rounded, and two
        that are nearly equal might change places.)

        Args:
            typecode: Of `array.array`.
        """
        if not isinstance(self._segmenter, Merges):
            return partial(Ragged.encoded, self.encode, typecode)
        ids_of, form = _EncodedWords(self, typecode), self.normalization

        def encoded(texts: Iterable[str]) -> Ragged:
            all_ids, lengths = [np.zeros(0, typecode)], [np.zeros(0, np.int64)]
            read = texts if form == "none" else map(partial(normalized, form=form), texts)
            for block in in_blocks(iter(read)):
                words: list[str | None] = []
                for text in block:
                    words += text.split(" ")
                    words.append(None)
                ids = np.frombuffer(b"".join(map(ids_of.__getitem__, words)), typecode)
                is_end = ids == END
                all_ids.append(ids[~is_end])
                lengths.append(np.diff(np.flatnonzero(is_end), prepend=-1) - 1)
            return Ragged.divided(np.concatenate(all_ids), np.concatenate(lengths))

        return encoded

    def sample(self, texts: Iterable[str], strength: float, seed: str) -> list[list[int]]:
        """A segmentation of each text drawn by chance: BPE-dropout, or unigram sampling.

        `strength` in (0, 1): for BPE the probability that a merge is left out (Provilkov et al.,
        2020); for unigram the smoothing α, where *smaller* is more various (Kudo, 2018, eq. 9).
        What a text comes to is a function of (text, strength, seed, its place in the list), in
        every process. sentencepiece could draw too, but mixes chance of its own into its seed.
        """
        return list(self.stream_sample(texts, strength, seed))

    def stream_sample(
        self, texts: Iterable[str], strength: float, seed: str
    ) -> Iterator[list[int]]:
        """The same one by one, each drawn when it is asked for."""
        for index, text in enumerate(texts):
            yield self._drawn(text, strength, random.Random(f"{seed} {index}"))

    def decode(self, ids: Sequence[int]) -> str:
        text = b"".join(self._bytes[id_] for id_ in ids).decode("utf-8", errors="replace")
        return text.removeprefix(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._labels[id_] for id_ in ids]

    def knows(self, text: str, ids: Sequence[int]) -> bool:
        pieces = (self._labels[id_] for id_ in ids if not self._processor.is_byte(id_))
        return has_part_of_word((piece.replace(SPACE, " ") for piece in pieces), text)

    @property
    def spellings(self) -> Sequence[bytes]:
        """What each id writes, spaces included: one or more bytes of UTF-8, or none."""
        return self._bytes

    def save(self, path: Path) -> None:
        path.write_bytes(self.model)

    @classmethod
    def load(cls, path: Path) -> "Subwords":
        """Read what `save` wrote."""
        model = stored_bytes(path)
        try:
            return cls(model)
        except AttlasError as error:
            got = f"{path}: {error.got}"
            raise CheckpointError(
                error.expected, got, "put the file back as it was written"
            ) from None

    def _pieced(self, text: str) -> list[int]:
        first, *others = f" {normalized(text, self.normalization)}".split(SPACE)
        ids: list[int] = self._processor.encode(first)
        for other in others:
            ids += self._of_space + self._processor.encode(other)
        return ids

    def _drawn(self, text: str, strength: float, chance: random.Random) -> list[int]:
        ids: list[int] = []
        normalized_text = normalized(text, self.normalization)
        for index, part in enumerate(f" {normalized_text}".split(SPACE)):
            if index:
                ids += self._of_space
            for run, is_symbol in self._symbols.parts(part.replace(" ", SPACE)):
                if is_symbol:
                    ids.append(self._id_of_symbol[run])
                    continue
                for word in _WORD.findall(run):
                    for piece in self._segmenter.drawn(word, strength, chance):
                        ids += self._ids.get(piece) or self._spelt(piece)
        return ids

    @cached_property
    def _ids(self) -> dict[str, list[int]]:
        """Of the pieces that text consists of: not the special ones, not the symbols and bytes."""
        return {
            label: [id_]
            for id_, label in enumerate(self._labels)
            if id_ >= len(SPECIAL) + len(self.symbols) and not self._processor.is_byte(id_)
        }

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """Those that the user defined: sentencepiece puts them before the bytes."""
        first = next(id_ for id_ in range(len(SPECIAL), len(self)) if self._processor.is_byte(id_))
        return tuple(self._labels[len(SPECIAL) : first])

    @cached_property
    def _id_of_symbol(self) -> dict[str, int]:
        return {symbol: id_ for id_, symbol in enumerate(self.symbols, len(SPECIAL))}

    @cached_property
    def _symbols(self) -> Symbols:
        return Symbols(self.symbols)

    @cached_property
    def _segmenter(self) -> Merges | Lattice:
        scores = {p: float(self._processor.get_score(id_)) for p, (id_,) in self._ids.items()}
        # The scores of BPE are ranks, 0, -1, -2, …; those of unigram are log probabilities.
        has_rank_scores = all(-score == rank for rank, score in enumerate(scores.values()))
        return Merges(scores) if has_rank_scores else Lattice(scores)

    def _spelt(self, character: str) -> list[int]:
        ids: list[int] = self._processor.piece_to_id([f"<0x{b:02X}>" for b in character.encode()])
        return ids

    def _as_bytes(self, id_: int) -> bytes:
        if id_ in (PAD, BEGIN, END):
            return b""
        if id_ == UNKNOWN:
            return "\N{REPLACEMENT CHARACTER}".encode()
        byte = _BYTE.fullmatch(self._labels[id_])
        if byte and self._processor.is_byte(id_):
            return bytes([int(byte[1], 16)])
        return self._labels[id_].replace(SPACE, " ").encode()


_REMEMBERED = 1 << 17  # words


class _EncodedWords(dict[str | None, bytes]):
    """The ids of each word, the commonest of which are remembered: they come first. None is the end
    of a text, whose id no word has.
    """

    def __init__(self, subwords: Subwords, typecode: str) -> None:
        super().__init__({None: array(typecode, [END]).tobytes()})
        self._subwords, self._typecode = subwords, typecode

    def __missing__(self, word: str | None) -> bytes:
        assert word is not None
        ids = array(self._typecode, self._subwords.encode(word)).tobytes()
        if len(self) < _REMEMBERED:
            self[word] = ids
        return ids


def train_subwords(
    texts: Iterable[str],
    kind: Literal["bpe", "unigram"],
    size: int,
    name: str = "vocabulary",
    normalization: Normalization = "none",
    symbols: Sequence[str] = (),
    processes: int = 1,
) -> Subwords:
    """Train on texts; at most `size` ids, fewer where the texts do not hold that many pieces.

    Deterministic: the same texts give the same bytes. 4 ids are special and 256 are bytes. Of very
    many texts a sample is read, see `MOST_WORDS` and `MOST_CHARACTERS` in `word_counts`.

    Args:
        texts: They are not held, unless they can be read only once; of "unigram" sentencepiece
            holds them, as it does where one has a tab.
        symbols: Each is one piece wherever it stands.
        processes: That share the counting of words, see `sentences_of`.

    Raises:
        AttlasError: If `size` is too small for the characters of the texts, or too large for an id,
            and if there is nothing to learn from.
    """
    import sentencepiece

    if size > MOST:
        raise ConfigError(
            f"a {name} of at most {MOST:,} ids",
            f"vocabulary.size = {size}",
            "lower vocabulary.size",
        )
    read = str if normalization == "none" else partial(normalized, form=normalization)
    sentences = sentences_of(texts, read, words=kind == "bpe", processes=processes)
    if not sentences.has_text:
        raise DataError(
            f"text to build the {name} from",
            "nothing but U+2585 (▅), which sentencepiece keeps to itself"
            if sentences.reserved
            else "nothing",
            "check the training data",
        )
    model_file = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences.lines),
            input_format="tsv" if sentences.counted else "",
            model_writer=model_file,
            model_type=kind,
            vocab_size=size,
            hard_vocab_limit=False,
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=BEGIN,
            eos_id=END,
            byte_fallback=True,
            user_defined_symbols=list(symbols),
            # However rare it is: else a space would be three bytes, which read "▁".
            required_chars=SPACE,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            add_dummy_prefix=False,  # `Subwords` writes that space itself
            # In bytes, of which a character has four at the most; a longer sentence is ignored, and
            # less than 10 is refused.
            max_sentence_length=min(max(10, 4 * (sentences.longest + 1) + 1), 2**31 - 1),
            num_threads=1,  # the file records it, and sums of floats depend on it
            minloglevel=2,
        )
    except RuntimeError as error:
        sizes = re.search(r"(\d+) vs (\d+)", str(error))
        raise DataError(
            f"a {name} of at least {sizes[2]} ids (4 special, 256 bytes, and the characters of "
            f"the texts), and at most {MOST:,}"
            if sizes
            else f"texts that sentencepiece can build the {name} from",
            f"vocabulary.size = {size}" if sizes else str(error),
            "raise vocabulary.size" if sizes else "check the training data",
        ) from None
    model = without_input_format(model_file.getvalue())
    subwords = Subwords(model + sentencepiece_rules(normalization))
    subwords.step = sentences.step
    return subwords
