"""JoeyNMT: `joeynmt.training.train`, as `joeynmt train` calls it, with a pause between blocks."""

from collections.abc import Iterator
from typing import Any

import options

settings, pace = options.read()

from joeynmt.datasets import BaseDataset  # noqa: E402
from joeynmt.training import train  # noqa: E402
from joeynmt_config import config  # noqa: E402


class Paced:
    """A loader of batches, in step with the blocks."""

    def __init__(self, loader: Any) -> None:
        self.loader, self.batch_sampler = loader, loader.batch_sampler
        pace.begin()

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            tokens = batch.ntokens  # with END, without padding
            yield batch
            pace.updated(tokens)


made = BaseDataset.make_iter


def make_iter(self: Any, *given: Any, **named: Any) -> Any:
    """The training data's own loader, paced."""
    loader = made(self, *given, **named)
    return Paced(loader) if self.split == "train" else loader


BaseDataset.make_iter = make_iter
cfg = config(settings.model, settings.corpus, settings.folder, settings.tokens)
train(rank=0, world_size=1, cfg=cfg, skip_test=True)
