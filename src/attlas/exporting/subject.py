"""What is exported."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attlas.data import Vocabularies
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError
from attlas.models import SequenceToSequence, Transformer, TransformerConfig
from attlas.patterns import everywhere, parse
from attlas.runs import BEST, CONFIG, LAST, Run


@dataclass(frozen=True, slots=True)
class Subject:
    """One checkpoint of a run, opened: its model (evaluation mode) and what belongs to it.

    checkpoint: its own name, also where "best" or "last" was asked for.
    """

    run: Run
    checkpoint: str
    model: SequenceToSequence[Any]
    vocabularies: Vocabularies

    @classmethod
    def of(cls, run: Run | Path | str, which: str = BEST) -> "Subject":
        """Open a checkpoint; `AttlasError` where there is none, or where it is damaged."""
        run = run if isinstance(run, Run) else Run(run)
        name = run.shelf.named(which) if which in (BEST, LAST) else which
        # Where none is named yet, the run says it better.
        model = run.model(name or which)
        return cls(run, name or which, model, run.vocabularies())

    @property
    def weights(self) -> str:
        """The SHA-256 of the weights: their names and their bytes, in the order of the names."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(f"{name}\n".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def decoding(self) -> DecodingConfig:
        """How the run searches."""
        return DecodingConfig.read(self.run.table("decoding"), str(self.run.path / CONFIG))

    def transformer(self, taker: str) -> tuple[Transformer, TransformerConfig]:
        """The model and its settings; `AttlasError` for another kind, which `taker` cannot hold."""
        if not isinstance(self.model, Transformer):
            kind = self.run.table("model").get("kind")
            raise unfit(taker, 'a model of kind "transformer"', repr(kind))
        where = str(self.run.path / CONFIG)
        return self.model, TransformerConfig.read(self.run.table("model"), where)


def unfit(taker: str, wanted: str, came: str) -> AttlasError:
    """The error for a model that a format cannot hold."""
    return AttlasError(
        f"{wanted} for {taker}", came, "use --to safetensors, which holds every model"
    )


def check_sees_all(taker: str, config: TransformerConfig) -> None:
    """That every attention may look everywhere; `AttlasError` otherwise."""
    for pattern in (*config.encoder_patterns, *config.decoder_patterns):
        if parse(pattern) != everywhere:
            raise unfit(taker, "attention that may look everywhere", f"the pattern {pattern}")
