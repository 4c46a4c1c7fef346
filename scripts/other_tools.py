"""Runs other tools with the attention of attlas, beside the same tools with "eager".

    python scripts/other_tools.py [NAME …]     bertviz, captum, inseq, kvpress, transformer_lens

Each tool is put into build/other_tools/NAME, without the packages that this environment has. There
the tests of tests/referees/test_other_tools.py import it. Exit code 1 and a sentence where a tool
does not install, or where a test fails or is left out.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "other_tools"
TESTS = "tests/referees/test_other_tools.py"
# The tool, and of what it needs the packages that attlas has not, or not in this version.
PACKAGES = {
    "bertviz": ("bertviz==1.4.1",),
    "captum": ("captum==0.9.0",),
    "inseq": ("inseq==0.7.1", "captum==0.9.0", "treescope==0.1.10", "typeguard==2.13.3"),
    "kvpress": (
        "kvpress==0.5.5", "accelerate==1.15.0", "cachetools==5.5.2", "fire==0.6.0",
        "huggingface-hub==1.33.0", "pandas==2.3.3", "peft==0.21.2",
        "python-dateutil==2.9.0.post0", "pytz==2026.6", "six==1.17.0", "termcolor==3.3.0",
        "tokenizers==0.22.2", "transformers==5.2.0",
    ),
    "transformer_lens": (
        "transformer-lens==4.3.0", "accelerate==1.15.0", "einops==0.8.2", "fancy-einsum==0.0.3",
        "typeguard==4.6.1",
    ),
}  # fmt: skip


def main() -> int:
    """Run the tests of each tool that is named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PACKAGES))
    names = parser.parse_args().names or list(PACKAGES)
    unknown = [name for name in names if name not in PACKAGES]
    if unknown:
        parser.error(f"expected some of {', '.join(PACKAGES)}; got {', '.join(unknown)}")
    results = {name: run(name) for name in names}
    for name, (said, _) in results.items():
        print(f"{name}: {said}")
    return 0 if all(passed for _, passed in results.values()) else 1


def run(name: str) -> tuple[str, bool]:
    """What to say of a tool, and whether all of its tests passed."""
    trouble = install(name)
    if trouble:
        return f"does not install: {trouble}", False
    path = [str(FOLDER / name), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-k", name, TESTS],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "ATTLAS_OTHER_TOOL": name,
        },
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    counts = re.findall(r"(\d+) (passed|failed|skipped|errors?)", done.stdout)
    said = f"{PACKAGES[name][0]}: {', '.join(' '.join(count) for count in counts) or 'no test ran'}"
    if {kind for _, kind in counts} == {"passed"} and done.returncode == 0:
        return said, True
    print(done.stdout[-8000:] + done.stderr[-2000:])
    return said, False


def install(name: str) -> str | None:
    """Put a tool into its folder, unless it is there; return what went wrong."""
    folder = FOLDER / name
    stamp = folder / "packages.txt"
    expected = "\n".join(PACKAGES[name])
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == expected:
        return None
    print(f"installing {PACKAGES[name][0]} into {folder.relative_to(ROOT)}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    options = "--quiet", "--disable-pip-version-check", "--no-deps"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", folder, *PACKAGES[name]],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        return (lines or ["pip failed"])[-1].strip()
    stamp.write_text(expected, encoding="utf-8")
    return None


if __name__ == "__main__":
    sys.exit(main())
