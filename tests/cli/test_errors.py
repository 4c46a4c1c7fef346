"""How the program ends, and what it says then."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
import torch
from typer.testing import CliRunner

from attlas.cli.main import app
from support.command_line import COMMANDS, called
from support.warm_processes import WarmProcess

ATTLAS = [sys.executable, "-m", "attlas"]


def test_no_help_imports_anything_heavy() -> None:
    code = f"""
import sys
from attlas.cli.main import app
for command in {[[], *(c.split() for c in COMMANDS)]!r}:
    try:
        app([*command, "--help"])
    except SystemExit as end:
        assert end.code == 0
heavy = {{"torch", "numpy", "matplotlib", "sentencepiece", "sacrebleu", "safetensors", "onnx",
    "ctranslate2"}}
sys.exit(", ".join(heavy & set(sys.modules)) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_shows_examples(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    _, _, examples = result.output.partition("Examples:")
    assert f"attlas {command}" in examples.partition("Arguments:")[0]


def test_no_line_of_a_help_is_wider_than_a_terminal() -> None:
    for command in ("", *COMMANDS):
        text = CliRunner().invoke(app, [*command.split(), "--help"], terminal_width=80).output
        assert [line for line in text.splitlines() if len(line) > 80] == []


def test_every_example_of_a_help_uses_options_that_exist() -> None:
    for command in COMMANDS:
        text = CliRunner().invoke(app, [*command.split(), "--help"]).output
        before, _, options = text.partition("Options:")
        examples = before.partition("Examples:")[2].partition("Arguments:")[0]
        assert [w for w in examples.split() if w.startswith("--") and w not in options] == []


def test_the_help_names_every_checkpoint_and_device_and_what_may_be_set() -> None:
    def said(command: str) -> str:
        return " ".join(CliRunner().invoke(app, [command, "--help"]).output.split())

    for command in ("translate", "evaluate", "figure", "look", "classify", "export"):
        assert '"best", "last", "averaged" or the number' in said(command)
        assert ('"cuda:1" or "auto"' in said(command)) is (command != "export")
        assert ("--set decoding.KEY=VALUE" in said(command)) is (command != "classify")
    for command in ("train", "inspect"):
        assert "--set TABLE.KEY=VALUE" in said(command)


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert CliRunner().invoke(app, ["--version"]).output == f"attlas {version('attlas')}\n"


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["translate"], ["translate", "r", "--num-beams", "0"], ["train", "--nonsense"]],
)
def test_a_wrong_call_is_the_callers_mistake(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("translate", "the folder of a run; got no folder at "),
        ("evaluate", "the folder of a run; got no folder at "),
        ("look", "a run, a trace, or a model of Hugging Face; got nothing at "),
        ("figure", "the folder of a run, or a trace's file; got nothing at "),
    ],
)
def test_no_run_is_the_callers_mistake(command: str, expected: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [command, str(tmp_path / "none")], input="")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"attlas: expected {expected}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["abacus", "meta", "mps"])
def test_a_device_that_computes_nothing_here_is_the_callers_mistake(run: Path, name: str) -> None:
    code, out, error = called("translate", run, "--device", name, text="1\n")
    assert (code, out, error.count("\n")) == (2, "", 1)
    expected = "attlas: expected a device that torch can use here (auto, cpu, cuda)"
    assert error.startswith(f"{expected}; got '{name}' (")
    assert len(error) < 400


def test_our_mistake_exits_with_1_and_says_how_to_report_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug\nin two lines")

    monkeypatch.setattr("attlas.jobs.translate_stream.translate_lines", broken)
    result = CliRunner().invoke(app, ["translate", str(run)], input="1\n")
    assert result.exit_code == 1
    assert "this is our mistake, not yours: RuntimeError: a bug in two lines." in result.stderr
    assert "attlas --debug" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "mistake",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to …"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
    ],
    ids=lambda mistake: type(mistake).__name__,
)
def test_a_want_of_memory_is_no_mistake_of_ours_and_says_what_takes_less(
    run: Path, monkeypatch: pytest.MonkeyPatch, mistake: Exception
) -> None:
    def large(*_: object, **__: object) -> None:
        raise mistake

    monkeypatch.setattr("attlas.jobs.translate_stream.translate_lines", large)
    code, _, error = called("translate", run, text="1\n")
    assert code == 2
    assert error.startswith("attlas: expected memory; got ")
    assert error.count("\n") == 1
    for setting in (
        "batching.max_tokens",
        "--window",
        "decoding.max_source_length for texts to translate",
    ):
        assert setting in error


@pytest.mark.parametrize("way", ["option", "environment"])
def test_debug_shows_the_traceback(way: str, tmp_path: Path) -> None:
    arguments = ["translate", str(tmp_path / "none")]
    result = CliRunner().invoke(
        app,
        ["--debug", *arguments] if way == "option" else arguments,
        env={"ATTLAS_DEBUG": "1"} if way == "environment" else {},
    )
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr


@pytest.mark.slow
def test_ctrl_c_exits_with_130(run: Path) -> None:
    streams = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
    with WarmProcess("translate", run, "--window", 1, **streams) as process:
        process.stdin.write("1 2\n")
        process.stdin.flush()
        process.stdout.readline()  # it is at work, and answers at once
        process.send_signal(signal.SIGINT)
        error = process.stderr.read()
    assert process.returncode == 130
    assert error.endswith("attlas: interrupted\n")
    assert "Traceback" not in error


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(run: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("1 2 3\n" * 20_000, encoding="utf-8")
    command = ("translate", run, "-i", text, "--window", 8, "--num-beams", 1)
    with WarmProcess(*command, stdout=PIPE, stderr=PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode == 0
    assert "Broken" not in error
    assert "Traceback" not in error


def test_text_is_utf8_whatever_the_locale() -> None:
    shown = "ä 日 \u2028"  # in the code as escapes: the locale is not to touch it on its way there
    code = f"from attlas.cli import main as a; a.app = lambda: print({shown!a}); a.main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    )
    assert done.stdout.decode("utf-8") == f"{shown}\n"


def single_options() -> list[tuple[str, str]]:
    """Each command, and each of its options that takes one value."""
    from typer.main import get_group

    return [
        (name, max(option.opts, key=len))
        for name, command in get_group(app).commands.items()
        for option in command.params
        if option.param_type_name == "option" and not option.multiple and not option.is_flag
    ]


@pytest.mark.parametrize(("command", "option"), single_options(), ids=" ".join)
def test_an_option_with_one_value_that_is_given_twice_is_an_error(
    command: str, option: str
) -> None:
    code, _, error = called(command, option, "1", option, "1")
    assert (code, error) == (
        2,
        f"attlas: expected {option} once; got it 2 times; leave the others out\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("translate", "nowhere", "--num-beams", f"{'9' * 100_000}x"),
        ("inspect", "x" * 100_000),
        ("evaluate", "nowhere", "--checkpoint", "x" * 100_000),
        ("stats", "nowhere", "nothing", "--by", "x" * 100_000, "-o", "out.csv"),
        ("export", "nowhere", "--to", "x" * 100_000),
        ("train", "x" * 100_000),
        ("look", "x" * 100_000),
        ("translate", f"--{'x' * 100_000}"),
        ("x" * 100_000,),
    ],
    ids=lambda arguments: arguments[0][:9],
)
def test_a_value_of_a_hundred_thousand_letters_is_reported_in_few(
    arguments: tuple[str, ...],
) -> None:
    code, _, error = called(*arguments)
    assert code == 2
    assert "our mistake" not in error
    assert len(error) < 5000


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["train", ""], "RECIPE"),
        (["train", "--out", ""], "--out"),
        (["train", "--init-from", "", "--out", "new"], "--init-from"),
        (["translate", ""], "RUN"),
        (["translate", "run", "-i", ""], "--input"),
        (["translate", "run", "a.txt", "", "--into", "new"], "FILES"),
        (["translate", "run", "a.txt", "--into", ""], "--into"),
        (["evaluate", "run", "--source", ""], "--source"),
        (["evaluate", "run", "--source", "a.txt", "--reference", ""], "--reference"),
        (["figure", "", "a text"], "RUN|TRACE"),
        (["figure", "run", "a text", "--save-trace", ""], "--save-trace"),
        (["look", ""], "RUN|TRACE"),
        (["stats", "run", ""], "CORPUS"),
        (["inspect", ""], None),
        (["export", "run", "--to", ""], "--to"),
        (["classify", "run", "--attention", ""], "--attention"),
        (["translate", "run", "--checkpoint", ""], "--checkpoint"),
    ],
)
def test_an_empty_name_is_not_taken_for_one_that_was_left_out(
    arguments: list[str], named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a shell gives it for a variable that is not set."""
    monkeypatch.chdir(tmp_path)
    code, out, error = called(*arguments)
    assert (code, out) == (2, "")
    assert f"expected a value for {named or ''}" in error
    assert "got an empty one" in error
    assert not [*tmp_path.iterdir()]
