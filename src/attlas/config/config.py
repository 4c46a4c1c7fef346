"""The base of every group of settings."""

from collections.abc import Collection, Mapping
from datetime import date, time
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from attlas.config.override import SET, Keys, Overridden
from attlas.config.place import Place, alike, named
from attlas.errors import AttlasError, quoted, shortened

_TAGS = ("kind",)  # in so many groups that it says nothing of which one was meant

# Not typing.Self: beartype refuses it on a method of a class that it does not decorate itself.
C = TypeVar("C", bound="Config")


class Config(BaseModel):
    """A frozen group of settings; an unknown key is an error that names the nearest valid one.

    A value of another type is an error too, never converted: `true` is no number, `"2"` and `2.0`
    are no whole numbers. But a whole number is a number, and a list is a tuple.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        strict=True,
        allow_inf_nan=False,  # neither would be written down as it is
    )

    @model_validator(mode="before")
    @classmethod
    def _lists_as_tuples(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}

    @classmethod
    def read(cls: type[C], table: Mapping[str, Any], where: str) -> C:
        """Build from a parsed TOML table; `where` names its origin in errors, or --set where a
        value was put in from there.
        """
        try:
            return cls.model_validate(dict(table))
        except ValidationError as error:
            if isinstance(table, Overridden) and table.assigned and _is_new(cls, table, error):
                where = table.by
            assigned = table.assigned if isinstance(table, Overridden) else ()
            by = table.by if isinstance(table, Overridden) else SET
            raise _explained(cls, table, error, where, by, assigned) from None


def _is_new(cls: type[Config], table: Overridden, error: ValidationError) -> bool:
    """Whether the settings were right, or wrong in another way, before some were put in."""
    try:
        cls.model_validate(table.original)
    except ValidationError as before:
        first, earlier = error.errors()[0], before.errors()[0]
        return any(first[part] != earlier[part] for part in ("type", "loc", "msg"))
    return True


def _explained(
    cls: type[Config],
    table: Mapping[str, Any],
    error: ValidationError,
    where: str,
    by: str,
    assigned: Collection[Keys],
) -> AttlasError:
    """Turn pydantic's first complaint into one sentence a person can act on."""
    first = error.errors()[0]
    ours = first.get("ctx", {}).get("error")
    if isinstance(ours, AttlasError):  # from a validator of ours, which said it better
        return AttlasError(f"{ours.wanted} ({where})", ours.came, ours.do)
    place = Place.of(cls, first["loc"])
    if first["type"] == "extra_forbidden":
        put_in = any(keys[: len(place.keys)] == place.keys for keys in assigned)
        return _unknown(cls, table, place, by if put_in else where, put_in=put_in)
    if any(place.keys[: len(keys)] == keys for keys in assigned):
        where = by
    within = isinstance(first["loc"][-1], int)  # a value that a list lacks, not a setting
    if first["type"] == "missing" and not within:
        return AttlasError(
            wanted=f"`{place.name}` in {where}", came="nothing", do=f"add `{place.keys[-1]} = …`"
        )
    if first["type"] in ("union_tag_not_found", "union_tag_invalid"):
        tag = first["ctx"].get("tag")
        return AttlasError(
            wanted=f"`{place.name}.kind` in {where}: one of "
            f"{', '.join(map(repr, place.kinds_of_setting))}",
            came="nothing" if tag is None else quoted(tag),
            do="say which kind it is" if tag is None else "correct that value",
        )
    if first["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return AttlasError(
            wanted=f"`{place.name}` in {where}: a table of settings",
            came=_shown(first["input"]),
            do=f"set what is in it: `{place.name}.… = …`",
        )
    return AttlasError(
        wanted=f"`{place.name}` in {where}: {_wish(first)}",
        came="a shorter list" if first["type"] == "missing" else _shown(first["input"]),
        do="correct that value",
    )


_WISHES = {
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "a whole number",
    "missing": "one more value in the list",
    "string_type": "a text in quotes",
    "tuple_type": "a list",
}


def _wish(complaint: ErrorDetails) -> str:
    """What the value should have been."""
    told = complaint["msg"]  # of limits and choices it says clearly what may be
    return _WISHES.get(complaint["type"], f"{told[:1].lower()}{told[1:]}")


def _shown(value: Any) -> str:
    """As `_as_written`, of what is long the beginning."""
    return quoted(value) if isinstance(value, str) else shortened(_as_written(value))


def _as_written(value: Any) -> str:
    """As it stands in TOML, where Python's own writing looks like something else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_as_written(each)}' for key, each in value.items())}}}"
    return repr(value)


def _unknown(
    root: type[Config], table: Mapping[str, Any], place: Place, where: str, *, put_in: bool
) -> AttlasError:
    """The error for a key that is no setting where it stands.

    put_in: from the command line, where a table is easily forgotten: then settings of other tables
    that are written alike are named, too.
    """
    wanted, key, valid = f"a known setting in {where}", place.keys[-1], place.group.model_fields
    listed = f"valid here: {', '.join(sorted(valid))}"
    if place.elsewhere:  # left over from a kind that was changed, or a kind mistaken for another
        group = ".".join(place.keys[:-1])
        kinds = " or ".join(map(repr, place.elsewhere))
        return AttlasError(
            wanted,
            f"`{place.name}`, which is of {place.tag} = {kinds}, beside {place.tag} = "
            f"{place.kind!r}",
            f"leave it out, or write the whole group anew: {group} = {{ {place.tag} = …, … }}; "
            f"{listed}",
        )
    here = get_close_matches(key, valid, n=1)
    there = [] if key in _TAGS else sorted(named(root, key, table), key=lambda one: one.count("."))
    near = [*there, *here] or (alike(root, key, table) if put_in and key not in _TAGS else [])
    hint = f"did you mean {' or '.join(f'`{one}`' for one in near[:3])}? " if near else ""
    return AttlasError(wanted, f"`{shortened(place.name)}`", f"{hint}{listed}")
