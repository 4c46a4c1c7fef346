"""What searches: attlas itself, or an export of the run."""

from os.path import isdir
from pathlib import Path

from attlas.allocator import keep_freed_memory
from attlas.cli.interrupt import loading
from attlas.decoding import DecodingConfig, Translator
from attlas.errors import AttlasError, quoted
from attlas.runs import Run

_EXPORTS = ("ctranslate2", "ctranslate2-int8")  # as attlas export calls their folders


def translator_of(
    run: Run, engine: str, config: DecodingConfig, checkpoint: str, device: str
) -> Translator:
    """A translator of the run that searches by this engine: attlas, one of the run's exports, or an
    export in another folder.

    Errors: `AttlasError` for an unknown engine, for one that needs an export which is not there,
    and for a device that it cannot use.
    """
    if engine == "attlas":
        keep_freed_memory()  # every batch asks for the same again: a tenth of the time
        return Translator(run, config, which=checkpoint, device=device)
    folder = run.path / "exports" / engine if engine in _EXPORTS else Path(engine)
    if engine not in _EXPORTS and not isdir(folder):
        raise AttlasError(
            f"one of the engines attlas, {', '.join(_EXPORTS)}, or the folder of an export to "
            "ctranslate2",
            f"{quoted(engine, 1000)}, where no folder is",
            "choose one",
        )
    if device != "cpu":
        raise AttlasError(
            f"--device cpu with --engine {engine}", device, "leave one of the two out"
        )
    with loading():
        from attlas.exporting.fast_translator import FastTranslator

    return FastTranslator(run, folder, config, which=checkpoint)
