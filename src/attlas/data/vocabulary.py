"""What every vocabulary answers: text to ids and back."""

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar, get_args, runtime_checkable

from attlas._files import parse_json, stored_bytes, utf8_text
from attlas._text import has_part_of_word
from attlas.data.normalization import Normalization, normalized
from attlas.errors import AttlasError, CheckpointError, ConfigError, DataError

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3  # the same ids in every vocabulary
MOST = 2**31 - 1  # ids of a vocabulary: an id has four bytes
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # how a person reads them


@runtime_checkable
class Vocabulary(Protocol):
    """Text to token ids and back. Ids 0–3 are padding, unknown, begin and end of sentence."""

    suffix: ClassVar[str]  # of the file that `save` writes: ".model" or ".json"
    normalization: Normalization  # the form of Unicode in which a text is read

    def __len__(self) -> int:
        """How many ids there are, the four special ones included."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without begin and end; deterministic."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids; padding, begin and end are left out, unknown is shown."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One label per id, as a person reads it on the axis of a map."""

    def pieces_of(self, text: str) -> list[str]:
        """As `pieces(encode(text))`, but an unknown token is shown as it stands in the text."""
        return self.pieces(self.encode(text))

    def knows(self, text: str, ids: Sequence[int]) -> bool:
        """Return True if a word of a text, of which these ids are read, is known at least in part.

        Punctuation is no word, and a byte of a character is no part of one: bytes stand for
        characters that were rare in training. Of a text without letters and digits any token but a
        space counts.
        """

    def save(self, path: Path) -> None:
        """Write the vocabulary; `load_vocabulary` reads it back."""


# Symbols that the user defines: placeholders and tags, each of which is one token.


_OF_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


def check_symbols(symbols: Sequence[str], normalization: Normalization) -> None:
    """Check that each of them can be a token.

    Raises:
        AttlasError: For one that is empty, repeats, holds white space or what sentencepiece keeps
            to itself, stands for a special token or a byte, or that `normalization` would change.
    """
    for index, symbol in enumerate(symbols):
        fault = ""
        if not symbol or any(map(str.isspace, symbol)):
            fault = "is empty or holds white space"
        elif symbol in symbols[:index]:
            fault = "is there twice"
        elif symbol in SPECIAL or _OF_BYTE.fullmatch(symbol):
            fault = "is the name of another token"
        elif {"\u2581", "\u2585"} & {*symbol} or "\0" in symbol:
            fault = "holds a character that sentencepiece keeps to itself"
        elif normalized(symbol, normalization) != symbol:
            fault = f"is not in the form {normalization.upper()} of Unicode"
        if fault:
            raise ConfigError(
                "vocabulary.user_defined_symbols such as <num> or __URL__",
                f"{symbol!r}, which {fault}",
                "write another one",
            )


class Symbols:
    """Where the symbols stand in a text; of two that begin at one place the longer one counts."""

    def __init__(self, symbols: Iterable[str]) -> None:
        self.all = tuple(symbols)
        longest_first = sorted(self.all, key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """The parts of a text in their order, none of them empty; whether one is a symbol."""
        if not self.all:
            yield from [(text, False)] if text else []
            return
        for index, part in enumerate(self._pattern.split(text)):
            if part:
                yield part, index % 2 == 1


# Vocabularies that are a list: whole words, or characters.


L = TypeVar("L", bound="ListVocabulary")


class ListVocabulary(Vocabulary, ABC):
    """Id 4 + n is token n of a list; a token that is not in it becomes `UNKNOWN`.

    Args:
        normalization: The form of Unicode into which a text is brought first.
    """

    suffix: ClassVar[str] = ".json"
    kind: ClassVar[str]
    between: ClassVar[str]  # what stands between two tokens of a text
    unknown: ClassVar[str]  # how an unknown token reads in a text

    def __init__(self, tokens: Sequence[str], normalization: Normalization = "none") -> None:
        self.tokens, self.normalization = tuple(tokens), normalization
        self._ids = {token: id_ for id_, token in enumerate(self.tokens, len(SPECIAL))}
        if len(self._ids) != len(self.tokens):
            raise DataError(
                "a list of different tokens", "one that repeats", "build the vocabulary again"
            )

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.tokens)

    @staticmethod
    @abstractmethod
    def split(text: str) -> Sequence[str]:
        """The tokens of a text."""

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(token, UNKNOWN) for token in self.tokens_of(text)]

    def knows(self, text: str, ids: Sequence[int]) -> bool:
        return has_part_of_word((self.decode([id_]) for id_ in ids if id_ != UNKNOWN), text)

    def decode(self, ids: Sequence[int]) -> str:
        return self.between.join(
            self.unknown if id_ == UNKNOWN else self.tokens[id_ - len(SPECIAL)]
            for id_ in ids
            if id_ == UNKNOWN or id_ >= len(SPECIAL)
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [
            SPECIAL[id_] if id_ < len(SPECIAL) else self.label(self.tokens[id_ - len(SPECIAL)])
            for id_ in ids
        ]

    def pieces_of(self, text: str) -> list[str]:
        return [
            self.label(token) if token in self._ids else f"<unk:{token}>"
            for token in self.tokens_of(text)
        ]

    def tokens_of(self, text: str) -> Sequence[str]:
        """The tokens of a text, known or not, in the form in which it is read."""
        return self.split(normalized(text, self.normalization))

    @staticmethod
    def label(token: str) -> str:
        """How a person reads this token on an axis."""
        return token

    def save(self, path: Path) -> None:
        form = {} if self.normalization == "none" else {"normalization": self.normalization}
        table = {"kind": self.kind, **form, "tokens": self.tokens}
        text = json.dumps(table, ensure_ascii=False, indent=0) + "\n"
        path.write_text(text, encoding="utf-8", newline="\n")

    @classmethod
    def built(
        cls: type[L],
        texts: Iterable[str],
        size: int,
        name: str = "vocabulary",
        normalization: Normalization = "none",
        symbols: Sequence[str] = (),
    ) -> L:
        """The most frequent tokens, at most `size` ids with the special ones; ties by code point.

        Args:
            symbols: Tokens in any case, before the others.

        Raises:
            AttlasError: If the texts hold no token, and for more symbols than ids.
        """
        splitter = cls(symbols, normalization)
        if len(splitter) > size:
            raise ConfigError(
                f"a {name} of {len(splitter)} ids, for the symbols too, to {MOST:,}",
                f"vocabulary.size = {size}",
                "raise vocabulary.size",
            )
        counts = Counter(token for text in texts for token in splitter.tokens_of(text))
        if not counts:
            raise DataError(f"text to build the {name} from", "nothing", "check the training data")
        others = counts.keys() - {*symbols}
        tokens = [*symbols, *sorted(others, key=lambda token: (-counts[token], token))]
        return cls(tokens[: size - len(SPECIAL)], normalization)


class Words(ListVocabulary):
    """What white space separates: toy tasks, and text that is already cut into words.

    decode(encode(text)) is the text with single spaces, where every word is known.
    """

    kind = "words"
    between = " "
    unknown = SPECIAL[UNKNOWN]

    @staticmethod
    def split(text: str) -> Sequence[str]:
        return text.split()


class Characters(ListVocabulary):
    """Unicode code points; decode(encode(text)) == text where every one of them is known.

    A token of several is a symbol that the user defined, and one token wherever it stands.
    """

    kind = "characters"
    between = ""
    unknown = "\N{REPLACEMENT CHARACTER}"

    @staticmethod
    def split(text: str) -> Sequence[str]:
        return text

    def tokens_of(self, text: str) -> Sequence[str]:
        normalized_text = normalized(text, self.normalization)
        if not self._symbols.all:
            return normalized_text
        parts = self._symbols.parts(normalized_text)
        return [token for part, is_symbol in parts for token in ([part] if is_symbol else part)]

    @cached_property
    def _symbols(self) -> Symbols:
        return Symbols(token for token in self.tokens if len(token) > 1)

    @staticmethod
    def label(token: str) -> str:
        return "␣" if token == " " else token


def load_list_vocabulary(path: Path) -> ListVocabulary:
    """Read what `ListVocabulary.save` wrote.

    Raises:
        AttlasError: For a file that holds no such list.
    """
    kinds: dict[str, type[ListVocabulary]] = {cls.kind: cls for cls in (Words, Characters)}
    try:
        table = parse_json(utf8_text(stored_bytes(path)))
        kind, tokens = kinds[table["kind"]], table["tokens"]
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise TypeError("its tokens are no list of texts")
        "".join(tokens).encode()  # JSON can spell half a character, which cannot be printed
        form = table.get("normalization", "none")
        if form not in get_args(Normalization):
            raise ValueError(f"an unknown normalization {form!r}")
        return kind(tokens, form)
    except AttlasError as error:
        got = f"{path}: {error.got}"
        raise CheckpointError(error.expected, got, "put the file back as it was written") from None
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            "a vocabulary of words or characters",
            f"{path}, which is damaged ({error})",
            "put the file back as it was written",
        ) from None
