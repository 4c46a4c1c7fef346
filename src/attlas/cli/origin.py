"""What a translation depends on, beside its text."""

from importlib.metadata import version

import torch

from attlas.cli.part import Origin
from attlas.decoding import Translator
from attlas.exporting.checksums import of_checkpoint, of_settings, of_vocabularies
from attlas.runs import Run


def origin_of(
    run: Run, checkpoint: str, translator: Translator, *, numbered: bool, window: int
) -> Origin:
    """What a change of would change a translation, but for the roundings of another machine."""
    vocabularies = translator.vocabularies
    settings = translator.config.model_dump(mode="json")
    engine = str(translator.facts.get("engine", "attlas"))
    library = {} if engine == "attlas" else {"ctranslate2": version("ctranslate2")}
    return {
        "attlas": version("attlas"),
        "torch": str(torch.__version__),
        "checkpoint": of_checkpoint(run, checkpoint, translator.model, vocabularies),
        "model": of_settings(run),
        "vocabularies": of_vocabularies(vocabularies),
        "engine": engine,
        **library,
        "device": translator.device.type,
        "n-best lists": numbered,
        "window": window,
        **{f"decoding.{key}": value for key, value in settings.items()},
    }
