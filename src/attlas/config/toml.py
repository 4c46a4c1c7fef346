"""TOML files in and out."""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from datetime import date, time
from pathlib import Path
from shlex import quote
from textwrap import wrap
from typing import Any

import tomli_w

from attlas._files import DEEPEST, nested, stored_bytes, utf8_text
from attlas.errors import AttlasError, ConfigError, quoted

# `--set training.learning_rate=1e-3`: settings changed from the command line.


SET = "--set"
_SHOWN = 200  # characters of a value that is shown as it should be
_CLOSED = ("[]", "{}")  # a list, a table
Keys = tuple[str, ...]
"""`("training", "rate")`"""


class Overridden(dict[str, Any]):
    """Settings, with the keys that `overridden` assigned.

    Attributes:
        original: The settings before the assignments.
        assigned: The keys that were assigned, and the tables that are new.
        by: The options of the command line that assigned them.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        super().__init__(deepcopy(dict(table)))
        self.original = deepcopy(dict(table))
        self.assigned: set[Keys] = set()
        self.by = SET

    def replaced(self, keys: Keys, value: Any) -> None:
        """Note that there is a new value at `keys`; a table's are all new with it."""
        self.assigned = {path for path in self.assigned if path[: len(keys)] != keys} | {keys}
        if isinstance(value, dict):
            for key, inner in value.items():
                self.replaced((*keys, key), inner)


def overridden(table: Mapping[str, Any], assignments: Iterable[str]) -> Overridden:
    """A copy of `table` with each `dotted.key=value` assigned; values are TOML or plain text.

    Raises:
        ConfigError: For anything but an assignment, and for two assignments of one key.
    """
    result, assigned = Overridden(table), set[Keys]()
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        keys = [key.strip() for key in name.split(".")]
        if not equals or not all(keys) or len(keys) > DEEPEST:
            raise ConfigError(
                "an assignment like training.learning_rate=1e-3",
                quoted(assignment),
                f"write {SET} table.key=value",
            )
        if tuple(keys) in assigned:
            raise ConfigError(
                f"{SET} {'.'.join(keys)} once", "it several times", "leave the others out"
            )
        assigned.add(tuple(keys))
        group: dict[str, Any] = result
        for key in keys[:-1]:
            group = group.setdefault(key, {})
            if not isinstance(group, dict):
                raise ConfigError(
                    f"`{key}` to be a table", quoted(group), f"check the dots in {quoted(name)}"
                )
        group[keys[-1]] = value = _value(text.strip(), ".".join(keys))
        result.replaced(tuple(keys), value)
    return result


def _value(text: str, name: str) -> Any:
    """Parse the value as TOML. If it is no TOML value, return the text itself, because shell users
    write words without quotes.

    Args:
        name: The setting.

    Raises:
        ConfigError: For brackets or braces that are no list and no table.
    """
    is_bare = text[:1] not in {'"', "'", "[", "{"}
    if is_bare and ("#" in text or "\n" in text):
        return text
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError) as error:  # also for a number of thousands of digits
        if isinstance(error, tomllib.TOMLDecodeError) and text[:1] + text[-1:] in _CLOSED:
            raise _without_quotes(text, name) from None
        return text
    value = table.pop("value")
    return text if table or isinstance(value, date | time) or nested(value) > DEEPEST else value


def _without_quotes(text: str, name: str) -> AttlasError:
    """The error for a list or a table that is no TOML. Mostly the shell has removed the quotes of
    its texts.
    """
    try:
        meant = _with_quotes(text) if len(text) <= _SHOWN else ""
        tomllib.loads(f"value = {meant}")
    except ValueError:
        meant = '["one", "two"]' if text[0] == "[" else '{ key = "text" }'
    return ConfigError(
        f"{SET} {name} as TOML, in which texts within brackets have quotes",
        quoted(text),
        f"write {SET} {quote(f'{name}={meant}')}",
    )


def _with_quotes(text: str) -> str:
    """With quotes around each of its parts that is no value of TOML."""
    text = text.strip()
    if text[:1] + text[-1:] == "[]":
        return f"[{', '.join(map(_with_quotes, _parts(text[1:-1])))}]"
    if text[:1] + text[-1:] == "{}":
        fields = (part.partition("=") for part in _parts(text[1:-1]))
        return (
            f"{{ {', '.join(f'{key.strip()} {is_} {_with_quotes(v)}' for key, is_, v in fields)} }}"
        )
    try:
        tomllib.loads(f"value = {text}")
    except ValueError:
        return json.dumps(text, ensure_ascii=False)
    return text


def _parts(text: str) -> list[str]:
    """What commas separate, those within quotes, brackets and braces aside."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; a missing or broken file is an `AttlasError` that names it."""
    try:
        text = utf8_text(stored_bytes(path))
        table = tomllib.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
        if nested(table) > DEEPEST:
            raise RecursionError
        return table
    except FileNotFoundError:
        raise ConfigError("a TOML file", f"no file at {path}", "check the path") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"valid TOML in {path}", str(error), "correct that place") from None
    except RecursionError:
        raise ConfigError(
            f"settings in {path}",
            f"brackets within brackets, or tables within tables, more than {DEEPEST}",
            "correct that place",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"a readable TOML file at {path}", error.strerror or str(error), "check it"
        ) from None
    except ValueError as error:
        raise ConfigError(
            f"UTF-8 text in {path}",
            str(error),
            "correct that place, or convert the file to UTF-8 (for example with iconv)",
        ) from None


def write_toml(table: Mapping[str, Any], comments: Mapping[str, str] | None = None) -> str:
    """The TOML text of nested tables; keys without a value (None) are left out.

    Args:
        comments: The comment of a key or a table, by its dotted name. It follows the value if the
            line has room, and precedes it otherwise. A key without a value that has a comment
            becomes a comment itself: "# rows = …  # At most so many."
    """
    if comments is None:
        return tomli_w.dumps(_without_none(table))
    return "\n".join(_table_lines(table, comments, ())).strip() + "\n"


_LINE = 100  # characters


def _table_lines(
    table: Mapping[str, Any], comments: Mapping[str, str], keys: Keys
) -> Iterator[str]:
    """The lines of a table; its own values come before the tables in it, as TOML demands."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    for key, value in table.items():
        comment = comments.get(".".join((*keys, key)), "")
        if key not in inner and (value is not None or comment):
            line = _assignment(key, value) if value is not None else f"# {key} = …"
            yield from _with_comment(line, comment)
    for key, value in inner.items():
        name = (*keys, key)
        yield ""
        yield from _with_comment(_header(name), comments.get(".".join(name), ""))
        yield from _table_lines(value, comments, name)


def _assignment(key: str, value: Any) -> str:
    """ "key = value", a short list in one line."""
    line = tomli_w.dumps({key: value}).rstrip("\n")
    if not isinstance(value, list | tuple) or "\n" not in line:
        return line
    name = line.partition(" = ")[0]
    parts = [_assignment("x", part).removeprefix("x = ") for part in value]
    short = f"{name} = [{', '.join(parts)}]"
    return short if len(short) <= _LINE and "\n" not in short else line


def _header(keys: Keys) -> str:
    """ "[training.schedule]", with quotes around a key that needs them."""
    quoted_keys = (tomli_w.dumps({key: 0}).partition(" = ")[0] for key in keys)
    return f"[{'.'.join(quoted_keys)}]"


def _with_comment(line: str, comment: str) -> list[str]:
    comment = " ".join(comment.split())
    commented = f"{line}  # {comment}"
    if not comment:
        return [line]
    if len(commented) <= _LINE and "\n" not in line:
        return [commented]
    return [*(f"# {part}" for part in wrap(comment, _LINE - 2)), line]


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None
    }
