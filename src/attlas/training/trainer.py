"""`train(recipe, folder)`: from a recipe to a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from attlas.data import load_splits
from attlas.models import build
from attlas.runs import device_named, locked
from attlas.runs.durable import explained
from attlas.training.allocator import keep_freed_memory
from attlas.training.events import Outcome, Report, silent
from attlas.training.learner import Learner
from attlas.training.material import check_folder, prepared
from attlas.training.recipe import Recipe
from attlas.training.seeds import seed_of
from attlas.training.sitting import sit


def train(recipe: Recipe, folder: Path | str, *, report: Report = silent) -> Outcome:
    """Train until a limit of the recipe is reached; go on where an earlier sitting ended.

    A run that was stopped or killed at any moment and goes on ends with the weights, to the bit,
    of one that was never disturbed: on the CPU with the same number of threads; on a GPU as far as
    its kernels repeat themselves. A finished run whose limits are not raised is left as it is, and
    its outcome is told again.

    Errors: `AttlasError` where the folder holds another run or is in use, where the data or a
    checkpoint is not what it was, where a loss is not finite, or where the disk refuses.
    `KeyboardInterrupt` on Ctrl-C, after the update under way is done and saved.
    """
    folder = Path(folder)
    device = device_named(recipe.training.device)
    keep_freed_memory()
    splits = None if folder.exists() else load_splits(recipe.data)  # if that fails, no new folder
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    check_folder(folder)
    graphics = [device] if device.type == "cuda" else []
    with locked(folder), _threads(recipe.training.threads), torch.random.fork_rng(graphics):
        material = prepared(recipe, folder, report, splits)
        vocabularies = material.vocabularies
        torch.manual_seed(seed_of(recipe.seed, "weights"))
        model = build(recipe.model, len(vocabularies.source), len(vocabularies.target))
        learner = Learner(model, recipe.training, recipe.seed, device)
        return sit(material, learner, folder, report)


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Let torch use so many threads of the CPU for the length of the block; None: as it is."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
