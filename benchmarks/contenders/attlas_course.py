"""attlas on the way to a good translation: `train(recipe, folder)`, as `attlas train` calls it.

A training that has begun goes on, and one that is finished is left as it is.
"""

from pathlib import Path

import torch
from course import Course

course = Course()
torch.set_num_threads(course.threads)

from curve import chosen, of_training  # noqa: E402
from trained_run import numbers  # noqa: E402

from attlas._hardware import disable_malloc_trim  # noqa: E402
from attlas.decoding import DecodingConfig  # noqa: E402
from attlas.inference import Translator  # noqa: E402
from attlas.runs import CONFIG, Run  # noqa: E402
from attlas.training import Recipe, train  # noqa: E402
from attlas.training.events import Event, Validated  # noqa: E402


def reported(event: Event) -> None:
    """What was measured on the way."""
    course.awaited()
    if isinstance(event, Validated):
        scores = ", ".join([f"{event.update} updates", f"loss {event.loss:.3f}", *event.scores()])
        print(f"after {event.seconds / 60:.1f} min: {scores}", flush=True)


disable_malloc_trim()
folder = Path(course.reported["run"])
events = Run(folder).events() if (folder / CONFIG).is_file() else []
if not events or events[-1]["event"] != "finished":
    train(Recipe.read(course.recipe, "the benchmark"), folder, report=reported)
run = Run(folder)
course.points = chosen(of_training(run.events(), run.checkpoints()), course.moments)
if not course.points:
    raise SystemExit(f"expected checkpoints that were measured, in {folder}; none is left")
decoding = DecodingConfig.model_validate(course.reported["decoding"])


def translate(checkpoint: str) -> list[str]:
    """The test set."""
    found = Translator(run, decoding, checkpoint=checkpoint).stream(course.reported["sources"])
    return [translation.text for translation in found]


course.translated(translate, numbers=numbers(folder))
