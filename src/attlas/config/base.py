"""The base of all settings: reading, validation, errors with dotted names."""

import ast
import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from attlas.config.toml import SET, Keys, Overridden
from attlas.errors import AttlasError, ConfigError, quoted, shortened

if TYPE_CHECKING:  # its name is private; mypy has to know it
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

Group = type[BaseModel]


@dataclass(frozen=True, slots=True)
class SettingPath:
    """The keys of a setting, and the group that it belongs to.

    `tag` is the setting that distinguishes the `kinds` of that group; None if there is one kind.
    """

    keys: tuple[str, ...]
    group: Group
    tag: str | None
    kinds: tuple[Group, ...]

    @classmethod
    def of(cls, root: Group, location: Sequence[int | str]) -> "SettingPath":
        """Convert the location of a pydantic error. It also names tags, validators, and places
        inside of a value, which are no keys.
        """
        parts = [str(part) for part in location if not str(part).startswith("function-")]
        keys: list[str] = []
        group: Group = root
        tag: str | None = None
        kinds: tuple[Group, ...] = (root,)
        while parts:
            keys.append(parts.pop(0))
            field = group.model_fields.get(keys[-1])
            inner = tuple(_groups_in(field.annotation)) if field else ()
            inner_tag = str(field.discriminator) if field and field.discriminator else None
            if not inner or len(parts) <= bool(inner_tag):
                break  # the end: a value, or a group that is wrong as a whole
            kinds, tag = inner, inner_tag
            group = _of_kind(kinds, tag, parts.pop(0)) if tag else kinds[0]
        return cls(tuple(keys), group, tag, kinds)

    @property
    def name(self) -> str:
        """`training.scheduled_sampling.slope`"""
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


def settings_named(
    root: Group, key: str, table: Mapping[str, Any], prefix: tuple[str, ...] = ()
) -> list[str]:
    """Every setting of this name, in the chosen or default kinds of all groups:
    `["training.learning_rate"]` for "learning_rate".
    """
    settings = [".".join((*prefix, key))] if key in root.model_fields else []
    for name, field in root.model_fields.items():
        group_table = table.get(name)
        inner_table = group_table if isinstance(group_table, Mapping) else {}
        group = _chosen(field, inner_table)
        if group is not None:
            settings += settings_named(group, key, inner_table, (*prefix, name))
    return settings


def similar_settings(root: Group, key: str, table: Mapping[str, Any]) -> list[str]:
    """Every setting of nearly this name, in any of the groups that `settings_named` looks at.

    A setting that had this name comes first, then those that have it as a word (`beams` of
    `num_beams`) or as initials (`lr` of `learning_rate`), then those that are spelt alike.
    """
    names = sorted({name.rpartition(".")[2] for name in _all_settings(root, table)})
    former = (*RENAMED.get(key, ()), *SYNONYMS.get(key, ()))
    matches = [name for name in former if name in names]
    if not matches:
        matches = [name for name in names if _is_part_of(key, name)]
    if not matches:
        matches = get_close_matches(key, names, n=2, cutoff=0.75)
    return [
        name for match in matches for name in sorted(settings_named(root, match, table), key=_depth)
    ]


def _is_part_of(key: str, name: str) -> bool:
    """Return True if a key is one word of a name, of whatever number, or its initials."""
    words = name.split("_")
    initials = "".join(word[:1] for word in words)
    return len(words) > 1 and (
        key == initials or key.removesuffix("s") in {word.removesuffix("s") for word in words}
    )


# Old names of settings, and their present names.
RENAMED: Mapping[str, tuple[str, ...]] = {
    "accumulate": ("gradient_accumulation_steps",),
    "beam": ("num_beams",),
    "clip": ("max_grad_norm",),
    "consistency": ("rdrop_alpha",),
    "consistency_after": ("rdrop_after",),
    "attention_hidden": ("attention_hidden_dim",),
    "embedding": ("embed_dim",),
    "encoder_hidden": ("encoder_hidden_dim",),
    "epochs": ("max_epochs",),
    "feedforward": ("ffn_dim",),
    "feedforward_dropout": ("ffn_dropout",),
    "feeding": ("scheduled_sampling",),
    "heads": ("num_heads",),
    "hidden": ("hidden_dim",),
    "joint": ("shared",),
    "keep": ("keep_last",),
    "key_heads": ("num_kv_heads",),
    "longest": ("max_positions",),
    "longest_source": ("max_source_length",),
    "max_length_constant": ("max_len_b",),
    "max_length_factor": ("max_len_a",),
    "minutes": ("max_minutes",),
    "optimiser": ("optimizer",),
    "placement": ("norm",),
    "rate": ("learning_rate",),
    "readout_hidden": ("readout_dim",),
    "smoothing": ("label_smoothing",),
    "tied_output": ("tie_output",),
    "tied_source": ("tie_source",),
    "tokens": ("max_tokens",),
    "updates": ("max_steps", "total_steps"),
    "width": ("embed_dim",),
    "wiring": ("decoder",),
}


# Names in other libraries, and ours.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "do_sample": ("method",),
    "max_length": ("max_len_b",),
    "max_new_tokens": ("max_len_b",),
    "no_repeat_ngram_size": ("no_repeat_ngram",),
    "num_return_sequences": ("n_best",),
    "max_train_steps": ("max_steps",),
    "max_updates": ("max_steps",),
    "num_train_epochs": ("max_epochs",),
    "num_updates": ("max_steps",),
    "gradient_clipping": ("max_grad_norm",),
    "per_device_train_batch_size": ("max_tokens",),
    "batch_size": ("max_tokens",),
    "num_layers": ("encoder_layers", "layers"),
    "dim_feedforward": ("ffn_dim",),
    "d_model": ("embed_dim",),
    "nhead": ("num_heads",),
    "warmup_steps": ("warmup",),
}


def renamed(group: Group, key: str) -> str | None:
    """The present name of a setting of this group whose old name is `key`; None = no such
    setting.
    """
    if key in group.model_fields:
        return None
    return next((new for new in RENAMED.get(key, ()) if new in group.model_fields), None)


def respelt_settings(root: Group, name: str, table: Mapping[str, Any]) -> list[str]:
    """Every setting whose name differs by capitals, dots, hyphens and underscores alone:
    `["training.max_steps"]` for "Training-maxSteps".
    """
    letters = _letters(name)
    return [setting for setting in _all_settings(root, table) if _letters(setting) == letters]


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def nearest_settings(root: Group, key: str, table: Mapping[str, Any]) -> list[str]:
    """The settings that this name may mean, in any table: those of this name, the outermost first,
    else those of nearly this name.
    """
    return sorted(settings_named(root, key, table), key=_depth) or similar_settings(
        root, key, table
    )


def _depth(name: str) -> int:
    return name.count(".")


def _all_settings(root: Group, table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """All settings, by their whole names."""
    for name, field in root.model_fields.items():
        yield f"{prefix}{name}"
        group_table = table.get(name)
        inner_table = group_table if isinstance(group_table, Mapping) else {}
        group = _chosen(field, inner_table)
        if group is not None:
            yield from _all_settings(group, inner_table, f"{prefix}{name}.")


def drop_idle_settings(root: Group, table: Overridden) -> tuple[Overridden, tuple[str, ...]]:
    """Remove settings that a new kind makes meaningless; return the rest, and a remark for each.

    If the kind of a group was assigned, the group is a new one. It keeps the old settings that the
    new kind has, too, and the newly assigned ones.
    """
    notes: list[str] = []
    result = Overridden(table)
    result.original, result.assigned = table.original, set(table.assigned)
    _regroup(root, result, table.original, result.assigned, (), notes)
    return result, tuple(notes)


def _regroup(
    root: Group,
    table: dict[str, Any],
    enclosing: Mapping[str, Any],
    assigned: Collection[Keys],
    keys: Keys,
    notes: list[str],
) -> None:
    for name, field in root.model_fields.items():
        group = table.get(name)
        if not isinstance(group, dict):
            continue
        setting_path, previous = (*keys, name), enclosing.get(name)
        earlier = previous if isinstance(previous, Mapping) else {}
        new, old = _chosen(field, group), _chosen(field, earlier)
        tag = str(field.discriminator) if field.discriminator else ""
        if (
            new
            and old
            and new is not old
            and (*setting_path, tag) in assigned
            and setting_path not in assigned
        ):
            idle = [
                key
                for key in group
                if key != tag
                and not any(
                    assigned_path[: len(setting_path) + 1] == (*setting_path, key)
                    for assigned_path in assigned
                )
                and not _same_setting(new, old, key)
            ]
            for key in idle:
                del group[key]
            if idle:
                path = ".".join(setting_path)
                notes.append(
                    f"{path}.{tag} = {_kind(new, tag)!r}: left out "
                    f"{', '.join(f'{path}.{key}' for key in idle)}, which "
                    f"{'was' if len(idle) == 1 else 'were'} set for {_kind(old, tag)!r}"
                )
        if new:
            _regroup(new, group, earlier, assigned, setting_path, notes)


def _same_setting(a: Group, b: Group, key: str) -> bool:
    """Return True if both have a setting of this name for values of the same kind."""
    fields = a.model_fields.get(key), b.model_fields.get(key)
    if fields[0] is None or fields[1] is None:
        return False
    first, second = ((field.annotation, field.metadata) for field in fields if field)
    return first == second


def _chosen(field: FieldInfo, values: Mapping[str, Any]) -> Group | None:
    """The chosen kind of a group, or the default; None if there is neither."""
    groups = _groups_in(field.annotation)
    if not field.discriminator:
        return groups[0] if groups else None
    tag = str(field.discriminator)
    if tag not in values:
        return type(field.default) if isinstance(field.default, BaseModel) else None
    return next((group for group in groups if _kind(group, tag) == values[tag]), None)


def _groups_in(annotation: Any) -> list[Group]:
    """The groups of settings that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [group for part in getattr(annotation, "__args__", ()) for group in _groups_in(part)]


def _of_kind(kinds: Sequence[Group], tag: str, kind: str) -> Group:
    return next(group for group in kinds if _kind(group, tag) == kind)


def _kind(group: Group, tag: str) -> str:
    return str(group.model_fields[tag].default)


# The meaning of settings, from their docstrings.


@cache
def descriptions(config: Group) -> Mapping[str, str]:
    """What each setting of a group means: the docstring below its field, in one line.

    The source is read on request only, so that no import takes longer.
    """
    texts: dict[str, str] = {}
    for group in reversed(config.__mro__):
        if group in (Config, BaseModel) or not issubclass(group, BaseModel):
            continue
        (tree,) = ast.parse(dedent(inspect.getsource(group))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, next_node in pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(next_node, ast.Expr)
                and isinstance(next_node.value, ast.Constant)
            ):
                texts[field.target.id] = " ".join(str(next_node.value.value).split())
    return texts


def explanations(settings: "Config", prefix: str = "") -> dict[str, str]:
    """The meaning of each setting and each table in this group, by its dotted name.

    The meaning of a setting that distinguishes kinds is the list of the kinds.
    """
    texts: dict[str, str] = {}
    meanings = descriptions(type(settings))
    for name, field in type(settings).model_fields.items():
        value, dotted = getattr(settings, name), f"{prefix}{name}"
        if meaning := meanings.get(name):
            texts[dotted] = meaning
        if isinstance(value, Config):
            texts |= explanations(value, f"{dotted}.")
            if field.discriminator:
                tag = str(field.discriminator)
                kinds = (_kind(group, tag) for group in _groups_in(field.annotation))
                texts[f"{dotted}.{tag}"] = f"One of: {', '.join(kinds)}."
    return texts


# The base of every group of settings.


_TAGS = ("kind",)  # in so many groups that it says nothing of which one was meant

# Not typing.Self: beartype refuses it on a method of a class that it does not decorate itself.
C = TypeVar("C", bound="Config")


class _ExplainsErrors(ModelMetaclass):
    """Makes `Settings(name=value)` raise the same errors as `read`.

    Pydantic builds nested groups without this call, so that the outermost group explains the error.
    """

    if not TYPE_CHECKING:

        def __call__(self, /, *args: Any, **settings: Any) -> Any:
            try:
                return super().__call__(*args, **settings)
            except ValidationError as error:
                raise _explain(self, settings, error, self.__name__, SET, ()) from None


class Config(BaseModel, metaclass=_ExplainsErrors):
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
    def read(cls: type[C], table: Mapping[str, Any], location: str) -> C:
        """Build from a parsed TOML table; `location` names its origin in errors, or --set where a
        value was put in from there.
        """
        try:
            return cls.model_validate(dict(table))
        except ValidationError as error:
            if isinstance(table, Overridden) and table.assigned and _is_new(cls, table, error):
                location = table.by
            assigned = table.assigned if isinstance(table, Overridden) else ()
            by = table.by if isinstance(table, Overridden) else SET
            raise _explain(cls, table, error, location, by, assigned) from None


def _is_new(cls: type[Config], table: Overridden, error: ValidationError) -> bool:
    """Return True if the error is new: the settings were valid, or had another error, before the
    assignments.
    """
    try:
        cls.model_validate(table.original)
    except ValidationError as previous_error:
        first, earlier = error.errors()[0], previous_error.errors()[0]
        return any(first[part] != earlier[part] for part in ("type", "loc", "msg"))
    return True


def _first_complaint(cls: type[Config], error: ValidationError) -> ErrorDetails:
    """The error to explain. One of a renamed setting comes first, because it causes others."""
    complaints = error.errors()
    for error_details in complaints:
        if error_details["type"] == "extra_forbidden":
            path = SettingPath.of(cls, error_details["loc"])
            if renamed(path.group, path.keys[-1]):
                return error_details
    return complaints[0]


def _explain(
    cls: type[Config],
    table: Mapping[str, Any],
    error: ValidationError,
    location: str,
    author: str,
    assigned: Collection[Keys],
) -> AttlasError:
    """Turn pydantic's first complaint into one sentence a person can act on."""
    first = _first_complaint(cls, error)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, AttlasError):  # from our own validator, whose message is better
        return ConfigError(f"{cause.expected} ({location})", cause.got, cause.hint)
    path = SettingPath.of(cls, first["loc"])
    if first["type"] == "extra_forbidden":
        put_in = any(keys[: len(path.keys)] == path.keys for keys in assigned)
        return _unknown(cls, table, path, author if put_in else location, put_in=put_in)
    if any(path.keys[: len(keys)] == keys for keys in assigned):
        location = author
    is_list_item = isinstance(first["loc"][-1], int)  # a value that a list lacks, not a setting
    if first["type"] == "missing" and not is_list_item:
        return ConfigError(
            expected=f"`{path.name}` in {location}",
            got="nothing",
            hint=f"add `{path.keys[-1]} = …`",
        )
    if first["type"] in ("union_tag_not_found", "union_tag_invalid"):
        tag = first["ctx"].get("tag")
        return ConfigError(
            expected=f"`{path.name}.kind` in {location}: one of "
            f"{', '.join(map(repr, path.kinds_of_setting))}",
            got="nothing" if tag is None else quoted(tag),
            hint="say which kind it is" if tag is None else "correct that value",
        )
    if first["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return ConfigError(
            expected=f"`{path.name}` in {location}: a table of settings",
            got=_shortened_value(first["input"]),
            hint=f"set what is in it: `{path.name}.… = …`",
        )
    return ConfigError(
        expected=f"`{path.name}` in {location}: {_wish(first)}",
        got="a shorter list" if first["type"] == "missing" else _shortened_value(first["input"]),
        hint=_other_kind(path, first) or _correction(first),
    )


def _other_kind(path: SettingPath, complaint: ErrorDetails) -> str:
    """The hint that names the other kinds of the group for which the value is valid; "" = none."""
    kinds = [
        _kind(group, path.tag)
        for group in path.kinds
        if path.tag and group is not path.group and _is_valid(group, path.keys[-1], complaint)
    ]
    if not kinds:
        return ""
    group = ".".join(path.keys[:-1])
    return (
        f"correct that value, or choose {group}.{path.tag} = {' or '.join(map(repr, kinds))}, for "
        f"which it is valid (now {path.kind!r})"
    )


def _is_valid(group: Group, key: str, complaint: ErrorDetails) -> bool:
    """Return True if the setting of another kind takes the value that this one refuses."""
    field = group.model_fields.get(key)
    if field is None or len(complaint["loc"]) == 0 or complaint["loc"][-1] != key:
        return False
    annotation: Any = field.annotation
    if field.metadata:
        annotation = Annotated[(annotation, *field.metadata)]
    adapter = TypeAdapter[Any](annotation)
    try:
        adapter.validate_python(complaint["input"], strict=True)
    except (ValidationError, AttlasError):
        return False
    return True


def _correction(complaint: ErrorDetails) -> str:
    """The hint: the choice that is most similar to the value."""
    value = complaint["input"]
    if complaint["type"] == "literal_error" and isinstance(value, str):
        choices = re.findall(r"'([^']*)'", complaint["ctx"]["expected"])
        matches = get_close_matches(value.lower().replace("-", "_"), choices, n=1)
        if matches:
            return f"did you mean {matches[0]!r}?"
    return "correct that value"


_WISHES = {
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "a whole number",
    "missing": "one more value in the list",
    "string_type": "a text in quotes",
    "tuple_type": "a list",
}


_LIMITS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}


def _wish(complaint: ErrorDetails) -> str:
    """What the value should have been."""
    message = complaint["msg"].removeprefix("Input should be ")
    if complaint["type"] in _LIMITS:
        return f"a number {message}"
    return _WISHES.get(complaint["type"], f"{message[:1].lower()}{message[1:]}")


def _shortened_value(value: Any) -> str:
    """As `_as_written`, of what is long the beginning."""
    return quoted(value) if isinstance(value, str) else shortened(_as_written(value))


def _as_written(value: Any) -> str:
    """The value in TOML notation, if Python's differs."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_as_written(item)}' for key, item in value.items())}}}"
    return repr(value)


def _unknown(
    root: type[Config],
    table: Mapping[str, Any],
    setting: SettingPath,
    location: str,
    *,
    put_in: bool,
) -> AttlasError:
    """The error for an unknown key.

    Args:
        put_in: Whether it came from the command line, where the table is easily forgotten: then
            similar settings of other tables are named, too.
    """
    expected, key, valid = (
        f"a known setting in {location}",
        setting.keys[-1],
        setting.group.model_fields,
    )
    valid_settings = f"valid here: {', '.join(sorted(valid))}"
    if new := renamed(setting.group, key):
        name = ".".join((*setting.keys[:-1], new))
        return ConfigError(expected, f"`{setting.name}`", f"it was renamed: write `{name}`")
    if setting.elsewhere:  # a leftover of another kind, or a wrong kind
        group = ".".join(setting.keys[:-1])
        kinds = " or ".join(map(repr, setting.elsewhere))
        return ConfigError(
            expected,
            f"`{setting.name}`, which is of {setting.tag} = {kinds}, beside {setting.tag} = "
            f"{setting.kind!r}",
            f"leave it out, or write the whole group again: {group} = {{ {setting.tag} = …, … }}; "
            f"{valid_settings}",
        )
    table_name = "".join(f"{group}." for group in setting.keys[:-1])
    similar = [name for name in SYNONYMS.get(key, ()) if name in valid]
    similar = similar or get_close_matches(key, valid, n=1)
    similar_names = [f"{table_name}{name}" for name in similar]
    other_groups = (
        []
        if key in _TAGS
        else sorted(settings_named(root, key, table), key=lambda path: path.count("."))
    )
    respelt = respelt_settings(root, setting.name, table)
    suggestions = (
        respelt
        or [*other_groups, *similar_names]
        or (similar_settings(root, key, table) if put_in and key not in _TAGS else [])
    )
    hint = (
        f"did you mean {' or '.join(f'`{path}`' for path in suggestions[:3])}? "
        if suggestions
        else ""
    )
    return ConfigError(expected, f"`{shortened(setting.name)}`", f"{hint}{valid_settings}")
