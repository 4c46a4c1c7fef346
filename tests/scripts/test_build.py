"""What is made of a checkout: equal archives, locked versions, and runs that say what is left."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")
NOT_SERVED = "the package index does not serve these files"  # as tests/conftest.py has it
LOCKS = ("constraints.txt", "requirements.lock")

TEST = """
def test_one(shared_data):
    assert (shared_data / "here").is_dir()

def test_two(shared_data):
    shared_data / "corpus" / "train.txt"

def test_three(shared_data):
    shared_data / "corpus" / "valid.txt"
"""
BUILD = "import attlas_build as backend, sys; print(backend.{}(sys.argv[1]))"


@pytest.mark.parametrize("there", [True, False])
def test_a_run_says_at_its_end_which_data_was_not_there(tmp_path: Path, there: bool) -> None:
    tests = tmp_path / "attlas" / "tests"
    tests.mkdir(parents=True)
    for name in ("conftest.py", "shape_checker.py"):
        shutil.copy(ROOT / "tests" / name, tests)
    (tests / "test_some.py").write_text(TEST, encoding="utf-8")
    if there:
        (tmp_path / "shared" / "data" / "here").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", str(tests)],
        cwd=tests.parent, env={**os.environ, "CI": "true"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    missing = "the shared data folder is not beside this checkout"
    end = done.stdout.split("short test summary info")[1].splitlines()
    told = [line for line in end if line.startswith("left out")]
    assert told == [
        f"left out: 2 tests: {missing}: corpus",
        *([] if there else [f"left out: 1 test: {missing}: here"]),
    ]


def locked() -> dict[str, list[str]]:
    """Of each package and version of the lock file the hashes of its files."""
    entries: dict[str, list[str]] = {}
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for line in text.replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            pin = re.match(r"[a-z0-9-]+==[^ ;]+", line)
            assert pin, line
            entries[pin[0]] = re.findall(r"--hash=sha256:([0-9a-f]{64})\b", line)
    return entries


def constrained() -> set[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {f"{re.sub('[-_.]+', '-', name).lower()}=={version}" for name, version in pins}


def test_the_lock_file_has_the_versions_of_the_constraints_and_a_hash_of_every_file() -> None:
    found = locked()
    assert all(found.values())
    names = {pin.partition("==")[0] for pin in constrained()}
    # Beside them it has what they need on machines of other kinds.
    assert {pin for pin in found if pin.partition("==")[0] in names} == constrained()


def test_the_lowest_versions_are_the_bounds_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert pins == sorted(bound.replace(">=", "==") for bound in project["dependencies"])


def test_the_lock_file_names_no_index_and_no_place_on_a_disk() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert not re.search(r"://|index-url|find-links|\s@\s|^-|/(opt|home|root|work)\b", text, re.M)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_files_that_the_index_serves_have_the_hashes_of_the_lock_file(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps",
         "--quiet", "--report", str(report), "--requirement", str(ROOT / "constraints.txt")],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"{NOT_SERVED} (pip: {done.stderr.strip().splitlines()[-1][:200]})")
    entries, compared = locked(), 0
    for item in json.loads(report.read_text(encoding="utf-8"))["install"]:
        meta, source = item["metadata"], item["download_info"]
        name = re.sub("[-_.]+", "-", meta["name"]).lower()
        hashes = source.get("archive_info", {}).get("hashes", {})
        # An index of one's own may serve a build of one's own, which PyPI does not have.
        if "sha256" in hashes and "//files.pythonhosted.org/" in source["url"]:
            assert hashes["sha256"] in entries[f"{name}=={meta['version']}"], name
            compared += 1
    if not compared:
        pytest.skip(f"{NOT_SERVED} of PyPI")


def built(folder: Path, hook: str, epoch: str | None, umask: int) -> Path:
    """The archive that a copy of the source becomes, made at another time by another user."""
    source, target = folder / "source", folder / "dist"
    target.mkdir(parents=True)
    before = os.umask(umask)
    try:
        ignored = shutil.ignore_patterns("*.egg-info", "__pycache__")
        shutil.copytree(ROOT / "src", source / "src", ignore=ignored, copy_function=shutil.copyfile)
        for name in (*PARTS, *LOCKS):
            shutil.copyfile(ROOT / name, source / name)
        environment = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
        environment |= {"PYTHONPATH": "src"} | (
            {} if epoch is None else {"SOURCE_DATE_EPOCH": epoch}
        )
        done = subprocess.run(
            [sys.executable, "-c", BUILD.format(hook), str(target)],
            cwd=source, env=environment, capture_output=True, text=True,
        )  # fmt: skip
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    (archive,) = target.iterdir()
    return archive


@pytest.mark.slow
@pytest.mark.parametrize("epoch", [None, "1700000000"])
@pytest.mark.parametrize("hook", ["build_wheel", "build_sdist"])
def test_two_builds_are_the_same_bytes(tmp_path: Path, hook: str, epoch: str | None) -> None:
    one = built(tmp_path / "one", hook, epoch, 0o022)
    time.sleep(2.1)  # a zip tells the time by two seconds
    stale = tmp_path / "a folder of another name"
    other = built(stale, hook, epoch, 0o077)
    assert one.name == other.name
    assert one.read_bytes() == other.read_bytes()
    if hook == "build_sdist":
        with tarfile.open(one) as archive:
            times = {member.mtime for member in archive.getmembers()}
            names = {member.name.partition("/")[2] for member in archive.getmembers()}
        assert times == {int(epoch or 315_532_800)}
        assert {*PARTS, *LOCKS, "src/attlas_build.py", "src/attlas/py.typed"} <= names
        return
    with zipfile.ZipFile(one) as wheel:
        assert wheel.testzip() is None
        names = set(wheel.namelist())
        when = time.gmtime(int(epoch or 315_532_800))[:6]
        assert {info.date_time for info in wheel.infolist()} == {(*when[:5], when[5] // 2 * 2)}
        record = wheel.read("attlas-0.1.0.dist-info/RECORD").decode()
    assert {line.split(",")[0] for line in record.splitlines()} == names
    assert not [name for name in names if name.startswith("attlas_build")]
