"""The committed page is what its source builds, and its source passes its own checks."""

import fcntl
import gzip
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from attlas.explorer.openapi import description

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "explorer-ui"
PAGE = ROOT / "src" / "attlas" / "explorer" / "page"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.xdist_group("npm")]


def npm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["npm", *arguments], cwd=SOURCE, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture(scope="module")
def node() -> None:
    """Node and the page's build tools, installed from the lock file where they are not."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("Node is not installed")
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    version = tuple(int(part) for part in said.strip().lstrip("v").split(".")[:2])
    if not ((20, 19) <= version < (21, 0) or version >= (22, 12)):
        pytest.skip(f"Node {said.strip()} is too old (20.19 or 22.12 is needed)")
    # One at a time, where tests run in parallel; and again where the lock file has changed since.
    with open(Path(tempfile.gettempdir()) / "attlas-explorer-ui.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = SOURCE / "node_modules" / ".package-lock.json"
        expected = SOURCE / "package-lock.json"
        if installed.is_file() and installed.stat().st_mtime >= expected.stat().st_mtime:
            return
        done = npm("ci", "--no-audit", "--no-fund")
    if done.returncode:
        pytest.skip(f"`npm ci` failed: {done.stderr.strip()[-300:]}")


@pytest.mark.usefixtures("node")
def test_the_committed_page_equals_a_fresh_build(tmp_path: Path) -> None:
    done = npm("run", "build", "--", "--outDir", str(tmp_path / "page"))
    assert done.returncode == 0, done.stdout + done.stderr
    built = {file.name: file.read_bytes() for file in (tmp_path / "page").iterdir()}
    committed = {file.name: file.read_bytes() for file in PAGE.iterdir()}
    assert built.keys() == committed.keys()
    stale = [name for name in built if built[name] != committed[name]]
    assert stale == [], "run `npm run build` in explorer-ui and commit what it writes"


@pytest.mark.usefixtures("node")
def test_the_source_of_the_page_is_strictly_typed() -> None:
    done = npm("run", "check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("node")
def test_the_logic_of_the_page_passes_its_own_tests() -> None:
    done = npm("test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"^\S* ?pass (\d+)$", done.stdout, re.M)[-1]) > 0


@pytest.mark.parametrize("name", ["explorer.js", "file.js"])
def test_the_script_of_a_page_and_of_a_file_has_at_most_60_kb(name: str) -> None:
    assert len(gzip.compress((PAGE / name).read_bytes(), 9)) <= 60_000


def test_no_name_that_a_question_has_is_shortened() -> None:
    config = (SOURCE / "vite.config.ts").read_text(encoding="utf-8")
    listed = re.search(r"const own = `(.*?)`", config, re.DOTALL)
    assert listed is not None
    posted = {"translate": {"text", "prefix"}, "notes": {"text", "link"}}
    routes = {("post", f"/{path}"): names for path, names in posted.items()}
    for path, methods in description(list(routes))["paths"].items():
        schema = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert set(schema["properties"]) == routes["post", path]
        assert not routes["post", path] & set(listed[1].split())


def test_the_page_needs_nothing_at_run_time_and_builds_from_fixed_versions() -> None:
    package = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package
    for version in package["devDependencies"].values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    lock = json.loads((SOURCE / "package-lock.json").read_text(encoding="utf-8"))
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]


def test_no_source_of_the_page_has_more_than_600_lines() -> None:
    for file in (SOURCE / "src").iterdir():
        if file.suffix in (".ts", ".tsx"):
            assert len(file.read_text(encoding="utf-8").splitlines()) <= 600, file.name


def test_no_text_of_the_page_can_become_markup() -> None:
    for file in (SOURCE / "src").glob("*.ts*"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write", text
        )
