"""`attlas look`: the explorer in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import Checkpoint, Device, NumBeams, SearchSettings


def look(
    subject: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|TRACE|MODEL",
            help="A run, a trace that was saved, or a model of Hugging Face: its folder, or its "
            "name.",
        ),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of the server; 0 = any free port.")
    ] = 8642,
    host: Annotated[
        str,
        typer.Option(
            help="The address of the server; 127.0.0.1 can be reached from this machine only."
        ),
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    num_beams: NumBeams = None,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
    settings: SearchSettings = None,
    text: Annotated[
        str | None, typer.Option(help="The text that a run or a model reads, for --export.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write the page and what it shows as one file, and end.",
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Of --export: keep weights with 16 bits, not with 8.")
    ] = False,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="How many tokens a model of Hugging Face writes at most."),
    ] = None,
    download: Annotated[
        bool,
        typer.Option("--download", help="Fetch a model that is not on this machine by its name."),
    ] = False,
) -> None:
    """Open the explorer in the browser.

    With a run: type a sentence, read its translation or its label, and see where the model looked.
    With a model of Hugging Face and its tokenizer: type a text; an encoder reads it, a decoder goes
    on with it, and an encoder–decoder answers it. With a saved trace of any model: see where the
    model looked.

    No code of a model's folder runs. Nothing is sent to another machine, unless --download fetches
    a model. Ctrl-C ends the explorer.

    \b
    Examples:
      attlas look runs/demo
      attlas look runs/demo --port 0 --no-browser
      attlas look trace.safetensors
      attlas look models/bert-base-uncased
      attlas look trace.safetensors --export trace.html
      attlas look runs/demo --text "The cat is sleeping." --export cat.html
    """
    with loading():
        from attlas._output import check_replaceable
        from attlas.explorer import serve
        from attlas.explorer.backends import LabellingTranslator, TranslatorProtocol
        from attlas.explorer.notes import notes_path, read_notes
        from attlas.explorer.one_file import check_html, content_of, page_with, write
        from attlas.inference import TextClassifier, Translator
        from attlas.inference.huggingface import HuggingFaceModel
        from attlas.jobs.inputs import (
            check_distinct,
            check_nothing_searched,
            check_shown,
            check_used,
            decoding_of,
            model_folder_at,
            names_a_trace,
            run_at,
            trace_at,
        )
        from attlas.recording import Trace

    if export is None:
        check_used({"--text": text is not None, "--exact": exact}, "a server", "add --export")
    else:
        check_html(export)  # better reported before the work than after it
        check_replaceable(export)
        check_distinct([subject], [export])
    shown: TranslatorProtocol | Trace
    folder = model_folder_at(subject, download=download)
    if folder is None:
        reason = "it is for a model of Hugging Face"
        of_models = {"--max-new-tokens": max_new_tokens is not None, "--download": download}
        check_used(of_models, str(subject), reason)
    if folder is not None:
        of_runs = {
            "--num-beams": num_beams is not None,
            "--set": bool(settings),
            "--checkpoint": checkpoint != "best",
        }
        check_used(of_runs, "a model of Hugging Face", "it is searched greedily")
        shown = HuggingFaceModel(folder, device, max_new_tokens=max_new_tokens)
    elif names_a_trace(subject):
        check_nothing_searched(num_beams, settings, checkpoint, device)
        shown = trace_at(subject)
    else:
        check_shown(subject)
        opened_run, checkpoint = run_at(subject, checkpoint)
        if opened_run.classifies:
            searched = {"--num-beams": num_beams is not None, "--set": bool(settings)}
            check_used(searched, "a classifier", "it does not search")
            classifier = TextClassifier(opened_run, checkpoint=checkpoint, device=device)
            shown = LabellingTranslator(classifier)
        else:
            config = decoding_of(opened_run, settings, num_beams)
            shown = Translator(opened_run, config, checkpoint=checkpoint, device=device)
    if export is not None:
        notes = () if folder is not None else read_notes(notes_path(subject))
        content = content_of(shown, text, subject.name, "exact" if exact else "display")
        content = content.with_notes(notes)
        write(page_with(content), export)
        print(export)
        return
    serve(
        shown,
        name=subject.name,
        notes=None if folder is not None else notes_path(subject),
        host=host,
        port=port,
        open_browser=browser,
        ready=lambda url: print(f"{url} shows {subject}; Ctrl-C ends it", flush=True),
    )
