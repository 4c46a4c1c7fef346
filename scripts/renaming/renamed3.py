# ---------------------------------------------------------------- 5. renamed settings are told of
RENAMED_TABLE = '''# Settings that had other names, and what they are called now, where they still stand.
RENAMED: Mapping[str, tuple[str, ...]] = {
    "accumulate": ("gradient_accumulation_steps",),
    "beam": ("num_beams",),
    "clip": ("max_grad_norm",),
    "consistency": ("rdrop_alpha",),
    "consistency_after": ("rdrop_after",),
    "attention_hidden": ("attention_hidden_dim", "attention_dim"),
    "embedding": ("embed_dim", "embedding_dim"),
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
    "placement": ("norm", "norm_placement", "norm_position"),
    "rate": ("learning_rate",),
    "readout_hidden": ("readout_hidden_dim", "readout_dim"),
    "smoothing": ("label_smoothing",),
    "tied": ("tie",),
    "tied_output": ("tie_output",),
    "tied_source": ("tie_source",),
    "tokens": ("max_tokens",),
    "updates": ("max_steps", "total_steps"),
    "width": ("embed_dim",),
    "wiring": ("decoder",),
}


def renamed(group: Group, key: str) -> str | None:
    """What a setting of this group is called now that was once called `key`; None for any other."""
    if key in group.model_fields:
        return None
    return next((new for new in RENAMED.get(key, ()) if new in group.model_fields), None)


'''
p = ROOT / A / "config/base.py"
s = p.read_text()
if "RENAMED" not in s:
    s = s.replace("def nearest_settings(", RENAMED_TABLE + "def nearest_settings(", 1)
    s = s.replace(
        "    first = error.errors()[0]\n    ours = first.get(",
        "    first = _first_complaint(cls, error)\n    ours = first.get(",
        1,
    )
    s = s.replace(
        "def _explained(\n",
        '''def _first_complaint(cls: type[Config], error: ValidationError) -> ErrorDetails:
    """The complaint to explain: one of a renamed setting first, for which others are to blame."""
    every = error.errors()
    for one in every:
        if one["type"] == "extra_forbidden":
            place = SettingPath.of(cls, one["loc"])
            if renamed(place.group, place.keys[-1]):
                return one
    return every[0]


def _explained(
''',
        1,
    )
    s = s.replace(
        """    if place.elsewhere:  # left over""",
        """    if new := renamed(place.group, key):
        name = ".".join((*place.keys[:-1], new))
        return AttlasError(wanted, f"`{place.name}`", f"it was renamed: write `{name}`")
    if place.elsewhere:  # left over""",
        1,
    )
    p.write_text(s)
T = ROOT / "tests/config/test_renamed_settings.py"
T.write_text('''"""Settings that had other names: what a recipe with the old ones is told."""

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
def test_an_old_name_on_the_command_line_is_told_the_new_one(old: str, new: str) -> None:
    with pytest.raises(AttlasError) as caught:
        read_recipe("demo", [f"{old}=1"])
    assert str(caught.value) == (
        f"expected a known setting in --set; got `{old}`; it was renamed: write `{new}`"
    )


def test_an_old_name_in_a_recipe_is_told_the_new_one(tmp_path: Path) -> None:
    recipe = tmp_path / "my.toml"
    recipe.write_text(
        '[data]\\nkind = "shipped"\\n[model]\\nkind = "recurrent"\\n[training]\\nupdates = 5\\n'
    )
    with pytest.raises(AttlasError, match=r"got `training\\.updates`; .* `training\\.max_steps`"):
        read_recipe(recipe)


def test_a_setting_that_is_missing_under_its_new_name_is_told_as_renamed() -> None:
    tables: dict[str, Any] = read_recipe("demo").tables()
    schedule = tables["training"]["schedule"]
    schedule["updates"] = schedule.pop("total_steps")
    with pytest.raises(AttlasError, match=r"write `training\\.schedule\\.total_steps`"):
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
''')
# Of the model's settings only those whose new names are there.
s = p.read_text()
import importlib.util

models = set()
for q in sorted((ROOT / A / "models").rglob("*.py")):
    for node in ast.walk(ast.parse(q.read_text())):
        if isinstance(node, ast.ClassDef) and (
            node.name.endswith("Config")
            or node.name.endswith("Settings")
            or "Config" in ast.unparse(node)[:200]
        ):
            models |= {
                b.target.id
                for b in node.body
                if isinstance(b, ast.AnnAssign) and isinstance(b.target, ast.Name)
            }
head, _, rest = s.partition("RENAMED: Mapping[str, tuple[str, ...]] = {\n")
body, _, tail = rest.partition("}\n")
model = {
    "attention_hidden",
    "encoder_hidden",
    "embedding",
    "feedforward",
    "feedforward_dropout",
    "heads",
    "hidden",
    "key_heads",
    "longest",
    "placement",
    "readout_hidden",
    "tied",
    "tied_output",
    "tied_source",
    "width",
    "wiring",
}
kept = []
for l in body.splitlines(keepends=True):
    old, *new = re.findall(r'"(\w+)"', l)
    if old in model:
        new = [n for n in new if n in models]
        if not new or old in models:
            continue
        l = f'    "{old}": ({", ".join(chr(34) + n + chr(34) for n in new)}{"," if len(new) == 1 else ""}),\n'
    kept.append(l)
p.write_text(
    head + "RENAMED: Mapping[str, tuple[str, ...]] = {\n" + "".join(kept) + "}\n" + tail
)
