"""What the explorer shows, opened: a run, a trace, or a model of Hugging Face."""

from dataclasses import replace
from pathlib import Path

from attlas.explorer.backends import LabellingTranslator, TranslatorProtocol, texts_of
from attlas.explorer.gold import check_gold, read_gold
from attlas.explorer.sources import ExplorerSource
from attlas.inference import TextClassifier, Translator
from attlas.inference.huggingface import HuggingFaceModel
from attlas.inference.huggingface_images import observe_images
from attlas.jobs.inputs import (
    check_nothing_searched,
    check_shown,
    check_used,
    decoding_of,
    model_folder_at,
    names_a_trace,
    run_at,
    trace_at,
)
from attlas.jobs.sources import LookOptions
from attlas.recording import Trace


def opened(path: Path, options: LookOptions) -> TranslatorProtocol | Trace:
    """What is at this path, or the model of this name.

    Raises:
        AttlasError: If there is none, if it is damaged, and for options that it has no use for.
    """
    folder = model_folder_at(path, download=options.download)
    searched = {"--num-beams": options.num_beams is not None, "--set": bool(options.settings)}
    if folder is not None:
        of_runs = {**searched, "--checkpoint": options.checkpoint != "best"}
        check_used(of_runs, "a model of Hugging Face", "it is searched greedily")
        if options.images:
            reader = "a model that reads an image"
            writes = {"--max-new-tokens": options.max_new_tokens is not None}
            check_used(writes, reader, "it writes nothing")
            check_used({"--tokenizer": options.tokenizer is not None}, reader, "it reads no text")
            return observe_images(folder, options.images, options.device)
        return HuggingFaceModel(
            folder,
            options.device,
            max_new_tokens=options.max_new_tokens,
            tokenizer=options.tokenizer,
        )
    of_models = {
        "--max-new-tokens": options.max_new_tokens is not None,
        "--download": options.download,
        "--image": bool(options.images),
        "--tokenizer": options.tokenizer is not None,
    }
    check_used(of_models, str(path), "it is for a model of Hugging Face")
    if names_a_trace(path):
        settings = [*options.settings]
        check_nothing_searched(options.num_beams, settings, options.checkpoint, options.device)
        return trace_at(path)
    check_shown(path)
    run, checkpoint = run_at(path, options.checkpoint)
    if run.classifies:
        check_used(searched, "a classifier", "it does not search")
        return LabellingTranslator(
            TextClassifier(run, checkpoint=checkpoint, device=options.device)
        )
    config = decoding_of(run, options.settings, options.num_beams)
    return Translator(run, config, checkpoint=checkpoint, device=options.device)


def with_gold(source: ExplorerSource, path: Path, first: int = 0) -> ExplorerSource:
    """The same trace with the links of annotators, and opened: its texts say whether they fit.

    Args:
        path, first: See `attlas.explorer.gold.read_gold`.

    Raises:
        AttlasError: As `read_gold`, for a damaged trace, and for links of other texts.
    """
    gold, trace = read_gold(path, first), source.open()
    check_gold(gold, len(texts_of(trace)))
    return replace(source, open=lambda: trace, gold=gold)
