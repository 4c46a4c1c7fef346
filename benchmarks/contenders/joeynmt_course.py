"""JoeyNMT on the way to a good translation: `joeynmt.training.train`, as `joeynmt train` calls it.

The model, the vocabulary and the batches are the recipe's; Adam, and a rate that rises for 2,000
updates and then falls with the square root, as in its own Transformer configurations.
"""

from pathlib import Path
from typing import Any

import torch
from course import Course

course = Course()
torch.set_num_threads(course.threads)
torch.manual_seed(1)

from joeynmt.config import parse_global_args  # noqa: E402
from joeynmt.datasets import BaseDataset  # noqa: E402
from joeynmt.prediction import prepare  # noqa: E402
from joeynmt.search import search  # noqa: E402
from joeynmt.training import TrainManager, train  # noqa: E402
from joeynmt_config import config  # noqa: E402

ROWS, MOST = 64, 100  # of a batch in the search; tokens of a translation
shape, training = course.recipe["model"], course.recipe["training"]
cfg = config("transformer", course.corpus, course.folder, course.recipe["batching"]["tokens"])
for part, layers in (("encoder", "encoder_layers"), ("decoder", "decoder_layers")):
    cfg["model"][part] |= {
        "num_layers": shape[layers], "num_heads": shape["heads"], "hidden_size": shape["width"],
        "ff_size": shape["feedforward"], "dropout": shape["dropout"],
        "layer_norm": shape["placement"],
    }  # fmt: skip
    cfg["model"][part]["embeddings"] |= {
        "embedding_dim": shape["width"], "dropout": shape["dropout"]
    }  # fmt: skip
cfg["training"] |= {
    "label_smoothing": training["smoothing"], "epochs": 10**6,
    "validation_freq": 2, "logging_freq": 1,
    "scheduling": "warmupinversesquareroot", "learning_rate": 1e-3, "learning_rate_warmup": 2000,
    "learning_rate_min": 1e-9,
}  # fmt: skip
cfg["data"]["test"] = str(course.corpus / "test")


def watched(self: Any, valid: Any) -> None:
    """In place of a validation, every second update: weights are kept where it is time."""
    course.updated(self.stats.steps, lambda path: torch.save(self.model.state_dict(), path))


def begun(self: Any, **data: Any) -> None:
    """The training's own loop, timed from its beginning."""
    course.begin()
    loop(self, **data)


loop, TrainManager.train_and_validate = TrainManager.train_and_validate, begun
TrainManager._validate = watched
with course.training():
    train(rank=0, world_size=1, cfg=cfg, skip_test=True)

model, _, _, test = prepare(parse_global_args(cfg), rank=0, mode="train")
model.eval()
assert isinstance(test, BaseDataset)


def translate(weights: Path) -> list[str]:
    """The test set: its pieces, and the text that they spell."""
    model.load_state_dict(torch.load(weights))
    lines: list[str] = []
    loader = test.make_iter(
        batch_size=ROWS, pad_index=model.pad_index, eos_index=model.eos_index
    )  # fmt: skip
    with torch.inference_mode():
        for batch in loader:
            order = batch.sort_by_src_length()
            ids, _, _ = search(
                model=model, batch=batch, beam_size=5, n_best=1,
                beam_alpha=course.recipe["decoding"]["length_penalty"],
                max_output_length=MOST, min_output_length=1, generate_unk=True,
                return_attention=False, return_prob="none", repetition_penalty=-1,
                no_repeat_ngram_size=-1,
            )  # fmt: skip
            written = [
                "".join(pieces).replace("▁", " ").strip()
                for pieces in model.trg_vocab.arrays_to_sentences(ids, cut_at_eos=True)
            ]
            lines += [written[place] for place in order]
    return lines


course.translated(translate)
