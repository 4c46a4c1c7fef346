"""`attlas look`: the explorer in the browser."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import Checkpoint, Device, NumBeams, SearchSettings


def look(
    subject: Annotated[
        Path, typer.Argument(metavar="RUN|TRACE", help="A run, or a trace that was saved.")
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
) -> None:
    """Open the explorer in the browser.

    With a run: type a sentence, read its translation, and see where the model looked. With a saved
    trace of any model: see where the model looked. Nothing is sent to another machine. Ctrl-C ends
    the explorer.

    \b
    Examples:
      attlas look runs/demo
      attlas look runs/demo --port 0 --no-browser
      attlas look trace.safetensors
    """
    with loading():
        from attlas.errors import UnsupportedError
        from attlas.explorer import serve
        from attlas.explorer.backends import TranslatorProtocol
        from attlas.inference import Translator
        from attlas.jobs.inputs import (
            check_nothing_searched,
            check_run_or_trace,
            decoding_of,
            names_a_trace,
            run_at,
            trace_at,
        )
        from attlas.recording import Trace

    shown: TranslatorProtocol | Trace
    if names_a_trace(subject):
        check_nothing_searched(num_beams, settings, checkpoint, device)
        shown = trace_at(subject)
    else:
        check_run_or_trace(subject)
        opened, checkpoint = run_at(subject, checkpoint)
        if opened.classifies:
            keep = f'attlas classify {quote(str(subject))} "a text" --attention text.safetensors'
            raise UnsupportedError(
                "a run that translates, or a trace",
                f"a classifier at {subject}",
                f"run: {keep}; then: attlas look text.safetensors",
            )
        config = decoding_of(opened, settings, num_beams)
        shown = Translator(opened, config, checkpoint=checkpoint, device=device)
    serve(
        shown,
        name=subject.name,
        host=host,
        port=port,
        open_browser=browser,
        ready=lambda url: print(f"{url} shows {subject}; Ctrl-C ends it", flush=True),
    )
