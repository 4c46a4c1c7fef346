"""What searches: attlas itself, or an export of the run."""

from attlas.cli.interrupt import loading
from attlas.decoding import DecodingConfig, Translator
from attlas.decoding.allocator import keep_freed_memory
from attlas.errors import AttlasError
from attlas.runs import Run

_ENGINES = ("attlas", "ctranslate2", "ctranslate2-int8")


def translator_of(
    run: Run, engine: str, config: DecodingConfig, checkpoint: str, device: str
) -> Translator:
    """A translator of the run that searches by this engine.

    Errors: `AttlasError` for an unknown engine, for one that needs an export which is not there,
    and for a device that it cannot use.
    """
    if engine not in _ENGINES:
        raise AttlasError(f"one of the engines {', '.join(_ENGINES)}", repr(engine), "choose one")
    if engine == "attlas":
        keep_freed_memory()  # every batch asks for the same again: a tenth of the time
        return Translator(run, config, which=checkpoint, device=device)
    if device != "cpu":
        raise AttlasError(
            f"--device cpu with --engine {engine}", device, "leave one of the two out"
        )
    with loading():
        from attlas.exporting.fast_translator import FastTranslator

    return FastTranslator(run, run.path / "exports" / engine, config, which=checkpoint)
