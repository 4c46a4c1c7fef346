"""The script that records results."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "results.py"


def test_a_run_that_is_not_there_is_told_as_attlas_tells_it(tmp_path: Path) -> None:
    run = tmp_path / "nothere"
    command = [sys.executable, str(SCRIPT), "record", str(run)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("attlas: wanted")
    assert "Traceback" not in done.stderr
    assert str(run) in done.stderr
