"""`--set training.rate=1e-3`: settings changed from the command line."""

import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import date, time
from typing import Any

from attlas.config.json import DEEPEST, nested
from attlas.errors import AttlasError, quoted

SET = "--set"
Keys = tuple[str, ...]
"""`("training", "rate")`"""


class Overridden(dict[str, Any]):
    """Settings, and which of them, and tables of them, were put in by `overridden`.

    original: the settings before that. by: the options of the command line that they came by.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        super().__init__(deepcopy(dict(table)))
        self.original = deepcopy(dict(table))
        self.assigned: set[Keys] = set()
        self.by = SET

    def replaced(self, keys: Keys, value: Any) -> None:
        """Note that there is a new value at `keys`; a table's are all new with it."""
        self.assigned = {one for one in self.assigned if one[: len(keys)] != keys} | {keys}
        if isinstance(value, dict):
            for key, inner in value.items():
                self.replaced((*keys, key), inner)


def overridden(table: Mapping[str, Any], assignments: Iterable[str]) -> Overridden:
    """A copy of `table` with each `dotted.key=value` put in; values are TOML or plain text.

    Errors: `AttlasError` for what is no assignment, and for two of one key.
    """
    result, before = Overridden(table), set[Keys]()
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        keys = [key.strip() for key in name.split(".")]
        if not equals or not all(keys) or len(keys) > DEEPEST:
            raise AttlasError(
                "an assignment like training.rate=1e-3",
                quoted(assignment),
                f"write {SET} table.key=value",
            )
        if tuple(keys) in before:
            raise AttlasError(
                f"{SET} {'.'.join(keys)} once", "it several times", "leave the others out"
            )
        before.add(tuple(keys))
        group: dict[str, Any] = result
        for key in keys[:-1]:
            group = group.setdefault(key, {})
            if not isinstance(group, dict):
                raise AttlasError(
                    f"`{key}` to be a table", quoted(group), f"check the dots in {quoted(name)}"
                )
        group[keys[-1]] = value = _value(text.strip())
        result.replaced(tuple(keys), value)
    return result


def _value(text: str) -> Any:
    """As TOML has it, where it is one value of a kind that settings have; else the text itself, an
    unquoted word as a shell user writes it."""
    bare = text[:1] not in {'"', "'", "[", "{"}
    if bare and ("#" in text or "\n" in text):
        return text
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):  # the former also of a number of thousands of digits
        return text
    value = table.pop("value")
    return text if table or isinstance(value, date | time) or nested(value) > DEEPEST else value
