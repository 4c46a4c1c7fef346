"""docs/reference/settings.md: every setting of a recipe, from the classes that read it.

python scripts/settings.py    write the page anew
"""

import inspect
import json
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from attlas.config import Config, descriptions
from attlas.data import BatchingConfig
from attlas.models import TransformerConfig
from attlas.training import Recipe
from attlas.training.recipe import shipped_recipes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"
_KIND = "kind"
_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
_BY_THE_REST: dict[tuple[type[Config], str], str] = {  # see `Recipe`
    (BatchingConfig, "max_length"): "`256`; of a classifier `max_tokens` − 2",
    (TransformerConfig, "tie_source"): "as `vocabulary.shared`",
}
_HEAD = (
    "# Settings\n\n"
    "Every setting of a recipe: the tables of its TOML file, or `--set TABLE.SETTING=VALUE` on the "
    "command line. Made from the source by `python scripts/settings.py`. `attlas inspect RECIPE` "
    "writes a whole recipe with the values it has; what comes with attlas are {recipes}.\n\n"
    "Where a table has a `kind`, that decides which settings it has.\n"
)


def page(recipes: Iterable[str]) -> str:
    """The whole page, in Markdown."""
    named = ", ".join(f"`{name}`" for name in recipes)
    return "\n".join([_HEAD.format(recipes=named), *_tables("The recipe", "", Recipe, {})])


def _tables(
    title: str,
    name: str,
    config: type[Config],
    reported: dict[type[Config], str],
    given: Any = None,
) -> Iterator[str]:
    """The sections of a table and of those within it; what was told before is not told again.

    given: what stands there where the table is left out, None = what its settings are by default.
    """
    yield f"## {title}\n"
    if isinstance(given, config) and given.model_fields_set:
        own_way = [
            f"`{name}` = `{json.dumps(getattr(given, name))}`"
            for name in sorted(given.model_fields_set)
            if getattr(given, name) != config.model_fields[name].default
        ]
        if own_way:
            yield f"Here {' and '.join(own_way)}, where it is left out.\n"
    if config in reported:
        yield f"As {reported[config]}, above.\n"
        return
    reported[config] = title
    yield from (f"{_escaped(one)}\n" for one in _explanations(config))
    fields = {
        key: field for key, field in config.model_fields.items() if not _is_a_name(key, field)
    }
    if own := {key: field for key, field in fields.items() if not _within(field)}:
        yield "| setting | default | values | meaning |\n|---|---|---|---|"
        meanings = descriptions(config)
        yield from (
            f"| `{key}` | {_BY_THE_REST.get((config, key)) or _default(f)} | {_values(f)} "
            f"| {_escaped(meanings[key]).replace('|', chr(92) + '|')} |"
            for key, f in own.items()
        )
        yield ""
    for key, field in fields.items():
        inner = f"{name}.{key}" if name else key
        for table in _within(field):
            title = f"[{inner}]{_kind_of(table, field)}"
            yield from _tables(title, inner, table, reported, field.default)


def _explanations(config: type[Config]) -> Iterator[str]:
    """What a table's class says of its settings, and what those say from which it has some."""
    for one in config.__mro__[: config.__mro__.index(Config)]:
        if one.__doc__ and issubclass(one, Config) and one.__annotations__:
            yield inspect.cleandoc(one.__doc__)


def _escaped(text: str) -> str:
    """What looks like a tag is none; in a span of code all is read as it stands."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def _is_a_name(key: str, field: FieldInfo) -> bool:
    """Whether it tells a table from its alternatives, and says no more."""
    return key == _KIND and len(get_args(field.annotation)) == 1


def _kind_of(table: type[Config], field: FieldInfo) -> str:
    """What tells a table from its alternatives, and whether it is the one where none is set."""
    kind = table.model_fields.get(_KIND)
    if kind is None or not _is_a_name(_KIND, kind):
        return ""
    default = ", the default" if type(field.default) is table else ""
    return f", {_KIND} = {json.dumps(kind.default)}{default}"


def _within(field: FieldInfo) -> list[type[Config]]:
    """The classes of tables that may stand at a setting."""
    return [
        one
        for one in _alternatives(field.annotation)
        if inspect.isclass(one) and issubclass(one, Config)
    ]


def _alternatives(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [found for one in get_args(annotation) for found in _alternatives(one)]
    return [annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be set"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "left out"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _values(field: FieldInfo) -> str:
    kinds = [_kind(one) for one in _alternatives(field.annotation) if one is not type(None)]
    bounds = [
        f"{sign} {getattr(one, name):,.12g}"
        for one in _constraints(field)
        for name, sign in _BOUNDS.items()
        if getattr(one, name, None) is not None
    ]
    if any(_takes_one(one) for one in _constraints(field)):
        kinds = ["a text", *kinds]
    return ", ".join([" or ".join(dict.fromkeys(kinds)), *bounds]).replace("|", "\\|")


_OF_ONE = ("_file_names", "_file_names_or_none")


def _takes_one(constraint: Any) -> bool:
    """Whether one text stands for a list of one."""
    return isinstance(constraint, BeforeValidator) and constraint.func.__name__ in _OF_ONE


def _constraints(field: FieldInfo) -> list[Any]:
    """What bounds a setting, wherever in its annotation that stands."""
    found, waiting = [*field.metadata], [field.annotation]
    while waiting:
        one = waiting.pop()
        if get_origin(one) is Annotated:
            inner, *metadata = get_args(one)
            waiting.append(inner)
            for extra in metadata:
                found += extra.metadata if isinstance(extra, FieldInfo) else [extra]
        elif get_origin(one) in (Union, types.UnionType):
            waiting += get_args(one)
    return found


def _kind(annotation: Any) -> str:
    """What a value is, as TOML calls it."""
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{json.dumps(value)}`" for value in get_args(annotation))
    if get_origin(annotation) is tuple:
        inner = dict.fromkeys(_kind(one) for one in get_args(annotation) if one is not Ellipsis)
        return f"a list of: {' or '.join(inner)}"
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return ", or ".join(dict.fromkeys(map(_kind, get_args(annotation))))
    if get_origin(annotation) is dict:
        return f"a table of: {_kind(get_args(annotation)[1])}"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    return names[annotation]


if __name__ == "__main__":
    PAGE.write_text(page(shipped_recipes()), encoding="utf-8")
