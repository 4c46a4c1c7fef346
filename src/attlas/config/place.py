"""Where a setting stands, as a person names it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from attlas.config.override import Keys, Overridden

Group = type[BaseModel]


@dataclass(frozen=True, slots=True)
class Place:
    """The keys that lead to a setting, and the group of settings in which it stands.

    `tag` is the setting by which `kinds` of that group are told apart; None where there is one.
    """

    keys: tuple[str, ...]
    group: Group
    tag: str | None
    kinds: tuple[Group, ...]

    @classmethod
    def of(cls, root: Group, location: Sequence[int | str]) -> "Place":
        """Follow the location of an error of pydantic, which also names tags, validators, and
        places inside of a value: none of these is a setting, and none is a key here.
        """
        rest = [str(part) for part in location if not str(part).startswith("function-")]
        keys: list[str] = []
        group: Group = root
        tag: str | None = None
        kinds: tuple[Group, ...] = (root,)
        while rest:
            keys.append(rest.pop(0))
            field = group.model_fields.get(keys[-1])
            inner = tuple(_groups_in(field.annotation)) if field else ()
            inner_tag = str(field.discriminator) if field and field.discriminator else None
            if not inner or len(rest) <= bool(inner_tag):
                break  # the place is here: a value, or a group that is wrong as a whole
            kinds, tag = inner, inner_tag
            group = _of_kind(kinds, tag, rest.pop(0)) if tag else kinds[0]
        return cls(tuple(keys), group, tag, kinds)

    @property
    def name(self) -> str:
        """`training.feeding.slope`"""
        return ".".join(self.keys)

    @property
    def kind(self) -> str | None:
        """Of the group."""
        return _kind(self.group, self.tag) if self.tag else None

    @property
    def elsewhere(self) -> list[str]:
        """The other kinds of this group, where the last key is a setting."""
        have = [k for k in self.kinds if k is not self.group and self.keys[-1] in k.model_fields]
        return [_kind(group, self.tag) for group in have if self.tag]

    @property
    def kinds_of_setting(self) -> list[str]:
        """The kinds from which the setting itself is chosen, where it is a group of one."""
        field = self.group.model_fields[self.keys[-1]]
        return [_kind(group, str(field.discriminator)) for group in _groups_in(field.annotation)]


def named(
    root: Group, key: str, table: Mapping[str, Any], before: tuple[str, ...] = ()
) -> list[str]:
    """Every setting of this name, in the groups of the kinds that the table has or that are the
    default: `["training.rate"]` of "rate"."""
    found = [".".join((*before, key))] if key in root.model_fields else []
    for name, field in root.model_fields.items():
        given = table.get(name)
        within = given if isinstance(given, Mapping) else {}
        group = _chosen(field, within)
        if group is not None:
            found += named(group, key, within, (*before, name))
    return found


def alike(root: Group, key: str, table: Mapping[str, Any]) -> list[str]:
    """Every setting of nearly this name, in any of the groups that `named` looks at."""
    known = sorted({name.rpartition(".")[2] for name in _every(root, table)})
    near = get_close_matches(key, known, n=2, cutoff=0.75)
    return [name for one in near for name in sorted(named(root, one, table), key=_depth)]


def nearest(root: Group, key: str, table: Mapping[str, Any]) -> list[str]:
    """The settings that somebody means by this name, whatever table it stands in: those that are
    called so, the outermost first, else those that are called nearly so.
    """
    return sorted(named(root, key, table), key=_depth) or alike(root, key, table)


def _depth(name: str) -> int:
    return name.count(".")


def _every(root: Group, table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """All settings, by their whole names."""
    for name, field in root.model_fields.items():
        yield f"{before}{name}"
        given = table.get(name)
        within = given if isinstance(given, Mapping) else {}
        group = _chosen(field, within)
        if group is not None:
            yield from _every(group, within, f"{before}{name}.")


def regrouped(root: Group, table: Overridden) -> tuple[Overridden, tuple[str, ...]]:
    """The settings without those that a new kind makes idle, and what to say of them.

    Where the kind of a group was put in, the group is a new one: of its old settings stay those
    that the new kind has in the very same way, and those that were put in as well.
    """
    told: list[str] = []
    found = Overridden(table)
    found.original, found.assigned = table.original, set(table.assigned)
    _regroup(root, found, table.original, found.assigned, (), told)
    return found, tuple(told)


def _regroup(
    root: Group,
    table: dict[str, Any],
    before: Mapping[str, Any],
    assigned: Collection[Keys],
    keys: Keys,
    told: list[str],
) -> None:
    for name, field in root.model_fields.items():
        given = table.get(name)
        if not isinstance(given, dict):
            continue
        own, was = (*keys, name), before.get(name)
        earlier = was if isinstance(was, Mapping) else {}
        new, old = _chosen(field, given), _chosen(field, earlier)
        tag = str(field.discriminator) if field.discriminator else ""
        if new and old and new is not old and (*own, tag) in assigned and own not in assigned:
            idle = [
                key
                for key in given
                if key != tag
                and not any(put[: len(own) + 1] == (*own, key) for put in assigned)
                and not _same_setting(new, old, key)
            ]
            for key in idle:
                del given[key]
            if idle:
                path = ".".join(own)
                told.append(
                    f"{path}.{tag} = {_kind(new, tag)!r}: left out "
                    f"{', '.join(f'{path}.{key}' for key in idle)}, which "
                    f"{'was' if len(idle) == 1 else 'were'} set for {_kind(old, tag)!r}"
                )
        if new:
            _regroup(new, given, earlier, assigned, own, told)


def _same_setting(one: Group, other: Group, key: str) -> bool:
    """Whether both have a setting of this name for values of the same kind."""
    fields = one.model_fields.get(key), other.model_fields.get(key)
    if fields[0] is None or fields[1] is None:
        return False
    ours, theirs = ((field.annotation, field.metadata) for field in fields if field)
    return ours == theirs


def _chosen(field: FieldInfo, given: Mapping[str, Any]) -> Group | None:
    """The kind of group that is given, or the default; None where there is neither."""
    groups = _groups_in(field.annotation)
    if not field.discriminator:
        return groups[0] if groups else None
    tag = str(field.discriminator)
    if tag not in given:
        return type(field.default) if isinstance(field.default, BaseModel) else None
    return next((group for group in groups if _kind(group, tag) == given[tag]), None)


def _groups_in(annotation: Any) -> list[Group]:
    """The groups of settings that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [group for part in getattr(annotation, "__args__", ()) for group in _groups_in(part)]


def _of_kind(kinds: Sequence[Group], tag: str, kind: str) -> Group:
    return next(group for group in kinds if _kind(group, tag) == kind)


def _kind(group: Group, tag: str) -> str:
    return str(group.model_fields[tag].default)
