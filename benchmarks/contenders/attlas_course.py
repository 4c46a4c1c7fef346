"""attlas on the way to a good translation: `train(recipe, folder)`, as `attlas train` calls it."""

from pathlib import Path
from typing import Any

import torch
from course import Course

course = Course()
torch.set_num_threads(course.threads)

from attlas.data import FilesData  # noqa: E402
from attlas.decoding import DecodingConfig, Translator  # noqa: E402
from attlas.runs import Run  # noqa: E402
from attlas.training import Recipe, train  # noqa: E402
from attlas.training.learner import Learner, Update  # noqa: E402

NEVER = 10**6
tables = course.recipe
tables["training"] |= {"epochs": None, "updates": NEVER, "threads": course.threads}
tables["training"]["validation"] = {"every": NEVER, "translate": False}
tables["training"]["averaging"] = {"kind": "none"}
plain = Learner.update


learned: list[torch.nn.Module] = []


def watched(self: Learner, shares: Any, number: int) -> Update:
    """An update, and weights kept where it is time."""
    if number == 1:
        course.begin()
        learned.append(self.model)
    done = plain(self, shares, number)
    course.updated(number, lambda path: torch.save(self.model.state_dict(), path))
    return done


Learner.update = watched  # type: ignore[method-assign]
folder = course.folder / "run"
with course.training():
    train(Recipe.read(tables, "the benchmark"), folder)
splits = FilesData.model_validate(tables["data"]).load()
assert splits.test is not None
sources = [pair.source for pair in splits.test.pairs]
vocabularies = Run(folder).vocabularies()
(model,) = learned


def translate(weights: Path) -> list[str]:
    """The test set."""
    model.load_state_dict(torch.load(weights))
    config = DecodingConfig.model_validate(tables["decoding"])
    translator = Translator.of(model, vocabularies, config)  # type: ignore[arg-type]
    return [translation.text for translation in translator.many(sources)]


course.translated(translate)
