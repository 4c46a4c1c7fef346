"""Train the shipped recipes with two versions of attlas, and compare the weights bit by bit.

python scripts/same_weights.py 61646db --recipes demo reverse tiny --steps 30
python scripts/same_weights.py 61646db --recipes multi30k imdb --data FOLDER

COMMIT is the other version; this one is the working tree. FOLDER holds the data of recipes that do
not come with theirs, by the names that the recipes give. A renamed setting or weight makes no
difference, because each version reads its own recipes, and weights are compared by type, shape and
bytes. The exit code is 1 where any differ.
"""

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import safetensors.torch

ROOT = Path(__file__).resolve().parents[1]
FORMER = {"updates", "rate"}  # settings that have other names now
Weight = tuple[str, tuple[int, ...], bytes]


def source_of(commit: str, folder: Path) -> Path:
    """The packages of a commit, unpacked in a folder."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "src"], check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        file.extractall(folder, filter="data")
    return folder / "src"


def steps_setting(source: Path, recipe: str) -> str:
    """What the number of updates is called in this version's recipe."""
    path = source / "attlas" / "recipes" / f"{recipe}.toml"
    training = tomllib.loads(path.read_text(encoding="utf-8"))["training"]
    return "updates" if FORMER & training.keys() else "max_steps"


def train(source: Path, recipe: str, steps: int, out: Path, data: Path) -> None:
    """Train a recipe for a few updates with the packages in `source`.

    Raises:
        SystemExit: If it fails, with what it printed.
    """
    command = [
        sys.executable, "-m", "attlas", "train", recipe, "--out", str(out),
        "--set", f"training.{steps_setting(source, recipe)}={steps}",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        command, cwd=data, env=environment, check=False, capture_output=True, encoding="utf-8"
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")


def weights_of(run: Path) -> Counter[Weight]:
    """The parameters of a run's last checkpoint."""
    path = max((run / "checkpoints").glob("[0-9]*.safetensors"))
    tensors = safetensors.torch.load_file(path)
    return Counter(
        (str(tensor.dtype), tuple(tensor.shape), tensor.numpy().tobytes())
        for name, tensor in tensors.items()
        if name.startswith("model.")
    )


def compare(other: Path, recipe: str, steps: int, data: Path, folder: Path) -> bool:
    """Train with both versions; print a line. Return True if all weights are equal."""
    found: list[Counter[Weight]] = []
    for source in (other, ROOT / "src"):
        out = folder / f"{recipe}-{len(found)}"
        train(source, recipe, steps, out, data)
        found.append(weights_of(out))
    before, after = found
    different = (before - after).total() + (after - before).total()
    verdict = "all equal" if not different else f"{different} are in one of them alone"
    print(f"{recipe}: {after.total()} weights after {steps} updates, {verdict}", flush=True)
    return not different


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the recipes. Return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", help="the other version")
    parser.add_argument("--recipes", nargs="+", default=["demo", "reverse", "tiny"])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--data", type=Path, default=Path(), help="where recipes find their data")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        other = source_of(options.commit, folder)
        data = options.data.resolve()
        same = [compare(other, r, options.steps, data, folder) for r in options.recipes]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
