"""What sentencepiece learns from: the words of texts and their counts, or a sample of the texts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from attlas._parallel import POSSIBLE, ForkPool
from attlas._text import in_blocks

MOST_WORDS = 1_000_000
"""Different words from which BPE is learned. Of texts with more, every second text is read, or
every fourth, …: the learning takes about 600 bytes a word. A text of more characters than that is
then several texts, see `_parts`."""
MOST_CHARACTERS = 50_000_000
"""Characters from which a unigram model is learned. Of more, every second text is read, or every
fourth, …, in the same way: the learning takes about 30 bytes a character."""

SPACE = "▁"  # how sentencepiece writes a space
RESERVED = "\u2585"  # it keeps this one to itself, and leaves out every sentence that has one
_TAB = "\t"  # no piece goes across one; in a table of words it would end the word
_BLOCK = 4096  # texts that are counted at once, at most


@dataclass(frozen=True, slots=True)
class Sentences:
    """What to give to sentencepiece.

    Args:
        lines: A sentence each, or a word with its count ("word\\tcount").
        longest: Characters of the longest text.
        step: 1 = all texts were read, 2 = every second one, …; of long ones every second part.
        counted: Whether the lines are words with counts.
        has_text: Whether a text holds more than white space and U+2585.
        reserved: Whether a text holds U+2585.
    """

    lines: Iterable[str]
    longest: int
    step: int
    counted: bool
    has_text: bool
    reserved: bool


class Parted(Iterable[str]):
    """Texts that are read again each time, in parts that several processes can share.

    Args:
        parts: All of them one after the other.
    """

    def __init__(self, parts: Sequence[Iterable[str]]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.parts)


def sentences_of(
    texts: Iterable[str], read: Callable[[str], str], *, words: bool, processes: int = 1
) -> Sentences:
    """The sentences of some texts.

    Where `words`, the words are counted: BPE learns from their counts, so that it gives the same
    model, and the texts need not be held. With a tab in a text this cannot be done, because
    sentencepiece counts tabs, and a table of words cannot hold one.

    Args:
        texts: Read several times, unless they can be read once; then they are held.
        read: What becomes of each text before.
        processes: That count the words of all texts, if they are `Parted`, on Linux.
    """
    if iter(texts) is texts:
        texts = tuple(texts)
    step = 1
    while words:
        counts = _Counts(step)
        if step == 1 and processes > 1 and isinstance(texts, Parted) and POSSIBLE:
            is_whole = counts.read_parts(texts.parts, read, processes)
        else:
            is_whole = counts.read(texts, read)
        if is_whole:
            return counts.sentences()
        if counts.has_tab:
            break
        step *= 2
    return _plain(texts, read)


def _sampled(texts: Iterable[str], step: int) -> Iterator[str]:
    """Every step-th text, or part of a long one."""
    if step > 1:
        texts = chain.from_iterable(
            _parts(text) if len(text) > MOST_WORDS else (text,) for text in texts
        )
    return islice(texts, 0, None, step)


def _parts(text: str) -> Iterator[str]:
    """A text, divided at spaces into parts of at most `MOST_WORDS` characters, and so of no more
    words than that; where there is no space, within a word.
    """
    begin = 0
    while len(text) - begin > MOST_WORDS:
        end = text.rfind(" ", begin + 1, begin + MOST_WORDS + 1)
        if end < 0:
            end = begin + MOST_WORDS
        yield text[begin:end]
        begin = end + (text[end] == " ")
    yield text[begin:]


class _Counts:
    """The counts of words, of every step-th text."""

    def __init__(self, step: int) -> None:
        self.step, self.has_tab, self.has_text, self.reserved = step, False, False, False
        self._counts: Counter[str] = Counter()
        self._longest = 0

    def read(self, texts: Iterable[str], read: Callable[[str], str]) -> bool:
        """Return False where the words are too many, or there is a tab. The words of a single part
        are never too many, so that a step is found in the end.
        """
        num_read = 0
        for block in in_blocks(map(read, _sampled(texts, self.step)), _BLOCK):
            num_read += len(block)
            self._longest = max(self._longest, *map(len, block), 0)
            joined = " ".join(block)
            if "\r" in joined:  # which sentencepiece takes off the end of a sentence
                joined = " ".join(text.rstrip("\r\n") for text in block)
            if RESERVED in joined:
                self.reserved, joined = True, joined.replace(RESERVED, " ")
            if _TAB in joined:
                self.has_tab = True
                return False
            self.has_text = self.has_text or not (not joined or joined.isspace())
            self._counts.update(joined.replace(SPACE, " ").split(" "))
            if len(self._counts) > MOST_WORDS and (self.step == 1 or num_read > 1):
                return False
        return True

    def read_parts(
        self, parts: Sequence[Iterable[str]], read: Callable[[str], str], processes: int
    ) -> bool:
        """The same by several processes, each of which reads whole parts of all texts."""

        def counted(number: int) -> "_Counts":
            counts = _Counts(self.step)
            counts.read(parts[number], read)
            return counts

        count = min(processes, len(parts))
        with ForkPool(counted, count if count > 1 else 0, "of the counting of words") as pool:
            for begin in range(0, len(parts), 2 * processes):  # and no more where it is too many
                for found in pool.map(range(len(parts))[begin : begin + 2 * processes]):
                    if not self._take(found):
                        return False
        return True

    def _take(self, part: "_Counts") -> bool:
        self._counts.update(part._counts)
        self._longest = max(self._longest, part._longest)
        self.has_text, self.reserved = (
            self.has_text or part.has_text,
            self.reserved or part.reserved,
        )
        if len(self._counts) > MOST_WORDS:
            return False
        self.has_tab = part.has_tab
        return not part.has_tab

    def sentences(self) -> Sentences:
        """What was counted. Each word has the space before it that it has in a text."""
        lines = (f" {word}\t{count}" for word, count in self._counts.items())
        return Sentences(
            lines=lines,
            longest=self._longest,
            step=self.step,
            counted=True,
            has_text=self.has_text,
            reserved=self.reserved,
        )


def _plain(texts: Iterable[str], read: Callable[[str], str]) -> Sentences:
    size = longest = count = 0
    has_text = reserved = False
    for text in map(read, texts):
        size, longest, count = size + len(text), max(longest, len(text)), count + 1
        has_reserved = RESERVED in text
        reserved = reserved or has_reserved
        if not has_text:
            words = text.replace(RESERVED, " ") if has_reserved else text
            has_text = not (not words or words.isspace())
    step = 1
    while size > step * MOST_CHARACTERS:
        step *= 2

    def lines() -> Iterator[str]:
        for text in map(read, _sampled(texts, step)):
            yield f" {text}".replace(RESERVED, " ")

    return Sentences(
        lines=lines(),
        longest=longest,
        step=step,
        counted=False,
        has_text=has_text,
        reserved=reserved,
    )


# The model that sentencepiece writes when it reads words with counts says so, in a field of its
# settings. Without that field it is the model of the sentences, byte for byte.

_SETTINGS, _INPUT_FORMAT = 2, 7  # the fields of a model (a protobuf message), and of its settings


def without_input_format(model: bytes) -> bytes:
    """The model, without what its settings say of the format of their input."""
    return b"".join(
        _tag(_SETTINGS) + _number(len(inner)) + inner
        if field == _SETTINGS
        and (inner := b"".join(raw for n, raw, _ in _fields(value) if n != _INPUT_FORMAT))
        else whole
        for field, whole, value in _fields(model)
    )


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The number of each field of a message, all of its bytes, and the bytes of its value."""
    place = 0
    while place < len(message):
        begin = place
        key, place = _number_at(message, place)
        match key & 7:
            case 0:
                _, end = _number_at(message, place)
            case 1:
                end = place + 8
            case 2:
                size, place = _number_at(message, place)
                end = place + size
            case _:
                end = place + 4
        yield key >> 3, message[begin:end], message[place:end]
        place = end


def _number_at(message: bytes, place: int) -> tuple[int, int]:
    """A number, seven bits a byte, the lowest first; and the place behind it."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _number(value: int) -> bytes:
    digits = []
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def _tag(field: int) -> bytes:
    return _number(field << 3 | 2)
