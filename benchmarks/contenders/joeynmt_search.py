"""JoeyNMT from text to text, with the weights of attlas."""

from itertools import repeat

import options

settings, pace = options.read()

import torch  # noqa: E402
from joeynmt_config import config  # noqa: E402
from joeynmt_translator import Translator  # noqa: E402
from joeynmt_weights import put_into  # noqa: E402

cfg = config(settings.model, settings.corpus, settings.folder, settings.tokens)
cfg["testing"] = {
    "batch_size": options.ROWS, "beam_size": settings.num_beams, "beam_alpha": 1.0,
    "max_output_length": -1,  # half as many tokens again as the longest source of a batch has
}  # fmt: skip
translator = Translator(cfg, settings.corpus)
put_into(translator.model, torch.load(settings.run / options.WEIGHTS))
for lines in pace.through(repeat(options.text(settings.corpus)), len):
    options.answer(settings.run, "JoeyNMT", lines, translator(lines))
