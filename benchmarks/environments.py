"""An environment of its own for every peer that attlas does not share one with.

python benchmarks/environments.py    make those that are missing, and say what became of each

contenders/NAME.txt pins what a peer runs on. First come torch and NumPy, as attlas has them, then
the rest with `--no-deps`, because peers ask for versions of torch that have no CPU build any more.
A peer that does not install is a result as well: it is told, and never left out. Only what was made
is kept: what failed, perhaps for want of a network, is tried again by the next script.
"""

import hashlib
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE / ".peers"
CONSTRAINTS = HERE.parent / "constraints.txt"
SHARED = ("torch", "numpy")  # the versions that attlas runs on
TOOLS = ("setuptools", "wheel==0.48.0", "cython==3.3.1")  # fairseq is built here
MODULES = {
    "joeynmt": "joeynmt.training",
    "opennmt": "onmt.train_single",
    "fairseq": "fairseq_cli.train",
    "bertviz": "bertviz",
    "circuitsvis": "circuitsvis",
    "inspectus": "inspectus",
}


@dataclass(frozen=True)
class Environment:
    """python: its interpreter; None where `trouble` says why there is none."""

    python: str | None
    trouble: str | None
    versions: dict[str, str]


@cache  # what failed is not tried again for every table of a script
def environment(peer: str) -> Environment:
    """The environment of a peer, made unless it is there and its pins are what they were."""
    folder = ENVIRONMENTS / peer
    pins = HERE / "contenders" / f"{peer}.txt"
    stamp = ENVIRONMENTS / f"{peer}.json"
    shared = [f"{name}=={version(name)}" for name in SHARED]
    sum_ = hashlib.sha256("\n".join([*shared, pins.read_text(encoding="utf-8")]).encode())
    known = kept(stamp, sum_.hexdigest())
    if known is not None:
        return known
    print(f"making the environment of {peer} (some minutes)", file=sys.stderr)
    stamp.unlink(missing_ok=True)
    made = _made(folder, pins, shared, MODULES[peer])
    if made.python is not None:
        written = {"pins": sum_.hexdigest(), **asdict(made)}
        stamp.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return made


def kept(stamp: Path, pins: str) -> Environment | None:
    """What the stamp says was made by these pins, if it is still there."""
    if not stamp.is_file():
        return None
    known = json.loads(stamp.read_text(encoding="utf-8"))
    if known.pop("pins") != pins or not Path(known["python"] or "").is_file():
        return None
    return Environment(**known)


def _made(folder: Path, pins: Path, shared: list[str], module: str) -> Environment:
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = [
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [*install, "--constraint", str(CONSTRAINTS), *shared, *TOOLS],
        [*install, "--no-deps", "--no-build-isolation", "--requirement", str(pins)],
        [python, "-c", f"import {module}"],
    ]
    for step in steps:
        done = subprocess.run(
            step, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
        if done.returncode:
            trouble = reason(done.stderr) or f"{step[-1]}: exit code {done.returncode}"
            return Environment(None, f"does not install: {trouble}", {})
    listed = [python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    packages = json.loads(subprocess.run(listed, capture_output=True, check=True).stdout)
    return Environment(python, None, {one["name"]: one["version"] for one in packages})


def reason(errors: str) -> str | None:
    """The last line that speaks of an error: pip's very last is a hint; else the last of all."""
    said = [line.strip() for line in errors.splitlines() if line.strip()]
    spoken = [line for line in said if "error" in line.lower()] or said
    return spoken[-1] if spoken else None


if __name__ == "__main__":
    for name in MODULES:
        found = environment(name)
        print(f"{name}: {found.trouble or found.python}")
