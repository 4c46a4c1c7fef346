"""`train(recipe, folder)`: from a recipe to a run."""

from contextlib import ExitStack
from pathlib import Path

import torch

from attlas.errors import AttlasError
from attlas.runs import Shelf, locked
from attlas.runs.device import device_called, usable
from attlas.runs.durable import explained
from attlas.training.crew import crew_of, kernels_of
from attlas.training.events import Outcome, Report, silent
from attlas.training.fleet import Fleet, device_of_rank, fleet_of, launched
from attlas.training.following import follow
from attlas.training.initial import begin_with
from attlas.training.learner import Learner
from attlas.training.material import check_folder, joined, prepared
from attlas.training.recipe import Recipe
from attlas.training.seeds import seed_of
from attlas.training.sitting import sit
from attlas.training.tensorboard import summary_writer


def train(recipe: Recipe, folder: Path | str, *, report: Report = silent) -> Outcome:
    """Train until a limit of the recipe is reached; go on where an earlier sitting ended.

    A run that was stopped or killed at any moment and goes on ends with the weights, to the bit,
    of one that was never disturbed: on the CPU with the same number of threads; on a GPU as far as
    its kernels repeat themselves. A finished run whose limits are not raised is left as it is, and
    its outcome is told again. Started by torchrun, many processes train one model, and the first of
    them reports. On a CPU `attlas train` begins with `attlas.keep_freed_memory()`, which is for
    the whole process, and so for you to call.

    report: is told every `Event` of the training, as it happens; `Progress` shows them to people.

    Errors: `AttlasError` where the folder holds another run or is in use, where the data or a
    checkpoint is not what it was, where a loss is not finite, or where the disk refuses.
    `KeyboardInterrupt` on Ctrl-C, after the update under way is done and saved; on SIGTERM, too,
    where one process trains.
    """
    folder = Path(folder)
    if launched() and recipe.data.passing:
        raise AttlasError(
            "data that every process of this training can read",
            "the standard input, which comes once",
            "name files instead",
        )
    device = usable(device_of_rank(device_called(recipe.training.device)))
    with fleet_of(device) as fleet:
        return _trained(recipe, folder, report, device, fleet)


def _trained(
    recipe: Recipe, folder: Path, report: Report, device: torch.device, fleet: Fleet
) -> Outcome:
    """The same, in a frame whose learner is gone before the fleet is."""
    graphics = [device] if device.type == "cuda" else []
    with ExitStack() as held:
        if fleet.leads:
            if recipe.training.tensorboard and not Shelf(folder).begun():
                summary_writer()  # before hours of reading, not after
            splits = None if folder.exists() else recipe.data.load()  # if that fails, no new folder
            with explained(folder):
                folder.mkdir(parents=True, exist_ok=True)
            check_folder(folder)
            held.enter_context(locked(folder))
            task = prepared(recipe, folder, report, splits)
        fleet.agreed(0)  # the folder is there
        if not fleet.leads:
            task = joined(recipe, folder)
        held.enter_context(torch.random.fork_rng(graphics))
        torch.manual_seed(seed_of(recipe.seed, "weights"))
        with kernels_of(1):  # orthogonal matrices are rounded differently by two
            model = task.build()
        if not Shelf(folder).begun():
            begin_with(model, folder, report)
        threads = recipe.training.threads
        crew = held.enter_context(crew_of(threads, device, model, alone=fleet.size > 1))
        learner = Learner(model, recipe.training, recipe.seed, device, task.loss, crew, fleet)
        if fleet.leads:
            return sit(task, learner, folder, report)
        return follow(task, learner, folder)
