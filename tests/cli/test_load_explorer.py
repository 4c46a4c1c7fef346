"""The script that asks a running explorer many things at once."""

import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "load_explorer.py"
load_explorer = SimpleNamespace(**runpy.run_path(str(SCRIPT)))


def test_only_an_answer_or_a_sentence_will_do() -> None:
    refused = {"expected": "a shorter text", "got": "a long one", "hint": "cut it"}
    assert load_explorer.is_a_sentence((200, {}))
    assert load_explorer.is_a_sentence((400, refused))
    assert load_explorer.is_a_sentence((503, refused))
    assert not load_explorer.is_a_sentence((400, {"expected": "a shorter text"}))
    assert not load_explorer.is_a_sentence((500, refused))


def test_texts_differ_and_have_so_many_words() -> None:
    texts = [load_explorer.text_of(number, 12) for number in range(10)]
    assert len(set(texts)) == 10
    assert {len(text.split()) for text in texts} == {12}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_a_small_run_stands_it(run: Path) -> None:
    command = [sys.executable, SCRIPT, run, "--readers", "6"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("6 readers in ")
    assert "{200: 18}" in lines[0]
    assert "3 abandoned; the next answer, 200" in lines[1]
    assert "the longest text that is taken has " in lines[2]
    assert lines[-1] == "every question was answered, or refused with a sentence"
