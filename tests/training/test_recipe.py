"""Recipes: where they are found, what their paths mean, what they refuse."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from attlas.config import Config, read_toml, write_toml
from attlas.data import BatchingConfig, FilesData
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError
from attlas.metrics import translation as bleu_tokenizer
from attlas.models import TransformerConfig, build
from attlas.training import Event, Recipe, Validated, read_recipe, train
from attlas.training.recipe import check_same
from support.killed_trainings import recipe

SHIPPED = [
    "base", "copy", "demo", "imdb", "long", "multi30k", "reverse", "small", "sort", "tiny",
]  # fmt: skip

TABLES: dict[str, Any] = {
    "data": {"kind": "files", "train": "train.tsv", "valid": ["v.en", "/there/v.de"]},
    "model": {"kind": "recurrent"},
    "training": {"max_epochs": 1},
}


def written(folder: Path, **tables: Any) -> Path:
    path = folder / "my.toml"
    path.write_text(write_toml({**TABLES, **tables}))
    return path


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_recipe_is_found_by_its_name_with_and_without_its_ending(name: str) -> None:
    assert read_recipe(name) == read_recipe(f"{name}.toml")


def test_a_table_that_is_set_to_a_word_is_the_callers_mistake() -> None:
    with pytest.raises(AttlasError, match="`data` in --set: a table of settings"):
        read_recipe("tiny", ["data.train=x", "data=foo"])


def test_where_files_come_from_is_not_said_of_others_unless_it_is_said_with_them() -> None:
    assert read_recipe("tiny").data.origin.startswith("https://")
    assert read_recipe("tiny", ["data.train=my.tsv"]).data.origin == ""
    whole = 'data={kind="files", train="my.tsv", held_back=5, origin="the attic"}'
    for assignments in (["data.train=my.tsv", "data.origin=the attic"], ["data.train=x", whole]):
        assert read_recipe("tiny", assignments).data.origin == "the attic"


@pytest.mark.parametrize("table", ["", "training.validation."])
def test_what_a_model_looks_at_is_not_counted_where_it_does_not_look(table: str) -> None:
    with pytest.raises(AttlasError, match=rf"for {table}decoding\.coverage_penalty \(.*; got mod"):
        read_recipe(
            "multi30k",
            [f"{table}decoding={{method='beam', coverage_penalty=0.2}}", "model.attention=none"],
        )


def test_a_shipped_recipe_takes_its_paths_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = read_recipe("multi30k").data
    assert isinstance(data, FilesData)
    assert {Path(path).parent.parent for path in data.train} == {tmp_path}


def test_a_recipe_file_takes_its_paths_from_its_own_folder(tmp_path: Path) -> None:
    data = read_recipe(written(tmp_path)).data
    assert isinstance(data, FilesData)
    assert data.train == (str(tmp_path / "train.tsv"),)
    assert data.valid == (str(tmp_path / "v.en"), "/there/v.de")


def test_a_file_goes_before_a_shipped_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, seed=77).rename(tmp_path / "demo.toml")
    monkeypatch.chdir(tmp_path)
    assert read_recipe("demo.toml").seed == 77
    assert read_recipe("demo").seed != 77


def test_assignments_are_put_in_and_their_paths_are_those_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assignments = ["training.learning_rate=0.5", "data.train=other.tsv", "training.init_from=run"]
    read = read_recipe(written(tmp_path), assignments)
    assert read.training.learning_rate == 0.5
    assert read.training.init_from == str(tmp_path / "here" / "run")
    assert isinstance(read.data, FilesData)
    assert read.data.train == (str(tmp_path / "here" / "other.tsv"),)
    as_written = read_recipe(written(tmp_path)).data
    assert isinstance(as_written, FilesData)
    assert Path(as_written.train[0]).parent == tmp_path
    assert read.data.valid == as_written.valid


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_two_vocabularies_do_not_share_an_embedding_though_they_be_of_one_size(kind: str) -> None:
    apart = {"vocabulary": {"shared": False}, "model": {"kind": kind, "tie_source": True}}
    with pytest.raises(AttlasError, match=r"vocabulary\.shared = true beside model\.tie_source"):
        Recipe.read({**TABLES, "training": {"max_epochs": 1}, **apart}, "the test")


@pytest.mark.parametrize("shared", [False, True])
def test_a_transformer_shares_embeddings_where_the_vocabulary_is_joint(shared: bool) -> None:
    tables = {**TABLES, "vocabulary": {"shared": shared}, "model": {"kind": "transformer"}}
    model = Recipe.read(tables, "the test").model
    assert isinstance(model, TransformerConfig)
    assert model.tie_source is shared
    tables["model"] = {"kind": "transformer", "tie_source": False}
    apart = Recipe.read(tables, "the test").model
    assert isinstance(apart, TransformerConfig)
    assert not apart.tie_source


def test_texts_with_labels_are_read_whole_where_nothing_bounds_them() -> None:
    data = {"kind": "labelled", "train": "t.jsonl", "held_back": 0.1}
    tables = {**TABLES, "data": data, "model": {"kind": "classifier"}}
    tables["training"] = {"max_epochs": 1, "validation": {"criterion": "accuracy"}}
    assert Recipe.read(tables, "the test").batching == BatchingConfig(max_length=4094)
    tables["batching"] = {"max_tokens": 1000}
    whole = Recipe.read(tables, "the test")
    assert whole.batching == BatchingConfig(max_tokens=1000, max_length=998)
    assert Recipe.read(whole.tables(), "the test") == whole
    tables["batching"] = {"max_length": 30}
    assert Recipe.read(tables, "the test").batching.max_length == 30
    assert Recipe.read({**TABLES}, "the test").batching.max_length == 256


def classifier(**batching: int) -> Recipe:
    data = {"kind": "labelled", "train": "t.jsonl", "held_back": 0.1}
    training = {"max_epochs": 1, "validation": {"criterion": "accuracy"}}
    tables = {"data": data, "model": {"kind": "classifier"}, "training": training}
    return Recipe.read({**tables, "batching": batching}, "the test")


@pytest.mark.parametrize(
    ("tokens", "longest"), [(3, 1), (200, 198), (257, 255), (258, 256), (1000, 998)]
)
def test_a_text_with_a_label_may_fill_a_batch_where_nothing_else_bounds_it(
    tokens: int, longest: int
) -> None:
    whole = classifier(max_tokens=tokens)
    assert whole.batching == BatchingConfig(max_tokens=tokens, max_length=longest)
    assert classifier(max_tokens=tokens, max_length=longest) == whole
    with pytest.raises(
        AttlasError, match=rf"batching\.max_length of {longest} or less.*got {longest + 1};"
    ):
        classifier(max_tokens=tokens, max_length=longest + 1)


@pytest.mark.parametrize(("tokens", "most"), [(3, 1), (200, 198), (257, 255)])
def test_a_pair_that_fits_into_no_batch_is_reported_also_where_its_length_is_left_out(
    tokens: int, most: int
) -> None:
    said = rf"batching\.max_length of {most} or less, .* max_tokens = {tokens} \(the test\); got "
    with pytest.raises(AttlasError, match=f"{said}256, which it is when left out; lower"):
        Recipe.read({**TABLES, "batching": {"max_tokens": tokens}}, "the test")
    with pytest.raises(AttlasError, match=f"{said}{most + 1}; lower"):
        Recipe.read(
            {**TABLES, "batching": {"max_tokens": tokens, "max_length": most + 1}}, "the test"
        )
    fitting = Recipe.read(
        {**TABLES, "batching": {"max_tokens": tokens, "max_length": most}}, "here"
    )
    assert fitting.batching.max_length == most


def test_a_batch_of_258_tokens_holds_the_longest_pair_that_a_recipe_lets_pass_by_itself() -> None:
    assert (
        Recipe.read({**TABLES, "batching": {"max_tokens": 258}}, "here").batching.max_length == 256
    )


@pytest.mark.parametrize(
    ("name", "layers", "width", "heads", "feed_forward", "parameters"),
    [
        ("tiny", 3, 192, 4, 576, 3_640_000),
        ("long", 4, 128, 4, 256, 2_620_000),
        ("small", 3, 256, 4, 1024, 7_590_000),
        ("base", 6, 512, 8, 2048, 60_600_000),
    ],
)
def test_the_sizes_of_the_transformers_that_come_with_attlas(
    name: str, layers: int, width: int, heads: int, feed_forward: int, parameters: int
) -> None:
    made = read_recipe(name)
    config = made.model
    assert isinstance(config, TransformerConfig)
    assert (config.encoder_layers, config.decoder_layers) == (layers, layers)
    assert (config.embed_dim, config.num_heads, config.ffn_dim) == (width, heads, feed_forward)
    assert config.tie_source
    assert config.tie_output
    size = made.vocabulary.size
    with torch.device("meta"):
        model = build(config, size, size)
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(parameters, rel=0.005)


@pytest.mark.parametrize("name", ["nonsense", "nonsense.toml", "folder/demo.toml"])
def test_an_unknown_recipe_is_an_error_that_lists_those_there_are(name: str) -> None:
    with pytest.raises(AttlasError, match=f"use one of: {', '.join(SHIPPED)}$"):
        read_recipe(name)


def test_an_unknown_setting_names_the_recipe_and_the_nearest(tmp_path: Path) -> None:
    table = {**TABLES["training"], "learning_raet": 1}
    with pytest.raises(
        AttlasError,
        match=r"my\.toml; got `.*raet`; did you mean `training\.learning_rate`",
    ):
        read_recipe(written(tmp_path, training=table))
    with pytest.raises(
        AttlasError,
        match=r"in --set; got `.*raet`; did you mean `training\.learning_rate`",
    ):
        read_recipe(written(tmp_path), ["training.learning_raet=1"])


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({}, "an end of the training: max_epochs, max_steps or max_minutes"),
        ({"max_epochs": 0}, "greater than or equal to 1"),
        ({"max_epochs": 1, "learning_rate": float("inf")}, "finite"),
        ({"max_epochs": 1, "max_grad_norm": float("inf")}, "finite"),
        ({"max_minutes": float("inf")}, "finite"),
        ({"max_epochs": 1, "averaging": {"kind": "last", "count": 9}}, "keep_last of at least 9"),
        (
            {"max_epochs": 1, "validation": {"criterion": "bleu", "translate": False}},
            "translations to choose by bleu",
        ),
        (
            {"max_epochs": 1, "validation": {"decoding": {"num_beams": 3}}},
            r"method = 'beam' for num_beams.*got 'greedy'",
        ),
        (
            {"max_epochs": 1, "validation": {"bleu_tokenizer": "words"}},
            r"validation\.bleu_tokenizer",
        ),
        (
            {"max_epochs": 1, "scheduled_sampling": {"p": 0.5}},
            r"training\.scheduled_sampling\.kind",
        ),
    ],
)
def test_settings_that_make_no_sense_are_errors(training: dict[str, Any], message: str) -> None:
    with pytest.raises(AttlasError, match=message):
        Recipe.read({**TABLES, "training": training}, "the test")


@pytest.mark.parametrize(
    ("assignment", "named"),
    [
        ("data.train=3", r"got `data\.train`, which is of kind = 'files' or 'toy' or"),
        (
            "training.scheduled_sampling.kind=linear",
            r"expected `training\.scheduled_sampling\.slope` in",
        ),
        ("model.hidden_dim=wide", r"expected `model\.hidden_dim` in"),
    ],
)
def test_an_error_names_the_setting_as_set_takes_it(assignment: str, named: str) -> None:
    with pytest.raises(AttlasError, match=named):
        read_recipe("demo", [assignment])


def test_one_setting_of_the_validations_search_leaves_the_others_as_they_are() -> None:
    before = read_recipe("demo").training.validation.decoding
    after = read_recipe("demo", ["training.validation.decoding.max_len_a=2"])
    assert after.training.validation.decoding == before.model_copy(update={"max_len_a": 2.0})
    assert before.method == "greedy"
    wide = ["training.validation.decoding.method=beam", "training.validation.decoding.num_beams=3"]
    assert read_recipe("demo", wide).training.validation.decoding == DecodingConfig(num_beams=3)


def test_a_tokenizer_that_is_not_installed_is_reported_before_the_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bleu_tokenizer, "find_spec", lambda name: None)
    with pytest.raises(AttlasError, match=r"pip install 'sacrebleu\[ja\]'"):
        read_recipe("demo", ["training.validation.bleu_tokenizer=ja-mecab"])
    requested = read_recipe("demo", ["training.validation.bleu_tokenizer=char"])
    assert requested.training.validation.bleu_tokenizer == "char"


def test_a_validation_scores_with_the_tokenizer_of_its_recipe(tmp_path: Path) -> None:
    reported: list[Event] = []
    train(recipe(2, validation={"bleu_tokenizer": "char"}), tmp_path, report=reported.append)
    scored = [event for event in reported if isinstance(event, Validated)]
    assert scored
    assert all("tok:char" in (event.signature or "") for event in scored)


def test_a_recipe_written_is_the_recipe_read(tmp_path: Path) -> None:
    for name in SHIPPED:
        begun = read_recipe(name)
        (tmp_path / "config.toml").write_text(write_toml(begun.tables()))
        assert Recipe.read(read_toml(tmp_path / "config.toml"), "there") == begun


def configs(annotation: Any) -> Iterator[type[Config]]:
    """Every group of settings that can be reached from here."""
    if isinstance(annotation, type) and issubclass(annotation, Config):
        yield annotation
        for field in annotation.model_fields.values():
            yield from configs(field.annotation)
    for part in get_args(annotation):
        yield from configs(part)


def test_what_toml_cannot_say_is_what_a_setting_is_when_nothing_is_said() -> None:
    """A setting that is None is left out of a file, and has to be None when that is read."""
    lost = {
        f"{config.__name__}.{name}"
        for config in configs(Recipe)
        for name, field in config.model_fields.items()
        if type(None) in get_args(field.annotation) and field.default is not None
    }
    assert not lost


FREE = [
    "training.max_epochs=9",
    "training.max_minutes=1",
    "training.max_steps=5",
    "training.keep_last=1",
    "training.device=cpu",
    "training.threads=1",
    "training.validation.patience=2",
    "decoding.num_beams=2",
    "data.train=moved.tsv",
]
FIXED = [
    "seed=2",
    "training.learning_rate=1",
    "training.schedule.kind=inverse-square-root",
    "training.validation.every=5",
    "model.hidden_dim=3",
    "batching.max_tokens=500",
    "vocabulary.size=500",
]


@pytest.mark.parametrize("assignment", FREE)
def test_limits_and_places_may_change_when_a_run_goes_on(tmp_path: Path, assignment: str) -> None:
    path = written(tmp_path)
    check_same(read_recipe(path), read_recipe(path, [assignment]), tmp_path)


@pytest.mark.parametrize("assignment", FIXED)
def test_what_decides_the_weights_may_not(tmp_path: Path, assignment: str) -> None:
    path = written(tmp_path)
    with pytest.raises(AttlasError, match=assignment.partition("=")[0]):
        check_same(read_recipe(path), read_recipe(path, [assignment]), tmp_path)
