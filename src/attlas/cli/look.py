"""`attlas look`: the explorer in the browser."""

from typing import Annotated

import typer

from attlas.cli.interrupt import loading
from attlas.cli.options import Beam, Checkpoint, Device, RunFolder, SearchSettings


def look(
    run: RunFolder,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen; 0 = any free port.")
    ] = 8642,
    host: Annotated[
        str, typer.Option(help="Who may look: 127.0.0.1 is this machine alone.")
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    beam: Beam = None,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
    settings: SearchSettings = None,
) -> None:
    """Open the explorer in the browser.

    Type a sentence, read its translation, see where the model looked. Everything stays on this
    machine. Ctrl-C ends it.

    \b
    Examples:
      attlas look runs/demo
      attlas look runs/demo --port 0 --no-browser
    """
    with loading():
        from attlas.cli.given import run_at
        from attlas.cli.searching import decoding_of
        from attlas.decoding import Translator
        from attlas.explorer import serve

    opened, checkpoint = run_at(run, checkpoint)
    translator = Translator(
        opened, decoding_of(opened, settings, beam), which=checkpoint, device=device
    )
    serve(
        translator,
        host=host,
        port=port,
        open_browser=browser,
        ready=lambda url: print(f"{url} shows {run}; Ctrl-C ends it", flush=True),
    )
