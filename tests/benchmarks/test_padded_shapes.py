"""The script that counts the shapes of CUDA graphs."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "padded_shapes.py"


def test_it_counts_shapes_and_padding(tmp_path: Path) -> None:
    for side in ("en", "de"):
        lines = [" ".join(["word"] * length) for length in (1, 2, 3, 5, 8, 13, 21) * 30]
        (tmp_path / f"train.{side}").write_text("\n".join(lines), encoding="utf-8", newline="\n")
    files = [tmp_path / "train.en", tmp_path / "train.de"]
    command = [sys.executable, SCRIPT, *files, "--tokens", "300", "--vocabulary", "270"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("300 tokens: batches ")
    assert "padded shapes 5" in done.stdout
    assert "padding 0.0%" not in done.stdout
