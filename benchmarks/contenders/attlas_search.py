"""attlas from text to text, as `attlas translate` calls it."""

from itertools import repeat

import options

settings, pace = options.read()

from attlas._hardware import disable_malloc_trim  # noqa: E402
from attlas.decoding import DecodingConfig  # noqa: E402
from attlas.inference import Translator  # noqa: E402

disable_malloc_trim()
method = (
    {"method": "greedy"}
    if settings.num_beams == 1
    else {"method": "beam", "num_beams": settings.num_beams}
)
# As JoeyNMT's limit: half as many tokens again as the source has; at least one has to be added.
limits = {"max_len_a": 1.5, "max_len_b": 1}
translator = Translator(settings.run, DecodingConfig.model_validate(method | limits))
with translator.forked() as faster:
    for lines in pace.through(repeat(options.text(settings.corpus)), len):
        many = faster.stream(lines, window=len(lines), rows=options.ROWS)
        options.answer(settings.run, "attlas", lines, [translation.text for translation in many])
