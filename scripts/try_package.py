"""Checks the archives of `make build`, and tries the wheel where nothing of the checkout is.

    python scripts/try_package.py dist [--uv PROGRAM]

It looks into the wheel and the source distribution, installs the wheel with the versions of
constraints.txt into an empty environment, trains and translates there, resolves every extra, and
with uv runs `attlas` as a tool. Exit code 1 and a sentence where something is missing.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
# What a package without it would lack at the first use, beside every Python file.
CARRIED = ("*.py", "*.toml", "py.typed", "data/shipped/*", "explorer/page/**/*")
SMALL = (
    "data.train=200", "data.length=[3, 5]", "model.embed_dim=8", "model.hidden_dim=8",
    "model.encoder_hidden_dim=8", "training.max_steps=4", "training.device=cpu",
)  # fmt: skip


class WrongError(Exception):
    """A sentence that says what is wrong with an archive."""


def expect(right: bool, sentence: str) -> None:
    """Raise `WrongError` with this sentence, unless `right`."""
    if not right:
        raise WrongError(sentence)


def archive_in(folder: Path, pattern: str) -> Path:
    """The one archive of this pattern."""
    found = sorted(folder.glob(pattern))
    expect(len(found) == 1, f"expected one {pattern} in {folder}; got {[p.name for p in found]}")
    return found[0]


def source_files() -> set[str]:
    """The files of the package in the checkout, as a wheel names them."""
    package = ROOT / "src" / "attlas"
    found = {path for pattern in CARRIED for path in package.rglob(pattern) if path.is_file()}
    return {f"attlas/{path.relative_to(package).as_posix()}" for path in found}


def check_wheel(path: Path) -> Message:
    """What the wheel holds; its metadata."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        read = Parser().parsestr(wheel.read(metadata).decode())
        tag = wheel.read(metadata.replace("METADATA", "WHEEL")).decode()
    missing = source_files() - names
    expect(not missing, f"the wheel lacks {sorted(missing)[:5]}")
    more = {name for name in names if not name.startswith("attlas/") and ".dist-info/" not in name}
    expect(not more, f"the wheel holds {sorted(more)[:5]}, which are not of the package")
    expect(not any("__pycache__" in name for name in names), "the wheel holds compiled files")
    expect("Tag: py3-none-any" in tag, "the wheel is not for every machine")
    return read


def check_metadata(metadata: Message) -> list[str]:
    """What an index asks for, and what pyproject.toml says; the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for field, expected in (
        ("Name", project["name"]),
        ("Version", project["version"]),
        ("Summary", project["description"]),
        ("Requires-Python", project["requires-python"]),
        ("License-Expression", project["license"]),
        ("Description-Content-Type", "text/markdown"),
    ):
        expect(metadata[field] == expected, f"expected {field}: {expected}; got {metadata[field]}")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    expect(
        str(metadata.get_payload()).strip() == readme.strip(), "its description is not README.md"
    )
    extras = sorted(metadata.get_all("Provides-Extra", []))
    expect(extras == sorted(project["optional-dependencies"]), f"it has other extras: {extras}")
    return extras


def check_sdist(path: Path) -> None:
    """Whether the source distribution can be built from."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {f"src/{name}" for name in source_files()}
    expected |= {"pyproject.toml", "README.md", "LICENSE", "src/attlas_build.py"}
    expect(expected <= names, f"the source distribution lacks {sorted(expected - names)[:5]}")
    more = [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]
    expect(not more, f"the source distribution holds {more[:5]}")


def run(*command: object, folder: Path, text: str = "") -> str:
    """The output of a command that ends with 0, in a folder outside of the checkout."""
    kept = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=kept, input=text, capture_output=True, text=True
    )
    words = " ".join(map(str, command))
    expect(done.returncode == 0, f"`{words}` ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def try_installed(program: Path, python: Path, folder: Path, version: str) -> None:
    """The commands of a first use."""
    place = run(python, "-c", "import attlas; print(attlas.__file__)", folder=folder)
    expect(Path(place.strip()).is_relative_to(folder), f"it imports {place.strip()}")
    expect(run(program, "--version", folder=folder).strip() == f"attlas {version}", "no --version")
    settings = [word for setting in SMALL for word in ("--set", setting)]
    run(program, "train", "reverse", "--out", "run", *settings, folder=folder)
    reported = run(program, "translate", "run", folder=folder, text="1 2 3\n\n4 5\n")
    expect(reported.count("\n") == 3, f"three lines came out as {reported!r}")
    run(program, "figure", "run", "1 2 3", "--output", "map.png", folder=folder)
    expect((folder / "map.png").read_bytes().startswith(b"\x89PNG"), "no figure")


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dist", type=Path, help="the folder of the two archives")
    parser.add_argument("--uv", type=Path, help="uv, to install and run attlas as a tool")
    given = parser.parse_args()
    try:
        wheel = archive_in(given.dist, "*.whl").resolve()
        metadata = check_wheel(wheel)
        extras = check_metadata(metadata)
        check_sdist(archive_in(given.dist, "*.tar.gz"))
        print("the archives are whole")
        with tempfile.TemporaryDirectory(prefix="attlas package ") as temporary:
            folder = Path(temporary).resolve()
            run(sys.executable, "-m", "venv", "venv", folder=folder)
            scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
            pip = [scripts / "python", "-m", "pip", "install", "--disable-pip-version-check"]
            pip += ["--quiet", "--constraint", CONSTRAINTS]
            run(*pip, wheel, folder=folder)
            try_installed(scripts / "attlas", scripts / "python", folder, metadata["Version"])
            print("the wheel works in an empty environment")
            run(*pip, "--dry-run", f"{wheel}[{','.join(extras)}]", folder=folder)
            print(f"its extras resolve: {', '.join(extras)}")
            if given.uv:
                uv = [given.uv.absolute(), "tool", "run", "--quiet", "--constraints", CONSTRAINTS]
                reported = run(*uv, "--from", wheel, "attlas", "--version", folder=folder)
                expect(
                    reported.strip() == f"attlas {metadata['Version']}",
                    f"uvx attlas says {reported!r}",
                )
                print("uv runs it as a tool")
    except WrongError as wrong:
        sys.exit(f"{wrong}")


if __name__ == "__main__":
    main()
