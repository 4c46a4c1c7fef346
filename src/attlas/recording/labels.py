"""The tokens, and the patches of images, that name the axes of a trace."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import UInt8
from torch import Tensor

from attlas.errors import AttlasError, quoted
from attlas.recording.maps.base import AttentionMap

Tokens = tuple[tuple[str, ...], ...]
"""One list of tokens per batch row; () where they have no names."""


def rows_of(tokens: Any) -> Tokens:
    """Check that the tokens are a list of strings for each batch row, and return them.

    Raises:
        AttlasError: For anything else.
    """
    rows = tuple(tuple(row) if _is_list(row) else row for row in tokens)
    for row in rows:
        if not isinstance(row, tuple) or not all(isinstance(token, str) for token in row):
            raise AttlasError(
                "labels as lists of strings, one list to a batch row",
                quoted(row),
                'label with such as [["my", "own", "words"]]',
            )
    return rows


def check_keys(name: str, rows: Tokens, attention_maps: Sequence[AttentionMap]) -> None:
    """Check that these tokens name the keys of one of the attention maps; see `check_either`."""
    _check(name, rows, attention_maps, {attention_map.shape[3] for attention_map in attention_maps})


def check_queries(name: str, rows: Tokens, attention_maps: Sequence[AttentionMap]) -> None:
    """Check that these tokens name the queries of a layer with these attention maps; see
    `check_either`.
    """
    lengths = {attention_map.shape[2] for attention_map in attention_maps} | {
        _together(attention_maps)
    }
    _check(name, rows, attention_maps, lengths, _steps(attention_maps))


def check_either(name: str, rows: Tokens, layers: Sequence[Sequence[AttentionMap]]) -> None:
    """Check that these tokens name the keys or the queries of one of the layers.

    The longest row is as long as that axis, since shorter ones were padded to it, or as all calls
    of a layer together have queries. A model that asks one query at a time may go on after its last
    token: the calls of its layer have at least so many queries together.

    Raises:
        AttlasError: For tokens of another length, and for another number of rows.
    """
    attention_maps = [attention_map for calls in layers for attention_map in calls]
    lengths = {length for attention_map in attention_maps for length in attention_map.shape[2:]}
    lengths |= set(map(_together, layers))
    _check(name, rows, attention_maps, lengths, max(map(_steps, layers), default=0))


def _steps(attention_maps: Sequence[AttentionMap]) -> int:
    """How many calls of one query each there are, where there are no others."""
    return (
        len(attention_maps)
        if all(attention_map.shape[2] == 1 for attention_map in attention_maps)
        else 0
    )


def _together(attention_maps: Sequence[AttentionMap]) -> int:
    """The queries of all calls."""
    return sum(attention_map.shape[2] for attention_map in attention_maps)


def _check(
    name: str,
    rows: Tokens,
    attention_maps: Sequence[AttentionMap],
    lengths: set[int],
    max_length: int = 0,
) -> None:
    longest = max(map(len, rows), default=0)
    batches = {attention_map.shape[0] for attention_map in attention_maps}
    advice = "label with the tokens of this very trace, special ones included"
    if longest - 1 in lengths:
        advice += "; the last token of a generation has no query: leave it out, as in ids[:, :-1]"
    if longest and longest not in lengths and longest > max_length:
        axes = [f"{length:,}" for length in sorted(lengths)]
        sizes = " or ".join(axes if len(axes) < 6 else [*axes[:2], "…", axes[-1]])
        raise AttlasError(
            f"labels of the {name}, one to each place of an axis, which has {sizes or 'none'}",
            f"{longest:,} of them",
            advice,
        )
    if longest and len(rows) not in batches:
        sizes = " or ".join(f"{batch:,}" for batch in sorted(batches))
        raise AttlasError(
            f"labels of the {name}, a list for each of {sizes} batch rows",
            f"{len(rows):,} list{'s' if len(rows) > 1 else ''}",
            "give each batch row one list, an empty one for a row without labels",
        )


def _is_list(row: object) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str | Mapping)


def source_and_target(inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Source and target that `label` was called with; None = left out."""
    first, *others = inputs or (None,)
    by_ids = {"tokenizer", "input_ids", "decoder_input_ids"} & set(kwargs)
    if by_ids or (inputs and not isinstance(first, list | tuple)):
        tokenizer = kwargs.pop("tokenizer") if "tokenizer" in kwargs else first
        ids = kwargs.pop("input_ids", None) if not others else others.pop(0)
        decoder_ids = kwargs.pop("decoder_input_ids", None) if not others else others.pop(0)
        sides = [
            None if side is None else tokens_of(tokenizer, side) for side in (ids, decoder_ids)
        ]
        has_no_ids = ids is None and decoder_ids is None
        if has_no_ids or kwargs or others:
            tokens_of(tokenizer, ())  # which says what is no tokenizer
            raise AttlasError(
                "a tokenizer and the ids of the texts",
                "no ids" if has_no_ids else "something beside them",
                "write trace.label(tokenizer, input_ids), with decoder_input_ids= of an "
                "encoder–decoder",
            )
        return sides[0], sides[1]
    if others and not isinstance(others[0], list | tuple):
        raise AttlasError(
            "lists of strings, or a tokenizer and ids",
            f"a list and a {type(others[0]).__name__}",
            "write trace.label(tokenizer, input_ids), the tokenizer first",
        )
    invalid = set(kwargs) - {"source", "target"}
    if invalid or len(inputs) > 2 or (inputs and "source" in kwargs):
        raise AttlasError(
            "labels of source and target",
            f"{len(inputs)} lists and {', '.join(sorted(kwargs)) or 'nothing else'}",
            "write trace.label(source, target)",
        )
    source = first if inputs else kwargs.get("source")
    return source, others[0] if others else kwargs.get("target")


# The tokens of ids, by the tokenizer that made them.


@runtime_checkable
class HasTokens(Protocol):
    """A tokenizer of Hugging Face's transformers, fast or slow."""

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        """The tokens as its vocabulary has them."""


def tokens_of(tokenizer: object, input_ids: object) -> Tokens:
    """A readable token for each id, for each text of a batch.

    Args:
        tokenizer: Of transformers (fast or slow), a `tokenizers.Tokenizer`, a SentencePiece
            processor, an encoding of tiktoken, or a vocabulary of attlas.
        input_ids: A tensor, array or lists of (batch, length), (length), or what the tokenizer
            returned. Special tokens and padding keep their names. Pieces of bytes become text:
            "ĠcafÃ©" is "▁café", and bytes that are a part of a character are as in "<0xF0>".

    Raises:
        AttlasError: For anything but a tokenizer, for texts of different lengths, and for ids that
            it does not have.
    """
    convert = _converter(tokenizer)
    return tuple(tuple(convert(row)) for row in _rows_of_ids(input_ids))


def _rows_of_ids(input_ids: Any) -> list[list[int]]:
    if isinstance(input_ids, Mapping) and "input_ids" in input_ids:
        input_ids = input_ids["input_ids"]
    elif hasattr(input_ids, "ids") and not hasattr(input_ids, "tolist"):
        input_ids = input_ids.ids  # an Encoding of tokenizers
    id_lists = input_ids.tolist() if hasattr(input_ids, "tolist") else input_ids
    rows = (
        list(id_lists)
        if isinstance(id_lists, Iterable) and not isinstance(id_lists, str)
        else [id_lists]
    )
    rows = [getattr(row, "ids", row) for row in rows]
    rows = [row.tolist() if hasattr(row, "tolist") else row for row in rows]
    if rows and all(isinstance(row, int) for row in rows):
        rows = [rows]
    for row in rows:
        is_list = isinstance(row, list | tuple)
        if not is_list or not all(isinstance(i, int) and not isinstance(i, bool) for i in row):
            raise AttlasError(
                "input_ids of shape (batch, length), whole numbers",
                quoted(input_ids),
                "pass the ids that the model was given, such as batch['input_ids']",
            )
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise AttlasError(
            "input_ids of one length, as the model was given them",
            f"texts of {lengths[0]:,} to {lengths[-1]:,} ids",
            "pass the padded ids, such as tokenizer(texts, padding=True)['input_ids']",
        )
    return [list(row) for row in rows]


def _converter(tokenizer: Any) -> Callable[[list[int]], list[str]]:
    """What makes readable tokens of ids."""
    if isinstance(tokenizer, HasTokens):
        backend = getattr(tokenizer, "backend_tokenizer", None)
        in_bytes = hasattr(tokenizer, "byte_decoder") or _is_of_bytes(backend)
        literal = set(getattr(tokenizer, "all_special_ids", ()))
        literal |= set(getattr(tokenizer, "added_tokens_decoder", {}))
        convert: Callable[[list[int]], list[Any]] = tokenizer.convert_ids_to_tokens
        if hasattr(tokenizer, "_utf_vocab_size"):  # ByT5, whose tokens are bytes
            convert = _as_bytes(convert, literal)
    elif hasattr(tokenizer, "id_to_token"):  # a tokenizers.Tokenizer
        in_bytes, literal = _is_of_bytes(tokenizer), set(tokenizer.get_added_tokens_decoder())
        convert = _one_by_one(tokenizer.id_to_token)
    elif hasattr(tokenizer, "decode_single_token_bytes"):  # of tiktoken
        in_bytes, literal = False, set()
        convert = _one_by_one(tokenizer.decode_single_token_bytes)
    elif hasattr(tokenizer, "pieces"):  # of attlas
        in_bytes, literal, convert = False, set(), tokenizer.pieces
    elif hasattr(tokenizer, "id_to_piece"):  # of SentencePiece
        in_bytes, literal, convert = False, set(), _one_by_one(tokenizer.id_to_piece)
    else:
        raise AttlasError(
            "a tokenizer, with `convert_ids_to_tokens`",
            f"a {type(tokenizer).__name__}",
            "pass the tokenizer that made the ids, or label with lists of strings: "
            'trace.label([["my", "own", "words"]])',
        )

    def converted(ids: list[int]) -> list[str]:
        try:
            tokens = convert(ids) if all(i >= 0 for i in ids) else [None] * len(ids)
        except (IndexError, KeyError, OverflowError, TypeError, ValueError):
            tokens = [_or_none(convert, i) for i in ids]
        missing = [i for i, token in zip(ids, tokens, strict=True) if token is None]
        missing = [i for i in missing if i < 0] or missing
        if missing:
            raise AttlasError(
                "ids that the tokenizer has",
                str(missing[0]),
                "numbers below 0, such as −100, are no token: pass the input_ids"
                if missing[0] < 0
                else "pass the tokenizer that made these ids",
            )
        return [
            _readable(token, in_bytes=in_bytes and id_ not in literal)
            for id_, token in zip(ids, tokens, strict=True)
        ]

    return converted


def _as_bytes(
    convert: Callable[[list[int]], list[Any]], literal: set[int]
) -> Callable[[list[int]], list[Any]]:
    """The same, of which each letter that is no special token is the byte of its number."""

    def converted(ids: list[int]) -> list[Any]:
        tokens = zip(ids, convert(ids), strict=True)
        return [
            bytes([ord(token)]) if id_ not in literal and token and len(token) == 1 else token
            for id_, token in tokens
        ]

    return converted


def _one_by_one(convert: Callable[[int], Any]) -> Callable[[list[int]], list[Any]]:
    return lambda ids: [convert(id_) for id_ in ids]


def _or_none(convert: Callable[[list[int]], list[Any]], id_: int) -> Any:
    try:
        (token,) = convert([id_])
    except (IndexError, KeyError, OverflowError, TypeError, ValueError):
        return None
    return token


def _is_of_bytes(tokenizer: Any) -> bool:
    """Return True if the tokens of a `tokenizers.Tokenizer` are bytes, written as GPT-2 does."""
    parts = (getattr(tokenizer, "decoder", None), getattr(tokenizer, "pre_tokenizer", None))
    return any("ByteLevel" in repr(part) for part in parts if part is not None)


def _readable(token: Any, *, in_bytes: bool) -> str:
    if isinstance(token, bytes | bytearray):
        return _text_of_bytes(bytes(token))
    if in_bytes and all(letter in _BYTES for letter in token):
        return _text_of_bytes(bytes(_BYTES[letter] for letter in token))
    return _without_controls(str(token))


def _text_of_bytes(token: bytes) -> str:
    """As text, with "▁" for each space, and "<0x…>" for what is no whole character."""
    text = token.decode("utf-8", errors="surrogateescape").replace(" ", "▁")
    letters = (f"<0x{ord(c) & 0xFF:02X}>" if "\udc80" <= c <= "\udcff" else c for c in text)
    return _without_controls("".join(letters))


def _without_controls(token: str) -> str:
    """Line breaks and tabs as "\\n" and "\\t": they would break the axis."""
    return "".join(
        letter.encode("unicode_escape").decode() if letter < " " or letter == "\x7f" else letter
        for letter in token
    )


def _byte_letters() -> dict[str, int]:
    """The letter that stands for each byte in the vocabulary of GPT-2 (Radford et al., 2019).

    Printable bytes stand for themselves; the others, in order, are the letters from U+0100.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(0x100 + number): byte for number, byte in enumerate(others)}


_BYTES = _byte_letters()


# Bytes of a vocabulary, which spell characters.


_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_LONGEST_CHARACTER = 4  # bytes of UTF-8
CONTINUED = "…"
"""The label of a byte that goes on with the character of a token before."""


def spelled_bytes(tokens: Sequence[str]) -> tuple[str, ...]:
    """The same labels, as many, in which bytes that make a character are shown as it: "<0xC3>",
    "<0x84>" are "Ä", "…". A byte of no whole printable character stays as it is.
    """
    matches = [_BYTE.fullmatch(token) for token in tokens]
    values = [None if match is None else int(match[1], 16) for match in matches]
    labels, index = list(tokens), 0
    while index < len(tokens):
        size, character = _character(values[index : index + _LONGEST_CHARACTER])
        if character:
            labels[index : index + size] = [character, *[CONTINUED] * (size - 1)]
        index += size
    return tuple(labels)


def _character(values: Sequence[int | None]) -> tuple[int, str]:
    """How many of these bytes the first character takes, and it; 1 and "" where there is none."""
    for size in range(1, len(values) + 1):
        own = [value for value in values[:size] if value is not None]
        if len(own) < size:
            break
        try:
            character = bytes(own).decode()
        except UnicodeDecodeError:
            continue
        return size, character if character.isprintable() and character != " " else ""
    return 1, ""


# The patches of images.


@dataclass(frozen=True, eq=False, slots=True)
class ImagePatches:
    """An image for each batch row; places of an axis are its patches, row by row.

    Place `first + row · columns + column` is the patch of this row and column, from 0.

    Args:
        images: Red, green and blue from 0 to 255, each of a size of its own.
        grid: How many rows and columns.
        first: The place of the first patch.
    """

    images: tuple[UInt8[Tensor, "_ _ 3"], ...]
    grid: tuple[int, int]
    first: int = 0

    @property
    def stop(self) -> int:
        """The place behind the last patch."""
        return self.first + self.grid[0] * self.grid[1]

    def at(self, row: int) -> "ImagePatches":
        """The same of one batch row."""
        return ImagePatches(self.images[row : row + 1], self.grid, self.first)

    def names(self, count: int) -> tuple[str, ...]:
        """A name for each of so many places: "patch 3,5", or the place of what is no patch."""
        inside = range(self.first, self.stop)
        return tuple(
            "patch {},{}".format(*divmod(place - self.first, self.grid[1]))
            if place in inside
            else str(place)
            for place in range(count)
        )

    def equals(self, other: "ImagePatches") -> bool:
        """Return True for the same places and the same images, bit by bit."""
        return (
            (self.grid, self.first, len(self.images))
            == (other.grid, other.first, len(other.images))
        ) and all(map(torch.equal, self.images, other.images))
