"""attlas: `train(recipe, folder)`, as `attlas train` calls it, with a pause between blocks."""

from typing import Any

import options

settings, pace = options.read()

from attlas_models import MODELS  # noqa: E402

from attlas.training import Recipe, train  # noqa: E402
from attlas.training.learner import Learner, Update  # noqa: E402

NEVER = 10**6


def recipe() -> Recipe:
    """The settings of the model, and nothing but updates: no validation, no checkpoint."""
    files = [str(settings.corpus / f"{side}.txt") for side in ("source", "target")]
    valid = [str(settings.corpus / f"valid.{side}") for side in ("source", "target")]
    return Recipe.read(
        {
            "data": {"kind": "files", "train": files, "valid": valid},
            "vocabulary": {"kind": "bpe", "size": 8000, "joint": True},
            "batching": {"tokens": settings.tokens},
            "model": MODELS[settings.model],
            "training": {
                "updates": NEVER, "rate": 1e-4, "smoothing": 0.1, "save_every": NEVER,
                "threads": settings.threads, "validation": {"every": NEVER},
            },
        },
        "the benchmark",
    )  # fmt: skip


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
train(recipe(), settings.folder / "run")
