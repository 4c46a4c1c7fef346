"""JoeyNMT on the way to a good translation: `joeynmt.training.train`, as `joeynmt train` calls it.

The model, the vocabulary and the batches are the recipe's; Adam, and a rate that rises and then
falls with the square root, as in its own Transformer configurations. It does not validate.
"""

from typing import Any

import torch
from course import Course

course = Course()
torch.set_num_threads(course.threads)

from joeynmt.training import TrainManager, train  # noqa: E402
from joeynmt_config import config  # noqa: E402
from joeynmt_translator import Translator  # noqa: E402

ROWS = 64  # of a batch in the search
# Its own configurations rise to less and for longer, which a quarter of an hour would not see. The
# recipe's own would do it no good: they may be of another optimiser.
RATE, WARMUP = 2e-3, 400  # the highest rate, after so many updates
shape, training = course.recipe["model"], course.recipe["training"]
cfg = config("transformer", course.corpus, course.folder, course.recipe["batching"]["max_tokens"])
for part, layers in (("encoder", "encoder_layers"), ("decoder", "decoder_layers")):
    cfg["model"][part] |= {
        "num_layers": shape[layers], "num_heads": shape["num_heads"],
        "hidden_size": shape["embed_dim"],
        "ff_size": shape["ffn_dim"], "dropout": shape["dropout"],
        "layer_norm": shape["norm"],
    }  # fmt: skip
    cfg["model"][part]["embeddings"] |= {
        "embedding_dim": shape["embed_dim"], "dropout": shape["dropout"]
    }  # fmt: skip
cfg["training"] |= {
    "label_smoothing": training["label_smoothing"], "epochs": 10**6,
    "validation_freq": 2, "logging_freq": 2,
    "scheduling": "warmupinversesquareroot", "learning_rate": RATE, "learning_rate_min": 1e-9,
    "learning_rate_warmup": WARMUP,
}  # fmt: skip
search = course.reported["decoding"]
cfg["testing"] = {
    "batch_size": ROWS, "beam_size": search["num_beams"], "beam_alpha": search["length_penalty"],
}  # fmt: skip
translator = Translator(cfg, course.corpus)
translator(course.reported["sources"][:2])  # what cannot work should fail now, and not in two hours


def watched(self: Any, valid: Any) -> None:
    """In place of a validation, every second update: weights are kept where it is time."""
    course.updated(self.stats.steps, lambda path: torch.save(self.model.state_dict(), path))


def begun(self: Any, **data: Any) -> None:
    """The training's own loop, timed from its beginning."""
    course.begin()
    loop(self, **data)


loop, TrainManager.train_and_validate = TrainManager.train_and_validate, begun
TrainManager._validate = watched
torch.manual_seed(1)
if not course.trained:
    with course.training():
        train(rank=0, world_size=1, cfg=cfg, skip_test=True)


def translate(weights: str) -> list[str]:
    """The test set."""
    translator.model.load_state_dict(torch.load(course.folder / weights))
    return translator(course.reported["sources"])


course.translated(translate)
