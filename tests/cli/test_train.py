"""`attlas train` and `attlas inspect`."""

import io
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from attlas.config import read_toml, write_toml
from attlas.errors import AttlasError
from attlas.runs import Run
from attlas.training import read_recipe, train
from support.command_line import called
from support.labelled_runs import tables


def test_a_recipe_becomes_a_run_in_the_folder_that_is_asked_for(
    recipe: Path, tmp_path: Path
) -> None:
    code, out, _ = called("train", recipe, "--out", tmp_path / "run")
    assert code == 0
    assert out == f"{tmp_path / 'run'} is ready; try: attlas look {tmp_path / 'run'}\n"
    assert Run(tmp_path / "run").checkpoints()


def test_a_run_is_called_after_its_recipe(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert called("train", recipe)[0] == 0
    assert Run("runs/tiny").checkpoints()


@pytest.mark.parametrize("way", ["run", "out", "both"])
def test_a_run_goes_on_with_what_it_was_begun_with(recipe: Path, tmp_path: Path, way: str) -> None:
    folder = tmp_path / "run"
    called("train", recipe, "--out", folder, "--set", "model.hidden_dim=9")
    how = {
        "run": [folder],
        "out": ["--out", folder],
        "both": [recipe, "--out", folder, "--set", "model.hidden_dim=9"],
    }[way]
    code, _, error = called("train", *how, "--set", "training.max_steps=5")
    assert code == 0, error
    assert "continuing after update 3" in error
    assert Run(folder).checkpoints()[-1] == "00000005"
    assert Run(folder).table("model")["hidden_dim"] == 9


def test_other_settings_for_a_run_that_is_there_say_how_to_go_on_and_how_to_begin_anew(
    recipe: Path, tmp_path: Path
) -> None:
    folder, other = tmp_path / "my run", tmp_path / "other"
    called("train", recipe, "--out", folder)
    changed = ["--set", "model.hidden_dim=9", "--set", "training.learning_rate=0.5"]
    code, _, error = called("train", recipe, "--out", folder, *changed)
    assert code == 2
    assert "model.hidden_dim = 9 instead of 8; training.learning_rate = 0.5 instead of " in error
    go_on = f"attlas train {shlex.quote(str(folder))}"
    assert f"to go on with that run, leave them as they were: {go_on};" in error
    assert "add --out FOLDER" in error
    assert called(*shlex.split(go_on)[1:])[0] == 0
    assert called("train", recipe, "--out", other, *changed)[0] == 0


def test_a_recipe_that_was_edited_where_it_stands_is_another_one(
    recipe: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    called("train", recipe, "--out", folder)
    before = (folder / "config.toml").read_text(encoding="utf-8")
    edited = before.replace("embed_dim = 8", "embed_dim = 5").replace(
        "max_steps = 3", "max_steps = 5"
    )
    assert edited.count("= 5") >= 2
    (folder / "config.toml").write_text(edited, encoding="utf-8")
    code, _, error = called("train", folder)
    assert code == 2
    assert "got model.embed_dim = 5 instead of 8; put these back" in error
    edited = before.replace("symbols = 8", "symbols = 8 ").replace("seed = 1", "seed = 2", 1)
    (folder / "config.toml").write_text(edited, encoding="utf-8")
    code, _, error = called("train", folder)
    assert "seed = 2 instead of 1; to go on with that run, put these back" in error
    assert f"in {folder / 'config.toml'}, then run: attlas train {folder};" in error
    (folder / "config.toml").write_text(before, encoding="utf-8")
    assert called("train", folder)[0] == 0


def test_another_recipe_does_not_touch_a_run(recipe: Path, tmp_path: Path) -> None:
    called("train", recipe, "--out", tmp_path / "run")
    code, _, error = called(
        "train", recipe, "--out", tmp_path / "run", "--set", "model.embed_dim=5"
    )
    assert code == 2
    assert "model.embed_dim = 5 instead of 8" in error
    assert "another folder: add --out FOLDER" in error


def test_without_a_recipe_the_demo_is_trained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from attlas.errors import AttlasError

    requested: list[object] = []

    def recorded(recipe: object, folder: Path, **_: object) -> None:
        requested.extend([recipe, folder])
        raise AttlasError("no more", "enough", "stop here")

    monkeypatch.setattr("attlas.training.train", recorded)
    monkeypatch.chdir(tmp_path)
    assert called("train")[0] == 2
    from attlas.training import read_recipe

    assert requested == [read_recipe("demo"), Path("runs/demo")]


@pytest.mark.parametrize("name", ["~nobody_here/x.tsv", "~my.tsv"])
@pytest.mark.parametrize("kind", ["files", "labelled"])
def test_of_a_user_who_does_not_exist_the_file_is_named_that_is_missing(
    recipe: Path, tmp_path: Path, kind: str, name: str
) -> None:
    own = tmp_path / "own.toml"
    table = tables(Path(name))
    if kind == "files":
        table = read_toml(recipe) | {"data": {"kind": kind, "train": name, "valid": name}}
    own.write_text(write_toml(table), encoding="utf-8")
    code, out, error = called("train", own, "--out", tmp_path / "run")
    assert (code, out) == (2, "")
    assert f"attlas: expected a text file; got no file at {tmp_path / name}; " in error


def test_an_unknown_recipe_names_those_there_are() -> None:
    code, _, error = called("train", "nonsense")
    assert code == 2
    assert "use one of: " in error
    assert {"demo", "imdb", "tiny"} <= set(error.partition("use one of: ")[2].strip().split(", "))


def test_a_misspelt_recipe_is_guessed() -> None:
    code, _, error = called("train", "dmeo")
    assert code == 2
    assert "did you mean 'demo'? use one of: " in error


@pytest.mark.parametrize("command", [("train",), ("inspect",), ("figure",)])
def test_a_model_of_hugging_face_is_no_run_and_the_commands_that_read_it_are_named(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    text = ("The cat.", "-o", tmp_path / "map.png") if command == ("figure",) else ()
    code, _, error = called(*command, tmp_path, *text)
    assert code == 2
    assert "a model of Hugging Face" in error
    assert "attlas look" in error


def test_a_wrong_setting_is_reported_before_anything_is_written(
    recipe: Path, tmp_path: Path
) -> None:
    code, _, error = called(
        "train", recipe, "--out", tmp_path / "run", "--set", "training.learning_rat=1e-3"
    )
    assert code == 2
    assert "did you mean `training.learning_rate`?" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        ("--epochs", "training.max_epochs"),
        ("--seed", "seed"),
        ("--lr", "training.learning_rate"),
        ("--num-beams", "decoding.num_beams"),
    ],
)
def test_an_option_that_is_a_setting_is_reported_how_to_write_it(option: str, setting: str) -> None:
    code, _, error = called("train", "tiny", option, "3")
    assert code == 2
    assert error.rstrip().endswith(f"{option}. It is a setting: write --set {setting}=…")


def test_inspecting_a_run_shows_what_is_in_it(run: Path) -> None:
    code, out, _ = called("inspect", run)
    assert code == 0
    model = Run(run).model()
    parts = {
        name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()
    }
    for name, count in parts.items():
        assert not count or re.search(rf"^{name} +{count:,}$", out, re.MULTILINE)
    together = sum(p.numel() for p in model.parameters())
    assert re.search(rf"^together +{together:,}$", out, re.MULTILINE)
    assert "hidden_dim = 8" in out
    assert re.search(r"^00000003 +best, last$", out, re.MULTILINE)
    assert re.search(r"^update 3 +loss \d", out, re.MULTILINE)


def test_inspecting_a_classifier_names_every_label_whole(labelling: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(labelling, tmp_path / "run"))
    shutil.rmtree(copied / "checkpoints")
    for pointer in ("best", "last"):
        (copied / pointer).unlink()
    names = [*(f"label {n:02}" for n in range(13)), f"z{' and so on' * 9}"]
    (copied / "labels.json").write_text(json.dumps(names), encoding="utf-8")
    code, out, error = called("inspect", copied)
    assert code == 0, error
    assert f" {', '.join(names)}\n" in out


def test_inspecting_a_recipe_shows_it_as_it_would_be_trained(recipe: Path) -> None:
    from attlas.training import Recipe, read_recipe

    code, out, _ = called("inspect", recipe, "--set", "model.hidden_dim=77")
    assert code == 0
    shown = Recipe.read(tomllib.loads(out), "what inspect shows")
    assert shown == read_recipe(recipe, ["model.hidden_dim=77"])


def test_settings_of_what_is_done_cannot_be_inspected_changed(run: Path) -> None:
    code, _, error = called("inspect", run, "--set", "model.hidden_dim=3")
    assert code == 2
    assert "expected --set for a recipe" in error


def test_data_from_the_standard_input_has_to_be_given_again(piped: Path, lines: str) -> None:
    more = ("train", piped, "--set", "training.max_steps=5")
    for other in ("", "1\t1\n"):
        code, _, error = called(*more, text=other)
        assert code == 2
        assert "standard input" in error
        assert "again" in error
    code, _, error = called(*more, text=lines)
    assert code == 0, error
    assert "continuing after update 3" in error


def test_what_takes_a_while_before_the_first_update_is_reported(
    recipe: Path, tmp_path: Path
) -> None:
    _, _, first = called("train", recipe, "--out", tmp_path / "run")
    assert "building vocabularies from the 300 training pairs, encoding" in first
    _, _, again = called("train", tmp_path / "run", "--set", "training.max_steps=4")
    assert "building" not in again
    assert "encoding the 300 training pairs" in again


def test_a_terminal_is_not_waited_on_for_data_that_came_from_a_pipe(
    piped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(AttlasError, match=r"came from the standard input; got a terminal.*again"):
        train(read_recipe(piped / "config.toml", ["training.max_steps=5"]), piped)


def test_inspect_says_whose_sentences_the_shipped_corpus_has(run: Path, tmp_path: Path) -> None:
    assert "Tatoeba" not in called("inspect", run)[1]
    copied = shutil.copytree(run, tmp_path / "copy")
    config = copied / "config.toml"
    tables = read_toml(config) | {"data": {"kind": "shipped"}}
    config.write_text(write_toml(tables), encoding="utf-8")
    code, out, error = called("inspect", copied)
    assert code == 0, error
    assert "CC BY 2.0 FR" in out


def test_a_folder_that_is_no_run_is_called_so(tmp_path: Path) -> None:
    code, _, error = called("train", tmp_path)
    assert code == 2
    assert f"got the folder {tmp_path} without config.toml" in error


def test_a_folder_called_as_a_recipe_does_not_hide_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    _, _, error = called("train", "demo", "--set", "nonsense=1")
    assert "without config.toml" not in error
    assert "nonsense" in error


def test_a_folder_called_as_a_recipe_hides_it_from_no_inspection(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = called("inspect", "multi30k")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "multi30k").mkdir()
    code, out, error = called("inspect", "multi30k")
    assert (code, error) == (0, "")
    assert tomllib.loads(out)["model"] == tomllib.loads(before[1])["model"]
    for command, expected, advice in (
        ("inspect", "a recipe, a run or a trace", "the folder of a run, or a trace's file"),
        ("train", "a recipe or a run", "or the folder of a run"),
    ):
        code, _, error = called(command, tmp_path)
        assert code == 2
        assert f"expected {expected}; got the folder {tmp_path} without config.toml" in error
        assert error.endswith(f" {advice}\n")


@pytest.mark.parametrize("name", ["taken", "taken/run", "lost"])
def test_a_file_where_the_run_should_be_asks_for_another_folder(
    recipe: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "taken").write_text("mine", encoding="utf-8")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    code, _, error = called("train", recipe, "--out", tmp_path / name)
    assert code == 2
    taken = tmp_path / name.partition("/")[0]
    assert (
        f"expected a folder for the run at {tmp_path / name}; got {taken}, which is no folder; "
        "choose another one with --out" in error
    )
    assert (tmp_path / "taken").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("same", [True, False])
def test_reports_of_the_same_files_say_which_set_they_tell_of(
    recipe: Path, tmp_path: Path, same: bool
) -> None:
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text("1 2\t2 1\n3 4\t4 3\n" * 9, encoding="utf-8")
    valid = tmp_path / ("a.tsv" if same else "b.tsv")
    data = {"kind": "files", "train": str(tmp_path / "a.tsv"), "valid": str(valid)}
    own = tmp_path / "own.toml"
    own.write_text(write_toml(read_toml(recipe) | {"data": data}), encoding="utf-8")
    code, _, error = called("train", own, "--out", tmp_path / "run")
    assert code == 0, error
    reported = [line.strip() for line in " ".join(error.split()).split("kept")]
    for name, path in (("train", tmp_path / "a.tsv"), ("valid", valid)):
        line = f"{path}: 18 of 18 pairs"
        assert any(one.endswith(f"{name}: {line}" if same else line) for one in reported)
        assert any(one.endswith(f"{name}: {line}") for one in reported) == same


def scores_told(run: Path) -> list[str]:
    code, out, error = called("inspect", run)
    assert code == 0, error
    return out.partition("# scores on the validation set\n")[2].split("\n\n")[0].splitlines()


def with_validations(run: Path, folder: Path, *validations: dict[str, object]) -> Path:
    """A copy of a run whose journal tells of these."""
    copied = Path(shutil.copytree(run, folder))
    same = {"event": "validated", "loss": 1.0, "checkpoint": "00000003"}
    lines = [json.dumps(same | validation) + "\n" for validation in validations]
    (copied / "metrics.jsonl").write_text("".join(lines), encoding="utf-8")
    return copied


def test_of_all_that_were_once_the_best_the_one_that_stands_is_marked(
    run: Path, tmp_path: Path
) -> None:
    reported = scores_told(
        with_validations(
            run, tmp_path / "copy",
            {"update": 1, "best": True, "checkpoint": "00000001"},
            {"update": 3, "best": True},
            {"update": 5, "best": False, "checkpoint": "00000005"},
        )
    )  # fmt: skip
    assert [line.endswith("best") for line in reported] == [False, True, False]


def test_the_signature_of_bleu_is_reported_once_unless_it_has_changed(
    run: Path, tmp_path: Path
) -> None:
    first = {"update": 1, "bleu": 1.5, "signature": "tok:13a|version:1"}
    same, other = first | {"update": 2}, first | {"update": 2, "signature": "tok:13a|version:2"}
    reported = scores_told(with_validations(run, tmp_path / "one", first, same))
    assert reported[-1] == "BLEU: tok:13a|version:1"
    assert "".join(reported).count("tok:") == 1
    reported = scores_told(with_validations(run, tmp_path / "two", first, other))
    assert ["(tok:13a|version:1)" in reported[0], "(tok:13a|version:2)" in reported[1]] == [
        True,
        True,
    ]
    assert len(reported) == 2


def test_a_run_from_before_origins_were_reported_is_opened_and_goes_on(
    recipe: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text.tsv"
    text.write_text("1 2\t2 1\n3 4\t4 3\n" * 9, encoding="utf-8")
    data = dict.fromkeys(("train", "valid", "test"), str(text)) | {"kind": "files"}
    own = tmp_path / "own.toml"
    own.write_text(write_toml(read_toml(recipe) | {"data": data}), encoding="utf-8")
    assert called("train", own, "--out", tmp_path / "run")[0] == 0
    config = tmp_path / "run" / "config.toml"
    tables = read_toml(config)
    assert tables["data"].pop("origin") == ""
    config.write_text(write_toml(tables), encoding="utf-8")
    for command in ("evaluate", "inspect"):
        code, _, error = called(command, tmp_path / "run")
        assert code == 0, error
    more = ("--set", "training.max_steps=5", "--set", "data.origin=the attic")
    code, _, error = called("train", tmp_path / "run", *more)
    assert code == 0, error
    assert "continuing after update 3" in error


def test_a_folder_whose_name_no_file_can_hold_is_reported_before_any_work(
    recipe: Path, tmp_path: Path
) -> None:
    folder = os.path.join(tmp_path, os.fsdecode(b"caf\xe9"))
    code, _, error = called("train", recipe, "--out", folder)
    assert code == 2
    assert "whose names are UTF-8" in error
    assert not os.path.exists(folder)


@pytest.mark.parametrize(
    ("name", "content", "advised"),
    [
        ("my.tsv", "a\tb\n", "write attlas train --pairs {}, or, if its texts have labels, "),
        ("my.tsv.gz", "", "attlas train --pairs {}"),
        ("my.csv", "a,b\n", "if its texts have labels, attlas train --labels {}"),
        ("my.jsonl", "{}\n", "to train on it, write attlas train --labels {}"),
        ("my text", "a b\n", "attlas train --pairs '{}'"),
    ],
)
def test_data_in_the_place_of_a_recipe_is_reported_which_option_takes_it(
    tmp_path: Path, name: str, content: str, advised: str
) -> None:
    (tmp_path / name).write_text(content)
    code, _, error = called("train", tmp_path / name, "--out", tmp_path / "run")
    assert code == 2
    assert f"got {tmp_path / name}, which is " in error
    assert advised.format(tmp_path / name) in error
    assert not (tmp_path / "run").exists()


def test_a_folder_of_texts_in_the_place_of_a_recipe_is_reported_which_option_takes_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "pos").mkdir()
    code, _, error = called("train", tmp_path)
    assert code == 2
    assert f"attlas train --labels {tmp_path}" in error


def test_the_data_of_a_shipped_recipe_are_replaced_by_their_kind(tmp_path: Path) -> None:
    pairs = tmp_path / "my.tsv"
    pairs.write_text("".join(f"{n} a\t{n} b\n" for n in range(60)))
    sets = (
        "data.kind=files", f"data.train={pairs}", "data.held_back=10", "data.valid=",
        "data.test=", "vocabulary.kind=words", "vocabulary.sampling=0",
        "model.kind=transformer", "model.embed_dim=8", "model.num_heads=2", "model.ffn_dim=8",
        "training.max_steps=2",
    )  # fmt: skip
    arguments = [part for one in sets for part in ("--set", one)]
    code, _, error = called("train", "multi30k", "--out", tmp_path / "run", *arguments)
    assert code == 0, error
    assert "attlas: model.kind = 'transformer': left out model.cell, model.hidden_dim" in error
    config = Run(tmp_path / "run").config
    assert (config["model"]["kind"], config["model"]["embed_dim"]) == ("transformer", 8)


def test_a_mistake_on_the_command_line_is_not_blamed_on_a_file(run: Path, recipe: Path) -> None:
    for arguments in (
        ("train", run, "--set", "training.learning_rate=fast"),
        ("train", run, "--set", "beam=3"),
        ("train", run, "--set", "training.averaging={kind='last', count=9}"),
        ("train", recipe, "--set", "batching.max_tokens=9", "--set", "batching.max_length=9"),
        ("translate", run, "--set", "decoding.num_beams=0"),
        ("translate", run, "--set", "decoding.num_beems=3"),
    ):
        code, _, error = called(*arguments, text="1\n")
        assert code == 2
        assert ".toml" not in error, error
        assert "--set" in error, error


@pytest.mark.parametrize("command", ["train", "translate"])
def test_a_setting_without_its_table_is_reported_where_it_stands(run: Path, command: str) -> None:
    for assignment in ("num_beams=3", "num_beems=3", "beam=3", "beams=3"):
        code, _, error = called(command, run, "--set", assignment, text="1\n")
        assert code == 2
        assert "did you mean `decoding.num_beams`" in error


@pytest.mark.parametrize(
    ("every", "reported"), [(9, "no checkpoint was saved"), (1, "checkpoint 0")]
)
def test_numbers_that_are_none_are_reported_with_the_checkpoint_that_there_is(
    recipe: Path, tmp_path: Path, every: int, reported: str
) -> None:
    sets = (
        "training.learning_rate=1e38",
        "training.max_grad_norm=0",
        f"training.save_every={every}",
    )
    sets += ("training.validation.every=9",)
    arguments = [part for one in sets for part in ("--set", one)]
    code, _, error = called("train", recipe, "--out", tmp_path / "run", *arguments)
    assert code == 2
    assert "expected a finite" in error
    assert reported in error
    assert "before it" in error


def test_a_training_begins_with_the_weights_of_another_run(run: Path, tmp_path: Path) -> None:
    new = tmp_path / "tuned"
    again = ("train", "--init-from", run, "--out", new)
    code, _, error = called(*again, "--set", "training.max_steps=4")
    assert code == 0, error
    assert f"begun with the weights of {run}, checkpoint " in error
    assert Run(new).provenance()["initial"]["run"] == str(run)
    for arguments, updates in ((again, 6), (("train", new), 8)):  # both go on with it
        assert called(*arguments, "--set", f"training.max_steps={updates}")[0] == 0
    code, _, error = called("train", run, "--init-from", run)
    assert code == 2
    assert "a folder for the run that --init-from begins" in error


def test_a_file_of_the_recipes_own_data_is_not_asked_for_where_the_data_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.tsv").write_text("a\tb\n" * 9)
    code, _, error = called("train", "tiny", "--set", "data.train=my.tsv")
    assert code == 2
    assert "multi30k" in error
    assert "the recipe's own data, and not of yours: --set data.valid= --set data.test=" in error
    code, _, error = called("train", "tiny", "--set", "data.train=my.tsv", "--set", "data.valid=x")
    assert "no file at" in error
    assert "own data" not in error
