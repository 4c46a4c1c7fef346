"""TOML files in and out."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from attlas.config.json import DEEPEST, nested, stored_bytes, utf8_text
from attlas.errors import AttlasError


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; a missing or broken file is an `AttlasError` that names it."""
    try:
        text = utf8_text(stored_bytes(path))
        table = tomllib.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
        if nested(table) > DEEPEST:
            raise RecursionError
        return table
    except FileNotFoundError:
        raise AttlasError("a TOML file", f"no file at {path}", "check the path") from None
    except tomllib.TOMLDecodeError as error:
        raise AttlasError(f"valid TOML in {path}", str(error), "correct that place") from None
    except RecursionError:
        raise AttlasError(
            f"settings in {path}",
            f"brackets within brackets, or tables within tables, more than {DEEPEST}",
            "correct that place",
        ) from None
    except OSError as error:
        raise AttlasError(
            f"a readable TOML file at {path}", error.strerror or str(error), "check it"
        ) from None
    except ValueError as error:
        raise AttlasError(
            f"UTF-8 text in {path}",
            str(error),
            "correct that place, or convert the file to UTF-8 (for example with iconv)",
        ) from None


def write_toml(table: Mapping[str, Any]) -> str:
    """The TOML text of nested tables; keys without a value (None) are left out."""
    return tomli_w.dumps(_without_none(table))


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None
    }
