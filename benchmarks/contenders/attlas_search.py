"""attlas's search over untrained models, as `attlas translate` calls it, batch by batch."""

import options

settings, pace = options.read()

from itertools import chain, repeat  # noqa: E402

import torch  # noqa: E402
from attlas_models import MODELS  # noqa: E402
from pydantic import TypeAdapter  # noqa: E402

from attlas.data import padded  # noqa: E402
from attlas.decoding import DecodingConfig, decode  # noqa: E402
from attlas.models import ModelConfig, build  # noqa: E402

pieces = (settings.corpus / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
ids = {piece: id_ for id_, piece in enumerate(pieces, start=4)}
lines = (settings.corpus / "valid.source").read_text(encoding="utf-8").splitlines()
sources = sorted(([*(ids.get(piece, 1) for piece in line.split()), 3] for line in lines), key=len)
batches = [sources[i : i + options.ROWS] for i in range(0, len(sources), options.ROWS)]

config = TypeAdapter(ModelConfig).validate_python(MODELS[settings.model])
model = build(config, len(ids) + 4, len(ids) + 4).eval()
method = {"method": "greedy"} if settings.beam == 1 else {"method": "beam", "beam": settings.beam}
searching = DecodingConfig(
    **method, min_length=options.LENGTH, max_length_factor=0.0, max_length_constant=options.LENGTH
)
with torch.inference_mode():
    for rows in pace.through(chain.from_iterable(repeat(batches)), len):
        found = decode(model, *padded(rows), searching)
        assert all(len(best.tokens) >= options.LENGTH for best, *_ in found)
