"""Settings that had other names: what a recipe with the old ones is told."""

from pathlib import Path
from typing import Any

import pytest

from attlas.config import Config
from attlas.config.base import RENAMED
from attlas.errors import AttlasError
from attlas.training import Recipe, read_recipe

OLD_TO_NEW = [
    ("batching.tokens", "batching.max_tokens"),
    ("decoding.beam", "decoding.num_beams"),
    ("decoding.longest_source", "decoding.max_source_length"),
    ("decoding.max_length_constant", "decoding.max_len_b"),
    ("decoding.max_length_factor", "decoding.max_len_a"),
    ("training.accumulate", "training.gradient_accumulation_steps"),
    ("training.clip", "training.max_grad_norm"),
    ("training.consistency", "training.rdrop_alpha"),
    ("training.consistency_after", "training.rdrop_after"),
    ("training.epochs", "training.max_epochs"),
    ("training.feeding", "training.scheduled_sampling"),
    ("training.keep", "training.keep_last"),
    ("training.minutes", "training.max_minutes"),
    ("training.optimiser", "training.optimizer"),
    ("training.rate", "training.learning_rate"),
    ("training.schedule.updates", "training.schedule.total_steps"),
    ("training.smoothing", "training.label_smoothing"),
    ("training.updates", "training.max_steps"),
    ("training.validation.decoding.beam", "training.validation.decoding.num_beams"),
    ("vocabulary.joint", "vocabulary.shared"),
]


@pytest.mark.parametrize(("old", "new"), OLD_TO_NEW)
def test_an_old_name_on_the_command_line_is_reported_the_new_one(old: str, new: str) -> None:
    with pytest.raises(AttlasError) as caught:
        read_recipe("demo", [f"{old}=1"])
    assert str(caught.value) == (
        f"expected a known setting in --set; got `{old}`; it was renamed: write `{new}`"
    )


def test_an_old_name_in_a_recipe_is_reported_the_new_one(tmp_path: Path) -> None:
    recipe = tmp_path / "my.toml"
    recipe.write_text(
        '[data]\nkind = "shipped"\n[model]\nkind = "recurrent"\n[training]\nupdates = 5\n'
    )
    with pytest.raises(AttlasError, match=r"got `training\.updates`; .* `training\.max_steps`"):
        read_recipe(recipe)


def test_a_setting_that_is_missing_under_its_new_name_is_reported_as_renamed() -> None:
    tables: dict[str, Any] = read_recipe("demo").tables()
    schedule = tables["training"]["schedule"]
    schedule["updates"] = schedule.pop("total_steps")
    with pytest.raises(AttlasError, match=r"write `training\.schedule\.total_steps`"):
        Recipe.read(tables, "the test")


def groups(config: type[Config]) -> set[type[Config]]:
    found = {config}
    for field in config.model_fields.values():
        found |= {one for group in inner(field.annotation) for one in groups(group)}
    return found


def inner(annotation: Any) -> list[type[Config]]:
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [one for part in getattr(annotation, "__args__", ()) for one in inner(part)]


def test_each_new_name_is_that_of_a_setting() -> None:
    known = {name for group in groups(Recipe) for name in group.model_fields}
    assert {new for every in RENAMED.values() for new in every} <= known


def test_a_key_that_is_a_setting_where_it_stands_is_no_old_name() -> None:
    class Beams(Config):
        beam: int = 1
        num_beams: int = 2

    assert Beams.read({"beam": 3}, "the test").beam == 3
