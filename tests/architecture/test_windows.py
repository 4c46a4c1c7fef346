"""What Windows lacks is not asked for when modules are loaded, and bytes stay as they are.

This is as far as it can be tried without a Windows.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import attlas
from attlas import _files
from attlas._files import WINDOWS, held, new_folder, write_durably

SOURCE = Path(attlas.__file__).parent
# Other packages may load their own modules of the system, so they are loaded before.
LOADED = """
import builtins, importlib, os, pkgutil, signal, sys
import attlas

def load():
    for module in pkgutil.walk_packages(attlas.__path__, "attlas."):
        if ".templates" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)

load()
for name in [name for name in sys.modules if name.partition(".")[0] == "attlas"]:
    del sys.modules[name]
plain = builtins.__import__

def without(name, globals=None, *rest, **named):
    asking = (globals or {}).get("__name__", "")
    if asking.startswith("attlas") and name in sys.argv[1].split():
        raise ImportError(f"{asking} asks for {name}")
    return plain(name, globals, *rest, **named)

builtins.__import__ = without
for module, names in ((signal, sys.argv[2]), (os, sys.argv[3])):
    for name in names.split():
        delattr(module, name)
import attlas
load()
from attlas._files import held
from attlas._hardware import peak_memory
from attlas.training.logging import MetricsFile
from pathlib import Path
folder = Path(sys.argv[4])
with held(folder / "lock") as ours, held(folder / "lock") as theirs:
    assert (ours, theirs) == (True, False)
(folder / "metrics.jsonl").write_bytes(b"one\\ntwo\\nthr")
with MetricsFile(folder / "metrics.jsonl", 100) as journal:
    assert journal.missing == 92
assert peak_memory()
print(len([name for name in sys.modules if name.partition(".")[0] == "attlas"]))
"""
MODULES = "fcntl resource termios tty pty pwd grp posix syslog crypt readline"
SIGNALS = "SIGPIPE SIGKILL SIGHUP SIGALRM SIGUSR1 SIGUSR2 SIGCHLD SIGQUIT SIGSTOP pthread_sigmask"
OF_SYSTEM = "fork register_at_fork pread pwrite getuid geteuid nice WNOHANG"


@pytest.mark.slow
def test_every_module_is_loaded_without_what_windows_lacks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOADED, MODULES, SIGNALS, OF_SYSTEM, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 150
    assert (tmp_path / "metrics.jsonl").read_bytes() == b"one\ntwo\n"


def calls(path: Path) -> list[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def named(call: ast.Call) -> str:
    return ast.unparse(call.func)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.stem)
def test_text_is_written_in_utf_8_and_its_lines_end_alike_everywhere(path: Path) -> None:
    for call in calls(path):
        given = {word.arg for word in call.keywords}
        where = f"{path}:{call.lineno}"
        if named(call).endswith(".write_text"):
            assert {"encoding", "newline"} <= given, where
        if named(call).endswith(".read_text"):
            assert "encoding" in given, where
        if named(call) == "open":
            mode = ast.unparse(call.args[1]) if len(call.args) > 1 else "'r'"
            assert "b" in mode or "encoding" in given, where
        if named(call) == "os.open":  # the others would have Windows change line feeds
            assert path.name in ("_files.py", "_output.py", "_process.py"), where


def test_a_file_is_whole_and_a_folder_new_where_folders_are_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "WINDOWS", True)
    write_durably(tmp_path / "file", b"a\r\nb\n")
    assert (tmp_path / "file").read_bytes() == b"a\r\nb\n"
    (tmp_path / "new").mkdir()
    plain = Path.rename

    def rename(self: Path, target: Path) -> Path:  # as Windows does
        if target.exists():
            raise FileExistsError(target)
        return plain(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with new_folder(tmp_path / "new") as begun:
        (begun / "part").write_bytes(b"part")
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["part"]


def test_a_lock_leaves_its_file_and_takes_one_of_an_older_version(tmp_path: Path) -> None:
    assert sys.platform == "win32" or not WINDOWS
    (tmp_path / ".lock").write_bytes(b"")
    with held(tmp_path / ".lock") as ours:
        assert ours
    assert (tmp_path / ".lock").exists()
