"""Subwords by sentencepiece: any text in, the same text out."""

import hashlib
import io
import re
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from attlas.data.vocabulary import BEGIN, END, PAD, SPECIAL, UNKNOWN, Vocabulary
from attlas.errors import AttlasError

_SPACE = "▁"  # how sentencepiece writes a space
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_seeding = threading.Lock()  # sentencepiece keeps one seed for the whole process


class Subwords(Vocabulary):
    """A sentencepiece model (BPE or unigram) with byte fallback and no normalisation.

    decode(encode(text)) == text for every text: double, leading and trailing spaces, any script,
    emoji. A text is read with one space before it, so that a word has the same pieces at the start
    and inside of a sentence. The character "▁" itself, which sentencepiece would confuse with a
    space, is written as its three bytes.

    Sennrich, Haddow & Birch, 2016 (BPE); Kudo, 2018 (unigram); Kudo & Richardson, 2018.
    """

    suffix: ClassVar[str] = ".model"

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        sentencepiece.set_min_log_level(2)  # errors only; we report in our own words
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, ValueError) as error:
            raise AttlasError("a whole sentencepiece model", str(error), "train it again") from None
        self.model = model
        self._labels: list[str] = self._processor.id_to_piece(list(range(len(self))))
        if tuple(self._labels[:4]) != SPECIAL:
            raise AttlasError(
                f"a sentencepiece model whose ids 0 to 3 are {', '.join(SPECIAL)}",
                ", ".join(self._labels[:4]),
                "use a model that attlas trained",
            )
        self._bytes = [self._as_bytes(id_) for id_ in range(len(self))]
        self._of_space = [self._processor.piece_to_id(f"<0x{b:02X}>") for b in _SPACE.encode()]

    def __len__(self) -> int:
        return int(self._processor.vocab_size())

    def encode(self, text: str) -> list[int]:
        return self._pieced(text)

    def sample(self, texts: Iterable[str], strength: float, seed: str) -> list[list[int]]:
        """A segmentation of each text drawn by chance: BPE-dropout, or unigram sampling.

        `strength` in (0, 1): for BPE the probability that a merge is left out (Provilkov et al.,
        2020); for unigram the smoothing α, where *smaller* is more various (Kudo, 2018, eq. 9).
        The whole list is a pure function of (texts, strength, seed): two calls agree bit by bit.
        """
        drawn: list[list[int]] = []
        failed: list[BaseException] = []

        def draw() -> None:
            try:
                for text in texts:
                    drawn.append(  # noqa: PERF401 (kept as far as it got)
                        self._pieced(text, enable_sampling=True, alpha=strength, nbest_size=-1)
                    )
            except BaseException as error:  # carried over to the calling thread
                failed.append(error)

        # sentencepiece seeds its generator once per thread, at the first draw: only a fresh thread
        # starts from this seed.
        digest = hashlib.sha256(seed.encode()).digest()
        with _seeding:
            import sentencepiece

            sentencepiece.set_random_generator_seed(int.from_bytes(digest[:4]) >> 1)
            thread = threading.Thread(target=draw, name="subword sampling")
            thread.start()
            thread.join()
        if failed:
            raise failed[0]
        return drawn

    def decode(self, ids: Sequence[int]) -> str:
        text = b"".join(self._bytes[id_] for id_ in ids).decode("utf-8", errors="replace")
        return text.removeprefix(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._labels[id_] for id_ in ids]

    def save(self, path: Path) -> None:
        path.write_bytes(self.model)

    @classmethod
    def load(cls, path: Path) -> "Subwords":
        """Read what `save` wrote."""
        return cls(path.read_bytes())

    def _pieced(self, text: str, **options: Any) -> list[int]:
        first, *others = f" {text}".split(_SPACE)
        ids: list[int] = self._processor.encode(first, **options)
        for other in others:
            ids += self._of_space + self._processor.encode(other, **options)
        return ids

    def _as_bytes(self, id_: int) -> bytes:
        if id_ in (PAD, BEGIN, END):
            return b""
        if id_ == UNKNOWN:
            return "\N{REPLACEMENT CHARACTER}".encode()
        byte = _BYTE.fullmatch(self._labels[id_])
        if byte and self._processor.is_byte(id_):
            return bytes([int(byte[1], 16)])
        return self._labels[id_].replace(_SPACE, " ").encode()


def train_subwords(
    texts: Iterable[str], kind: Literal["bpe", "unigram"], size: int, name: str = "vocabulary"
) -> Subwords:
    """Train on texts; at most `size` ids, fewer where the texts do not hold that many pieces.

    Deterministic: the same texts give the same bytes. 4 ids are special and 256 are bytes.
    Errors: `AttlasError` where `size` is too small for the characters of the texts.
    """
    import sentencepiece

    sentences = [f" {text}" for text in texts]
    if not any(text.strip() for text in sentences):
        raise AttlasError(f"text to build the {name} from", "nothing", "check the training data")
    written = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=written,
            model_type=kind,
            vocab_size=size,
            hard_vocab_limit=False,
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=BEGIN,
            eos_id=END,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            add_dummy_prefix=False,  # `Subwords` writes that space itself
            # In bytes, of which a character has four at the most; a longer sentence is ignored, and
            # less than 10 is refused.
            max_sentence_length=max(10, 4 * max(map(len, sentences)) + 1),
            num_threads=1,  # the file records it, and sums of floats depend on it
            minloglevel=2,
        )
    except RuntimeError as error:
        needed = re.search(r"(\d+) vs (\d+)", str(error))
        raise AttlasError(
            f"a {name} of at least {needed[2]} ids: 4 special, 256 bytes, and the characters"
            if needed
            else f"texts that sentencepiece can build the {name} from",
            f"vocabulary.size = {size}" if needed else str(error),
            "raise vocabulary.size" if needed else "check the training data",
        ) from None
    return Subwords(written.getvalue())
