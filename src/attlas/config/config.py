"""The base of every group of settings."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from attlas.errors import AttlasError

# Not typing.Self: beartype refuses it on a method of a class that it does not decorate itself.
C = TypeVar("C", bound="Config")


class Config(BaseModel):
    """A frozen group of settings; an unknown key is an error that names the nearest valid one."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @classmethod
    def read(cls: type[C], table: Mapping[str, Any], where: str) -> C:
        """Build from a parsed TOML table; `where` names its origin in errors."""
        try:
            return cls.model_validate(table)
        except ValidationError as error:
            raise _explained(cls, table, error, where) from None


def _explained(
    cls: type[Config], table: Mapping[str, Any], error: ValidationError, where: str
) -> AttlasError:
    """Turn pydantic's first complaint into one sentence a person can act on."""
    first = error.errors()[0]
    ours = first.get("ctx", {}).get("error")
    if isinstance(ours, AttlasError):  # from a validator of ours, which said it better
        return AttlasError(f"{ours.wanted} ({where})", ours.came, ours.do)
    path = [str(part) for part in first["loc"] if not str(part).startswith("function-")]
    name = ".".join(path)
    if first["type"] == "extra_forbidden":
        valid = _keys_beside(cls, first["loc"])
        near = get_close_matches(path[-1], valid, n=1, cutoff=0.5)
        hint = f"did you mean `{near[0]}`? " if near else ""
        return AttlasError(
            wanted=f"a known setting in {where}",
            came=f"`{name}`",
            do=f"{hint}valid here: {', '.join(sorted(valid))}",
        )
    if first["type"] == "missing":
        return AttlasError(
            wanted=f"`{name}` in {where}", came="nothing", do=f"add `{path[-1]} = …`"
        )
    if first["type"] == "union_tag_not_found":
        return AttlasError(
            wanted=f"`{name}.kind` in {where}", came="nothing", do="say which kind it is"
        )
    return AttlasError(
        wanted=f"`{name}` in {where}: {first['msg'][:1].lower()}{first['msg'][1:]}",
        came=repr(first["input"]),
        do="correct that value",
    )


def _keys_beside(cls: type[Config], location: tuple[int | str, ...]) -> list[str]:
    """The settings valid beside the one at `location`, following nested groups and their tags."""
    candidates: list[type[Config]] = [cls]
    for part in location[:-1]:
        inner: list[type[Config]] = []
        for candidate in candidates:
            field = candidate.model_fields.get(str(part))
            if field is not None:
                inner += _configs_in(field.annotation)
        if inner:
            candidates = inner
        else:  # the tag of a union, e.g. "recurrent": keep only the group that carries it
            tagged = [c for c in candidates if part in _tags(c)]
            candidates = tagged or candidates
    return sorted({key for candidate in candidates for key in candidate.model_fields})


def _configs_in(annotation: Any) -> list[type[Config]]:
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [c for inner in getattr(annotation, "__args__", ()) for c in _configs_in(inner)]


def _tags(cls: type[Config]) -> set[Any]:
    return {field.default for field in cls.model_fields.values()}
