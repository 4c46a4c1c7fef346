"""JoeyNMT's search over untrained models, as `joeynmt translate` calls it, batch by batch."""

import options

settings, pace = options.read()

from itertools import chain, repeat  # noqa: E402

import torch  # noqa: E402
from joeynmt.config import parse_global_args  # noqa: E402
from joeynmt.prediction import prepare  # noqa: E402
from joeynmt.search import search  # noqa: E402
from joeynmt_config import config  # noqa: E402

args = parse_global_args(config(settings.model, settings.corpus, settings.folder, 4096))
model, _, data, _ = prepare(args, rank=0, mode="train")
model.eval()
loader = data.make_iter(
    batch_size=options.ROWS, pad_index=model.pad_index, eos_index=model.eos_index
)  # fmt: skip
with torch.inference_mode():
    for batch in pace.through(chain.from_iterable(repeat(loader)), lambda batch: batch.nseqs):
        batch.sort_by_src_length()
        found, _, _ = search(
            model=model, batch=batch, beam_size=settings.beam, beam_alpha=1.0, n_best=1,
            max_output_length=options.LENGTH, min_output_length=options.LENGTH,
            generate_unk=True, return_attention=False, return_prob="none",
            repetition_penalty=-1, no_repeat_ngram_size=-1,
        )  # fmt: skip
        assert found.shape[1] >= options.LENGTH, found.shape
