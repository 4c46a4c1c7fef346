"""One table of pairs, of which a part is held back: train, go on, evaluate."""

import json
from pathlib import Path

from attlas.runs import Run
from support.command_line import called


def test_one_table_is_trained_on_and_its_held_back_part_is_the_validation_set(
    recipe: Path, tmp_path: Path
) -> None:
    table = tmp_path / "my.tsv"
    lines = [f"{n % 8} {n % 7}\t{n % 7} {n % 8}\n" for n in range(60)]
    table.write_text("en\tde\n" + "".join(lines), encoding="utf-8")
    own = tmp_path / "own.toml"
    data = f'[data]\nkind = "files"\ntrain = "{table}"\nheld_back = 10\ncolumns = ["en", "de"]\n'
    rest = recipe.read_text(encoding="utf-8").partition("[vocabulary]")
    own.write_text(data + "".join(rest[1:]), encoding="utf-8")
    run = tmp_path / "run"
    code, _, reported = called("train", own, "--out", run)
    assert code == 0, reported
    assert "10 pairs held back" in " ".join(reported.split())
    code, out, reported = called("evaluate", run, "--valid", "--json")
    assert code == 0, reported
    assert "has changed" not in reported
    valid = Run(run).provenance()["data"]["valid"]
    report = json.loads(out)["data"]
    assert (report["sha256"], report["pairs"]) == (valid["sha256"], 10)
    assert report["name"] == f"{table}, held back (seed 1)"
    table.write_text("en\tde\n" + "".join(lines[:40]), encoding="utf-8")
    assert "has changed" in called("evaluate", run, "--valid")[2]


def test_without_a_test_set_the_validation_set_is_advised(recipe: Path, tmp_path: Path) -> None:
    table = tmp_path / "my.tsv"
    table.write_text("".join(f"{n}\t{n}\n" for n in range(1, 9)) * 3, encoding="utf-8")
    plain = recipe.read_text(encoding="utf-8").partition("[vocabulary]")
    own = tmp_path / "own.toml"
    data = f'[data]\nkind = "files"\ntrain = "{table}"\nvalid = "{table}"\ntest = "{table}"\n'
    own.write_text(data + "".join(plain[1:]), encoding="utf-8")
    parted = ("data.valid=", "data.test=", "data.held_back=0.25")
    settings = [word for one in parted for word in ("--set", one)]
    code, _, reported = called("train", own, "--out", tmp_path / "run", *settings)
    assert code == 0, reported
    code, _, reported = called("evaluate", tmp_path / "run")
    assert code == 2
    assert "or take the validation set with --valid" in reported
