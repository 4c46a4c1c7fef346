"""Settings: an unknown key, a wrong value and a missing one each say what to do."""

import shlex
import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, model_validator

from attlas._files import parse_json, utf8_text
from attlas.config import Config, drop_idle_settings, overridden, read_toml, write_toml
from attlas.config.base import nearest_settings
from attlas.errors import AttlasError
from attlas.training.recipe import Recipe


class Cat(Config):
    kind: Literal["cat"] = "cat"
    whiskers: int = 12


class Dog(Config):
    kind: Literal["dog"] = "dog"
    tail: float = 1.0


class Water(Config):
    salt: float = 0.0


class Fish(Config):
    kind: Literal["fish"] = "fish"
    water: Water
    tail: Literal["long", "short"] = "long"
    friends: tuple[str, ...] = ()


class Zoo(Config):
    name: str
    open: bool = True
    gates: tuple[float, float] = (0.0, 1.0)
    rate: Annotated[float, Field(gt=0)] = 1e-3
    animal: Annotated[Cat | Dog | Fish, Field(discriminator="kind")] = Cat()


def test_a_known_table_becomes_settings() -> None:
    zoo = Zoo.read({"name": "z", "animal": {"kind": "dog", "tail": 2}}, "zoo.toml")
    assert zoo == Zoo(name="z", animal=Dog(tail=2.0))


def test_an_unknown_key_names_the_nearest_valid_one() -> None:
    with pytest.raises(AttlasError, match=r"zoo\.toml; got `raet`; did you mean `rate`\?"):
        Zoo.read({"name": "z", "raet": 1}, "zoo.toml")


def test_a_setting_in_the_wrong_place_is_reported_where_it_belongs() -> None:
    fish = {"name": "z", "animal": {"kind": "fish", "water": {}}}
    with pytest.raises(AttlasError, match=r"got `salt`; did you mean `animal\.water\.salt`\?"):
        Zoo.read({**fish, "salt": 1}, "zoo.toml")
    dog = {"kind": "dog", "tail": 2.0}
    with pytest.raises(AttlasError, match=r"got `animal\.rate`; did you mean `rate`\?"):
        Zoo.read({"name": "z", "animal": {**dog, "rate": 1}}, "zoo.toml")
    # First where it stands by this very name, then what is written alike here.
    with pytest.raises(AttlasError, match=r"did you mean `rate` or `animal\.water`\?"):
        Zoo.read({"name": "z", "animal": {**fish["animal"], "rate": 1}}, "zoo.toml")
    # Not of another kind than there is, and not where it is anywhere.
    with pytest.raises(AttlasError, match=r"got `salt`; valid here"):
        Zoo.read({"name": "z", "animal": dog, "salt": 1}, "zoo.toml")
    with pytest.raises(AttlasError, match=r"got `tails`; valid here"):
        Zoo.read({"name": "z", "animal": dog, "tails": 1}, "zoo.toml")
    with pytest.raises(AttlasError, match=r"got `names`; did you mean `name`\?"):
        Zoo.read({"name": "z", "names": 1}, "zoo.toml")
    with pytest.raises(AttlasError, match=r"got `kind`; valid here"):
        Zoo.read({"name": "z", "kind": 1}, "zoo.toml")


def test_an_unknown_key_inside_a_union_is_matched_within_its_kind() -> None:
    with pytest.raises(AttlasError, match=r"did you mean `animal.whiskers`") as caught:
        Zoo.read({"name": "z", "animal": {"kind": "cat", "wiskers": 1}}, "zoo.toml")
    assert "tail" not in str(caught.value)


def test_a_wrong_value_is_named_with_its_place() -> None:
    with pytest.raises(AttlasError, match=r"`rate` in zoo\.toml.*greater than 0.*got -1"):
        Zoo.read({"name": "z", "rate": -1}, "zoo.toml")


@pytest.mark.parametrize(
    ("table", "reported"),
    [
        ({"rate": True}, "`rate` in zoo.toml: a number; got true;"),
        ({"rate": "5e-3"}, "`rate` in zoo.toml: a number; got '5e-3';"),
        ({"animal": {"kind": "cat", "whiskers": True}}, "whiskers` in zoo.toml: a whole number; "),
        ({"animal": {"kind": "cat", "whiskers": "2"}}, "a whole number; got '2';"),
        ({"animal": {"kind": "cat", "whiskers": 2.0}}, "a whole number; got 2.0;"),
        ({"open": "yes"}, "`open` in zoo.toml: true or false; got 'yes';"),
        ({"open": 1}, "true or false; got 1;"),
        ({"name": 3}, "`name` in zoo.toml: a text in quotes; got 3;"),
        ({"gates": 3}, "`gates` in zoo.toml: a list; got 3;"),
        ({"gates": [1.0]}, "`gates` in zoo.toml: one more value in the list; got a shorter list;"),
        ({"gates": [0, False]}, "`gates` in zoo.toml: a number; got false;"),
        ({"rate": [1, True]}, "`rate` in zoo.toml: a number; got [1, true];"),
        ({"rate": {"a": [date(2020, 1, 1)]}}, "a number; got {a = [2020-01-01]};"),
    ],
)
def test_a_value_of_another_type_is_never_converted(table: dict, reported: str) -> None:
    with pytest.raises(AttlasError) as caught:
        Zoo.read({"name": "z", **table}, "zoo.toml")
    assert reported in str(caught.value)


def test_a_value_that_is_valid_for_another_kind_names_that_kind() -> None:
    with pytest.raises(AttlasError) as caught:
        Zoo.read({"name": "z", "animal": {"kind": "dog", "tail": "long"}}, "zoo.toml")
    assert "choose animal.kind = 'fish', for which it is valid (now 'dog')" in caught.value.hint
    with pytest.raises(AttlasError) as caught:
        Zoo.read({"name": "z", "animal": {"kind": "dog", "tail": "wide"}}, "zoo.toml")
    assert caught.value.hint == "correct that value"


def test_whole_numbers_are_numbers_and_lists_are_tuples() -> None:
    zoo = Zoo.read({"name": "z", "rate": 2, "gates": [0, 3]}, "zoo.toml")
    assert (zoo.rate, zoo.gates) == (2.0, (0.0, 3.0))
    assert isinstance(zoo.rate, float)
    assert Zoo(name="z", rate=2, gates=[0, 3]) == zoo


@pytest.mark.parametrize("assignment", ["rate=true", "animal={ kind = 'dog', tail = true }"])
def test_a_wrong_value_from_the_command_line_is_said_to_come_from_there(assignment: str) -> None:
    with pytest.raises(AttlasError, match=r"in --set: a number; got true"):
        Zoo.read(overridden({"name": "z"}, [assignment]), "zoo.toml")
    with pytest.raises(AttlasError, match=r"`rate` in zoo\.toml: a number"):
        Zoo.read(overridden({"name": "z", "rate": "fast"}, ["open=true"]), "zoo.toml")


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(AttlasError, match=r"expected `name` in zoo\.toml; got nothing"):
        Zoo.read({}, "zoo.toml")


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"kind": "dog", "tail": "long"}, r"expected `animal\.tail` in zoo\.toml"),
        ({"kind": "cat", "wiskers": 1}, r"got `animal\.wiskers`; did you mean `animal\.whiskers`"),
        ({"kind": "fish"}, r"expected `animal\.water` in zoo\.toml; got nothing; add `water = …`"),
        ({"kind": "fish", "water": {"salt": "x"}}, r"expected `animal\.water\.salt` in"),
        (
            {"kind": "fish", "water": 3},
            r"expected `animal\.water` in zoo\.toml: a table of settings",
        ),
        ({"kind": "fish", "water": {}, "friends": ["a", 3]}, r"expected `animal\.friends` in"),
        ({"kind": "dog", "dog": 1}, r"got `animal\.dog`"),
        ({}, r"expected `animal\.kind` in zoo\.toml: one of 'cat', 'dog', 'fish'; got nothing"),
        ({"kind": "cow"}, r"expected `animal\.kind` in zoo\.toml: one of 'cat', .*; got 'cow'"),
        (3, r"expected `animal` in zoo\.toml: a table of settings; got 3; .*`animal\.… = …`"),
    ],
)
def test_an_error_names_a_setting_as_it_is_written(table: object, named: str) -> None:
    with pytest.raises(AttlasError, match=named):
        Zoo.read({"name": "z", "animal": table}, "zoo.toml")


def test_a_setting_left_over_from_another_kind_is_reported_from_an_unknown_one() -> None:
    table = overridden({"name": "z", "animal": {"kind": "cat", "whiskers": 3}}, ["animal.kind=dog"])
    with pytest.raises(AttlasError) as caught:
        Zoo.read(table, "zoo.toml")
    assert caught.value.got == "`animal.whiskers`, which is of kind = 'cat', beside kind = 'dog'"
    assert "write the whole group again: animal = { kind = …, … }" in caught.value.hint
    anew = overridden(table, ["animal={ kind = 'dog', tail = 2 }"])
    assert Zoo.read(anew, "zoo.toml").animal == Dog(tail=2.0)


class Bird(Config):
    kind: Literal["bird"] = "bird"
    whiskers: int = 0
    tail: str = "long"
    water: Water = Water()


class Aviary(Config):
    animal: Annotated[Cat | Dog | Fish | Bird, Field(discriminator="kind")] = Cat()
    other: Annotated[Cat | Dog, Field(discriminator="kind")] = Cat()

    @model_validator(mode="after")
    def _no_two_dogs(self) -> "Aviary":
        if isinstance(self.animal, Dog) and isinstance(self.other, Dog):
            raise AttlasError("one dog at most", "two", "change one of them")
        return self


def replaced(table: dict, *assignments: str) -> tuple[Aviary, tuple[str, ...]]:
    changed, reported = drop_idle_settings(Aviary, overridden(table, assignments))
    return Aviary.read(changed, "zoo.toml"), reported


def test_a_kind_from_the_command_line_makes_its_group_a_new_one() -> None:
    cat = {"animal": {"kind": "cat", "whiskers": 3}}
    found, reported = replaced(cat, "animal.kind=dog")
    assert found.animal == Dog()
    assert reported == ("animal.kind = 'dog': left out animal.whiskers, which was set for 'cat'",)
    # Whatever the order, what was put in as well stays, and what both kinds have alike.
    assert replaced(cat, "animal.tail=2", "animal.kind=dog")[0].animal == Dog(tail=2.0)
    assert replaced(cat, "animal.kind=bird") == (Aviary(animal=Bird(whiskers=3)), ())
    # A setting of the same name that takes other values is another one.
    dog = {"animal": {"kind": "dog", "tail": 2.0}}
    found, reported = replaced(dog, "animal.kind=bird")
    assert (found.animal, reported) == (
        Bird(),
        ("animal.kind = 'bird': left out animal.tail, which was set for 'dog'",),
    )
    fish = {"animal": {"kind": "fish", "water": {"salt": 0.5}, "friends": ["a"]}}
    assert "animal.water, animal.friends, which were set" in replaced(fish, "animal.kind=cat")[1][0]
    # The same kind again, a kind by default, a whole group, and an unknown kind.
    assert replaced(cat, "animal.kind=cat") == (Aviary(animal=Cat(whiskers=3)), ())
    assert replaced({"animal": {"whiskers": 3}}, "animal.kind=dog")[0].animal == Dog()
    assert replaced(cat, "animal={ kind = 'dog' }") == (Aviary(animal=Dog()), ())
    with pytest.raises(AttlasError, match=r"`animal\.kind` in --set: one of .*; got 'cow'"):
        replaced(cat, "animal.kind=cow")
    with pytest.raises(AttlasError, match=r"in --set; got `animal\.whiskers`, which is of"):
        replaced(cat, "animal.kind=dog", "animal.whiskers=3")


def test_what_the_file_alone_is_right_about_is_blamed_on_the_command_line() -> None:
    table = {"animal": {"kind": "cat"}, "other": {"kind": "dog"}}
    with pytest.raises(AttlasError, match=r"expected one dog at most \(--set\); got two"):
        replaced(table, "animal.kind=dog")
    with pytest.raises(AttlasError, match=r"expected one dog at most \(zoo\.toml\); got two"):
        replaced({**table, "animal": {"kind": "dog"}}, "animal.tail=3")
    with pytest.raises(AttlasError, match=r"a known setting in --set; got `wings`"):
        replaced(table, "wings=2")
    with pytest.raises(AttlasError, match=r"a known setting in zoo\.toml; got `wings`"):
        replaced({**table, "wings": 2}, "animal.whiskers=3")


@pytest.mark.parametrize(
    ("assignment", "meant"),
    [
        ("whiskers=3", "`animal.whiskers` or `other.whiskers`"),
        ("wiskers=3", "`animal.whiskers` or `other.whiskers`"),
        ("other.whisker=3", "`other.whiskers`"),
        ("Animal-Whiskers=3", "`animal.whiskers`"),
        ("ANIMAL.whiskers=3", "`animal`"),
        ("OTHER=3", "`other`"),
        ("anmal=3", "`animal`"),
    ],
)
def test_the_nearest_setting_is_named_in_whatever_table_it_stands(
    assignment: str, meant: str
) -> None:
    with pytest.raises(AttlasError) as caught:
        replaced({"other": {"kind": "cat"}}, assignment)
    assert f"did you mean {meant}? " in caught.value.hint


@pytest.mark.parametrize(
    ("key", "first"),
    [
        ("beam", "decoding.num_beams"),  # its old name
        ("beams", "decoding.num_beams"),  # a word of it, though `betas` is spelt more alike
        ("lr", "training.learning_rate"),
        ("layer", "model.decoder_layers"),
        ("max_updates", "training.max_steps"),  # fairseq's
        ("learning_rat", "training.learning_rate"),
    ],
)
def test_a_setting_is_found_by_its_old_name_by_a_word_of_it_and_by_its_initials(
    key: str, first: str
) -> None:
    table = {"model": {"kind": "transformer"}}
    assert nearest_settings(Recipe, key, table)[0] == first


def test_what_was_put_in_is_known_by_its_name_and_by_that_of_its_tables() -> None:
    changed = overridden({"a": {"b": 1}}, ["a.c=2", "d={e={f=3}}", "g=4"])
    named = {("a", "c"), ("d",), ("d", "e"), ("d", "e", "f"), ("g",)}
    assert changed.assigned == named
    anew = overridden({}, ["a.c=2", "a.d=3", "a={c=4}", "b={c=1}", "b.c=2"])
    assert anew.assigned == {("a",), ("a", "c"), ("b",), ("b", "c")}


def test_an_unknown_kind_is_an_error_that_lists_the_kinds() -> None:
    with pytest.raises(AttlasError, match=r"'cat', 'dog'"):
        Zoo.read({"name": "z", "animal": {"kind": "cow"}}, "zoo.toml")


def test_an_override_reaches_into_tables_and_keeps_the_original() -> None:
    table = {"training": {"learning_rate": 1.0}}
    changed = overridden(table, ["training.learning_rate=1e-3", "training.decay=linear", "seed=7"])
    assert changed == {"training": {"learning_rate": 1e-3, "decay": "linear"}, "seed": 7}
    assert table == {"training": {"learning_rate": 1.0}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("1", 1),
        ("1\nc = 2", "1\nc = 2"),
        ('"x"\nc = 2', '"x"\nc = 2'),
        ("1 # x", "1 # x"),
        ('"1 # x"', "1 # x"),
        ("[1, 2]", [1, 2]),
        ("1979-05-27", "1979-05-27"),
        ("07:32:00", "07:32:00"),
        ("1979-05-27T07:32:00Z", "1979-05-27T07:32:00Z"),
    ],
)
def test_what_is_no_single_value_of_a_setting_stays_the_text_that_it_is(
    text: str, value: object
) -> None:
    assert overridden({}, [f"a.b={text}"]) == {"a": {"b": value}}


@pytest.mark.parametrize(
    ("assignment", "reported"),
    [
        ("gates=[2020-01-01, 1]", "`gates` in --set: a number; got 2020-01-01;"),
        ("gates=[07:32:00, 1]", "`gates` in --set: a number; got 07:32:00;"),
        ("name=[2020-01-01T07:32:00]", "a text in quotes; got [2020-01-01T07:32:00];"),
        ("rate={ when = 2020-01-01 }", "a number; got {when = 2020-01-01};"),
        ("animal={ kind = 'dog', tail = 2020-01-01 }", "a number; got 2020-01-01;"),
        ("animal={ kind = 2020-01-01 }", "`animal.kind` in --set: "),
        (f"gates={'[' * 9_999}{']' * 9_999}", "`gates` in --set: a list; got '[[[["),
    ],
)
def test_nonsense_within_brackets_is_reported_as_it_was_written(
    assignment: str, reported: str
) -> None:
    with pytest.raises(AttlasError) as caught:
        Zoo.read(overridden({"name": "z"}, [assignment]), "zoo.toml")
    assert reported in str(caught.value)


@pytest.mark.parametrize("text", ["", "rate", "=3", "a..b=1"])
def test_an_override_without_key_or_value_is_an_error(text: str) -> None:
    with pytest.raises(AttlasError, match=r"--set table\.key=value"):
        overridden({}, [text])


def test_an_override_of_a_table_below_a_value_is_an_error() -> None:
    with pytest.raises(AttlasError, match=r"`seed` to be a table"):
        overridden({"seed": 1}, ["seed.deep=2"])


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3),
        st.recursive(
            st.integers(-(2**60), 2**60) | st.text() | st.booleans(),
            lambda inner: st.dictionaries(
                st.text("xyz", min_size=1, max_size=2), inner, max_size=3
            ),
        ),
        max_size=4,
    )
)
def test_toml_written_is_toml_read(tmp_path_factory: pytest.TempPathFactory, table: dict) -> None:
    path = tmp_path_factory.mktemp("toml") / "a.toml"
    path.write_text(write_toml(table), encoding="utf-8", newline="")
    assert read_toml(path) == table


def test_a_value_without_a_setting_is_left_out_of_the_file() -> None:
    assert write_toml({"a": None, "b": {"c": None, "d": 1}}) == "[b]\nd = 1\n"


def test_a_missing_and_a_broken_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(AttlasError, match=r"no file at .*nowhere\.toml"):
        read_toml(tmp_path / "nowhere.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("a = = 1", encoding="utf-8")
    with pytest.raises(AttlasError, match=r"valid TOML in .*broken\.toml"):
        read_toml(broken)
    broken.write_text(f"a = {'[' * 9_999}{']' * 9_999}", encoding="utf-8")
    with pytest.raises(AttlasError, match=r"settings in .*broken\.toml; got brackets within"):
        read_toml(broken)
    with pytest.raises(AttlasError, match=r"a readable TOML file at .*; got .*null"):
        read_toml(tmp_path / "a\0b.toml")


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_what_cannot_be_read_as_text_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "recipe.toml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(AttlasError) as caught:
        read_toml(path)
    assert caught.value.expected.endswith(str(path))
    assert ("Is a directory" if content is None else "byte 0xff") in caught.value.got


def test_a_byte_that_is_not_utf_8_is_named_with_its_line_and_its_place_there() -> None:
    """The place is that of an editor, which counts from 1."""
    before = "é = 1\n[data]\nkind = 'bü"
    reported = "byte 0xfc, which is not UTF-8, at byte 12 of line 3"
    content = before.encode() + b"\xfcro'\n"
    assert content.split(b"\n")[3 - 1][12 - 1] == 0xFC
    with pytest.raises(ValueError, match=f"^{reported}$"):
        utf8_text(content)
    with pytest.raises(ValueError, match=f"^{reported}$"):
        parse_json(content)
    assert utf8_text(b"\xef\xbb\xbf" + before.encode()) == before


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("[a,b]", '["a", "b"]'),
        ("[en text, 2]", '["en text", 2]'),
        ("[a, 'b,c', true]", """["a", 'b,c', true]"""),
        ("[[a], [b]]", '[["a"], ["b"]]'),
        ("{kind=files,train=[a.tsv,b.tsv]}", '{ kind = "files", train = ["a.tsv", "b.tsv"] }'),
        ("[it's]", """["it's"]"""),
    ],
)
def test_a_list_without_quotes_is_refused_and_shown_with_them(given: str, meant: str) -> None:
    """As a shell leaves data.columns=["a","b"], whose quotes it takes away."""
    with pytest.raises(AttlasError, match="have quotes") as caught:
        overridden({}, [f"data.columns={given}"])
    set_, assignment = shlex.split(caught.value.hint)[-2:]
    assert (set_, assignment) == ("--set", f"data.columns={meant}")
    (value,) = overridden({}, [assignment])["data"].values()
    assert value == tomllib.loads(f"value = {meant}")["value"]


def test_brackets_that_no_quotes_mend_are_refused_with_an_example() -> None:
    for text in ("{a}", "[1, ]]", f"[{'long ' * 100}]"):
        with pytest.raises(AttlasError, match="as TOML") as caught:
            overridden({}, [f"a.b={text}"])
        overridden({}, shlex.split(caught.value.hint)[-1:])
    assert overridden({}, ["data.train=[draft.tsv"]) == {"data": {"train": "[draft.tsv"}}


def test_comments_stand_beside_their_settings_and_change_no_value() -> None:
    table = {
        "seed": 1,
        "text": 'a # "b"\nc',
        "many": ["x, y", "z"],
        "none": None,
        "one.two": {"a b": 2.5, "inner": {"flag": True, "kinds": [[1, 2], []]}, "empty": {}},
    }
    comments = {
        "seed": "short",
        "text": "of two\nlines",
        "many": "long " * 40,
        "one.two.a b": "not a dotted name",
        "one.two.inner": "of a table",
        "one.two.inner.flag": "yes # or no",
    }
    text = write_toml(table, comments)
    assert tomllib.loads(text) == tomllib.loads(write_toml(table))
    lines = text.splitlines()
    assert "seed = 1  # short" in lines
    assert "flag = true  # yes # or no" in lines
    assert max(map(len, lines)) <= 100
    place = lines.index('many = ["x, y", "z"]')
    assert lines[place - 1].startswith("# long")
    assert '["one.two".inner]  # of a table' in lines
