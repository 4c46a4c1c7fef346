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
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

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
    reported = [line for line in end if line.startswith("left out")]
    assert reported == [
        f"left out: 2 tests: {missing}: corpus",
        *([] if there else [f"left out: 1 test: {missing}: here"]),
    ]


SAMPLED = """
import pytest

def test_plain(): pass

@pytest.mark.exhaustive
def test_long(): assert False

@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", range(7))
def test_cases(case): assert case in (0, 3, 6)

@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", range(2))
def test_both(case): pass

@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", range(2))
def test_first(case): assert case == 0
"""


def test_a_sample_is_spread_evenly_and_all_is_run_without_the_option(tmp_path: Path) -> None:
    for name in ("conftest.py", "shape_checker.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "test_some.py").write_text(SAMPLED, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_some.py"]
    some, every = (
        subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True).stdout
        for words in (["--sampled"], [])
    )
    assert "7 passed, 6 deselected" in some
    assert "6 failed, 7 passed" in every


DYING = """
import os

def test_before(): pass
def test_dying(): os._exit(1)
def test_after(): pass
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", [1, 3])
def test_where_a_process_of_the_tests_dies_one_test_fails_and_all_others_run(
    tmp_path: Path, place: int
) -> None:
    tests = tmp_path / "attlas" / "tests"
    tests.mkdir(parents=True)
    for name in ("conftest.py", "shape_checker.py"):
        shutil.copy(ROOT / "tests" / name, tests)
    for number in range(4):
        content = DYING if number == place else "def test_alone(): pass\n"
        (tests / f"test_{number}.py").write_text(content, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", "--dist", "loadgroup",
         str(tests)],
        cwd=tests.parent, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert f"crashed while running 'tests/test_{place}.py::test_dying'" in done.stdout
    assert re.search(r"\b1 failed, 5 passed in", done.stdout), done.stdout


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
    pins = (
        line.partition(";")[0].strip().split("==")
        for line in lines
        if line and not line.startswith("#")
    )
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


# pip itself takes most of a minute to look through all versions of each package. Its session knows
# proxies, certificates and the index of this machine.
FILES = """
import json, re, sys
from pip._internal.commands import create_command

command = create_command("download")
with command.main_context():
    options, _ = command.parse_args(["--no-cache-dir", "--quiet", "attlas"])
    session = command.get_default_session(options)
    for pin in sys.argv[1:]:
        name, _, version = pin.partition("==")
        page = session.get(
            f"{options.index_url.rstrip('/')}/{name}/",
            headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.1"},
        )
        page.raise_for_status()
        if "json" in page.headers["Content-Type"]:
            files = [(f["url"], f["hashes"].get("sha256")) for f in page.json()["files"]]
        else:
            files = re.findall(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', page.text)
        of_version = re.compile(rf"/[^/]+-{re.escape(version)}(-[^/]+\\.whl|\\.tar\\.gz)$")
        print(json.dumps([pin, [file for file in files if of_version.search(file[0])]]))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_files_that_the_index_serves_have_the_hashes_of_the_lock_file() -> None:
    entries, tags = locked(), set(sys_tags())
    pins = sorted(constrained())
    done = subprocess.run([sys.executable, "-c", FILES, *pins], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{NOT_SERVED} (pip: {done.stderr.strip().splitlines()[-1][:200]})")
    compared = 0
    for pin, files in map(json.loads, done.stdout.splitlines()):
        # An index of one's own may serve a build of one's own, which PyPI does not have.
        served = {
            url.rpartition("/")[2]: sha256
            for url, sha256 in files
            if sha256 and "//files.pythonhosted.org/" in url
        }
        wheels = [name for name in served if name.endswith(".whl")]
        fitting = [name for name in wheels if not tags.isdisjoint(parse_wheel_filename(name)[3])]
        for name in fitting or served.keys() - set(wheels):
            assert served[name] in entries[pin], name
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


@pytest.mark.exhaustive
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
