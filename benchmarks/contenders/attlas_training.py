"""attlas: `train(recipe, folder)` and nothing more, with a pause between blocks.

`--model transformer:bf16` is the model "transformer" with `training.autocast = "bf16"`.
"""

from typing import Any

import options

settings, pace = options.read()

from attlas_models import endlessly  # noqa: E402

from attlas.training import train  # noqa: E402
from attlas.training.learner import Learner, Update  # noqa: E402

plain = Learner.update


def paced(self: Learner, *given: Any, **named: Any) -> Update:
    """An update; the first waits for the first block."""
    if not begun:
        begun.append(True)
        pace.begin()
    done = plain(self, *given, **named)
    pace.updated(done.tokens)
    return done


begun: list[bool] = []
Learner.update = paced  # type: ignore[method-assign]
model, _, autocast = settings.model.partition(":")
requested = endlessly(model, settings.corpus, settings.tokens, settings.threads, autocast or "none")
train(requested, settings.folder / "run")
