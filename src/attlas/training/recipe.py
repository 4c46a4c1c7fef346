"""Recipes: everything that determines the result of a training."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib.resources import as_file, files
from pathlib import Path
from shlex import quote
from typing import Any, Self

from pydantic import Field, model_validator

from attlas.config import Config, drop_idle_settings, overridden, read_toml
from attlas.data import BatchingConfig, DataConfig, LabelledData, VocabularyConfig
from attlas.data.base import resolved_name
from attlas.data.tables import data_suffix
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError, ConfigError, quoted
from attlas.models import ClassifierConfig, ModelConfig, TransformerConfig
from attlas.models.config import refuse_idle
from attlas.ops.dropout import dropped_steps
from attlas.runs.seal import CONFIG, flat, unchangeable
from attlas.training.config import TrainingConfig

# Settings that a classifier does not have, because it writes no text, by table.
_OF_TRANSLATION = {
    "": {"decoding"},
    "vocabulary": {"shared"},
    "training": {"scheduled_sampling"},
    "training.validation": {"translate", "sentences", "bleu_tokenizer", "decoding"},
}

_SHIPPED = files("attlas") / "recipes"


class Recipe(Config):
    """One TOML file: data, vocabulary, batching, model, training, decoding, and the seed.

    A model of kind "classifier" learns from labelled texts, every other from sentence pairs. What a
    classifier does without, such as [decoding], is then left out. Two settings follow from others
    where they are left out: batching.max_length of a classifier and model.tie_source of a
    Transformer.
    """

    seed: int = Field(default=1, ge=0)
    """The seed of the weights, of dropout and of the order of batches."""
    data: DataConfig
    """Where the texts come from."""
    vocabulary: VocabularyConfig = VocabularyConfig()
    """How text becomes tokens."""
    batching: BatchingConfig = BatchingConfig()
    """How examples are put together."""
    model: ModelConfig
    """The model."""
    training: TrainingConfig
    """How it is trained."""
    decoding: DecodingConfig = DecodingConfig()
    """How translations are searched for."""

    @model_validator(mode="after")
    def _by_the_rest(self) -> Self:
        batching, model = self.batching, self.model
        if self.classifies and "max_length" not in batching.model_fields_set:
            batching = batching.model_copy(update={"max_length": batching.max_tokens - 2})
        if isinstance(model, TransformerConfig) and "tie_source" not in model.model_fields_set:
            model = model.model_copy(update={"tie_source": self.vocabulary.shared})
        batching.check_room()
        # A frozen model has no other way to fill itself in.
        object.__setattr__(self, "batching", batching)
        object.__setattr__(self, "model", model)
        return self

    @model_validator(mode="after")
    def _of_one_task(self) -> Self:
        labelled = isinstance(self.data, LabelledData)
        if self.classifies != labelled:
            raise ConfigError(
                "data.kind = 'labelled' with model.kind = 'classifier', and neither without the "
                "other",
                f"data.kind = {self.data.kind!r} with model.kind = {self.model.kind!r}",
                "change one of them",
            )
        if self.classifies:
            for table in _OF_TRANSLATION:
                idle = dict.fromkeys(_OF_TRANSLATION[table], "train a model that translates")
                refuse_idle(_inside(self, table), "model.kind = 'classifier'", idle)
            if self.training.validation.criterion == "bleu":
                raise ConfigError(
                    "training.validation.criterion = 'macro_f1', 'accuracy' or 'loss' with "
                    "model.kind = 'classifier'",
                    "'bleu', which compares translations",
                    "choose another criterion",
                )
        elif self.training.class_weights != "none":
            raise ConfigError(
                "model.kind = 'classifier' beside training.class_weights, which are of labels",
                f"model.kind = {self.model.kind!r}",
                "leave them out",
            )
        elif self.training.validation.criterion == "macro_f1":
            raise ConfigError(
                f"training.validation.criterion = 'bleu', 'accuracy' or 'loss' with model.kind = "
                f"{self.model.kind!r}",
                "'macro_f1', which compares labels",
                "choose another criterion",
            )
        return self

    @model_validator(mode="after")
    def _check_rdrop(self) -> Self:
        drops = {name: p for name, p in self.model.model_dump().items() if name.endswith("dropout")}
        if self.training.rdrop_alpha and not any(map(dropped_steps, drops.values())):
            raise ConfigError(
                "a dropout beside training.rdrop_alpha, or both passes over a batch are the same",
                ", ".join(f"model.{name} = {p:g}" for name, p in drops.items()),
                "raise one of them, or set training.rdrop_alpha = 0",
            )
        return self

    @model_validator(mode="after")
    def _check_coverage_has_attention(self) -> Self:
        searches = {"": self.decoding, "training.validation.": self.training.validation.decoding}
        if getattr(self.model, "attention", "") != "none":
            return self
        for table, search in searches.items():
            of_attention = {"coverage_penalty": 0, "unknown": "'keep'"}
            penalties = {"coverage_penalty": search.coverage_penalty > 0.0}
            penalties["unknown"] = search.unknown == "replace"
            for name, without in of_attention.items():
                if penalties[name]:
                    raise ConfigError(
                        f"a model with cross-attention for {table}decoding.{name}",
                        "model.attention = 'none'",
                        f"set {table}decoding.{name} = {without}, or choose an attention",
                    )
        return self

    @model_validator(mode="after")
    def _one_embedding_one_vocabulary(self) -> Self:
        if getattr(self.model, "tie_source", False) and not self.vocabulary.shared:
            raise ConfigError(
                "vocabulary.shared = true beside model.tie_source = true, or one row would stand "
                "for two tokens",
                "vocabulary.shared = false",
                "change one of them",
            )
        return self

    @property
    def classifies(self) -> bool:
        """Return True if it trains a classifier."""
        return isinstance(self.model, ClassifierConfig)

    def with_init_from(self, run: str) -> Self:
        """The same with the weights of another run to begin with."""
        training = self.training.model_copy(update={"init_from": run})
        return self.model_copy(update={"training": training})

    def tables(self) -> dict[str, Any]:
        """As nested tables, ready for TOML; without the settings that have no effect."""
        tables = self.model_dump(mode="json")
        if self.classifies:
            for table, names in _OF_TRANSLATION.items():
                for name in names:
                    del _inside(tables, table)[name]
        return tables


def shipped_recipes() -> list[str]:
    """The names of the recipes that come with attlas."""
    names = (entry.name for entry in _SHIPPED.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def read_recipe(
    name: Path | str, assignments: Iterable[str] = (), warn: Callable[[str], None] | None = None
) -> Recipe:
    """A recipe file, or one that comes with attlas ("demo", "multi30k.toml"), with assignments
    (`training.learning_rate=1e-3`) put in.

    A file of that name goes before a shipped recipe. Relative paths of data are taken from the
    folder of the recipe file; in a shipped recipe, from the current folder. Those in assignments
    are taken from the current folder, too. A kind among the assignments (`data.kind=files`) makes
    its table a new one: settings of the old kind that the new one does not have are left out, for
    which `warn` gets a sentence.

    Raises:
        ConfigError: If there is no such recipe, or a setting is unknown or wrong.
    """
    path = Path(name)
    if path.is_file():
        _check_recipe(path)
        table, base, location = read_toml(path), path.parent, str(path)
    else:
        names = shipped_recipes()
        stem = path.name.removesuffix(".toml")
        if path.parent != Path() or stem not in names:
            similar = get_close_matches(stem, names, n=1) if path.parent == Path() else []
            guess = f"did you mean {similar[0]!r}? " if similar else "check the path, or "
            raise ConfigError(
                "a recipe: a TOML file, or the name of one that comes with attlas",
                f"{quoted(str(name), 1000)}, and there is no such file",
                f"{guess}use one of: {', '.join(names)}",
            )
        with as_file(_SHIPPED / f"{stem}.toml") as file:
            table, base, location = read_toml(file), Path(), f"the shipped recipe {stem}.toml"
    settings, idle = drop_idle_settings(Recipe, overridden(table, assignments))
    if warn is not None:
        for note in idle:
            warn(note)
    files, data = {("data", "train"), ("data", "origin")} & settings.assigned, settings.get("data")
    if files == {("data", "train")} and isinstance(data, dict):
        data.pop("origin", None)  # it is that of other files
    recipe = Recipe.read(settings, location)
    folder = base.resolve()
    here = Path.cwd()
    if recipe.training.init_from:
        of_assignment = ("training", "init_from") in settings.assigned
        base = here if of_assignment else folder
        recipe = recipe.with_init_from(resolved_name(base, recipe.training.init_from))
    data_here, of_data = recipe.data.resolved(here), recipe.data.resolved(folder)
    assigned = {keys[1] for keys in settings.assigned if keys[0] == "data" and len(keys) > 1}
    fields = {
        name: getattr(data_here, name) for name in assigned & type(of_data).model_fields.keys()
    }
    return recipe.model_copy(update={"data": of_data.model_copy(update=fields)})


_DATA = {".tsv": "--pairs {}", ".csv": "--pairs {}", ".jsonl": "--labels {}"}
"""How data of this name is trained on."""
_SAME = {".json": ".jsonl", ".ndjson": ".jsonl"}


def _check_recipe(path: Path) -> None:
    """Check that a file is not data, by its name, or because it is no TOML and is not called so."""
    suffix = data_suffix(path)
    kind, got = _SAME.get(suffix, suffix), f"{path}, which is data"
    if kind not in _DATA:
        if suffix == ".toml":
            return
        try:
            read_toml(path)
        except AttlasError as error:
            kind, got = ".tsv", f"{path}, which is no TOML ({error.got})"
        else:
            return
    advice = f"to train on it, write attlas train {_on_data(kind, path)}"
    if kind != ".jsonl":
        advice += f", or, if its texts have labels, attlas train {_on_data('.jsonl', path)}"
    expected = "a recipe: a TOML file, or the name of one that comes with attlas"
    raise ConfigError(expected, got, advice)


def _on_data(kind: str, path: Path) -> str:
    return _DATA[kind].format(quote(str(path)))


def check_same(original: Recipe, recipe: Recipe, folder: Path) -> None:
    """Check that a run which began with one recipe may go on with another.

    Raises:
        ConfigError: That names the settings which differ and may not.
    """
    if changes := _changed_fixed_settings(original, recipe):
        config_path, go_on = folder / CONFIG, f"attlas train {quote(str(folder))}"
        edited = config_path.is_file() and _changed_fixed_settings(
            original, Recipe.read(read_toml(config_path), str(config_path))
        )
        advice = f"put these back in {config_path}, then run: " if edited else ""
        raise ConfigError(
            f"the recipe with which {folder} began",
            "; ".join(changes),
            f"to go on with that run, {advice or 'leave them as they were: '}{go_on}; for a new "
            "run with these settings, choose another folder: add --out FOLDER",
        )


def check_same_as_main(leading: Recipe, recipe: Recipe) -> None:
    """Check that a process of a process group trains by the recipe of the first one.

    Raises:
        ConfigError: That names the settings which differ and may not.
    """
    changes = _changed_fixed_settings(leading, recipe)
    main_distribution, own_distribution = (
        leading.training.distribution,
        recipe.training.distribution,
    )
    if main_distribution != own_distribution:
        changes.append(
            f"training.distribution = {own_distribution!r} instead of {main_distribution!r}"
        )
    if changes:
        raise ConfigError(
            "the recipe of the first process of this training in all of them",
            "; ".join(changes),
            "give the same recipe and the same --set on every machine",
        )


def _changed_fixed_settings(old_recipe: Recipe, new_recipe: Recipe) -> list[str]:
    """The settings that differ and may not."""
    return changed_settings(unchangeable(old_recipe.tables()), unchangeable(new_recipe.tables()))


def changed_settings(old_settings: Mapping[str, Any], new_settings: Mapping[str, Any]) -> list[str]:
    """The settings of these tables that differ, "model.embed_dim = 64 instead of 32"."""
    old, new = flat(old_settings), flat(new_settings)
    return [
        f"{key} = {quoted(new.get(key))} instead of {quoted(old.get(key))}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _inside(group: Any, table: str) -> Any:
    """The table of this dotted name, in a recipe or in its tables."""
    for name in filter(None, table.split(".")):
        group = group[name] if isinstance(group, Mapping) else getattr(group, name)
    return group
