"""The base of every group of settings."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from attlas.config.place import Place
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
            raise _explained(cls, error, where) from None


def _explained(cls: type[Config], error: ValidationError, where: str) -> AttlasError:
    """Turn pydantic's first complaint into one sentence a person can act on."""
    first = error.errors()[0]
    ours = first.get("ctx", {}).get("error")
    if isinstance(ours, AttlasError):  # from a validator of ours, which said it better
        return AttlasError(f"{ours.wanted} ({where})", ours.came, ours.do)
    place = Place.of(cls, first["loc"])
    if first["type"] == "extra_forbidden":
        return _unknown(place, where)
    if first["type"] == "missing":
        return AttlasError(
            wanted=f"`{place.name}` in {where}", came="nothing", do=f"add `{place.keys[-1]} = …`"
        )
    if first["type"] == "union_tag_not_found":
        return AttlasError(
            wanted=f"`{place.name}.kind` in {where}", came="nothing", do="say which kind it is"
        )
    if first["type"] == "union_tag_invalid":
        return AttlasError(
            wanted=f"`{place.name}.kind` in {where}: one of {first['ctx']['expected_tags']}",
            came=repr(first["ctx"]["tag"]),
            do="correct that value",
        )
    return AttlasError(
        wanted=f"`{place.name}` in {where}: {first['msg'][:1].lower()}{first['msg'][1:]}",
        came=repr(first["input"]),
        do="correct that value",
    )


def _unknown(place: Place, where: str) -> AttlasError:
    """The error for a key that is no setting where it stands."""
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
    near = get_close_matches(key, valid, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return AttlasError(wanted, f"`{place.name}`", f"{hint}{listed}")
