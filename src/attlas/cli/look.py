"""`attlas look`: the explorer in the browser."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from attlas._signals import loading
from attlas.cli._options import Checkpoint, Device, NumBeams, SearchSettings
from attlas.errors import AttlasError


def look(
    subjects: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|TRACE|MODEL|WATCH...",
            help="A run, a trace that was saved, or a model of Hugging Face: its folder, or its "
            "name. Of several, the page shows one at a time, and compares two. Or a watch.jsonl.",
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
        str | None, typer.Option(help="The text that a run or a model reads first.")
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
    image: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="An image that a model of Hugging Face reads, such as a vision Transformer. "
            "Several: --image A --image B.",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Of a trace: the reference links of each of its texts, to see over the map; "
            'lines such as "0-0 1p2", or such as "1 1 1 S".',
        ),
    ] = None,
    gold_first: Annotated[
        int,
        typer.Option(
            min=0, max=1, help='The number of the first word in lines of --gold such as "0-0".'
        ),
    ] = 0,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="How many tokens a model of Hugging Face writes at most."),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where the tokenizer of a model of Hugging Face is, if not in its folder.",
        ),
    ] = None,
    download: Annotated[
        bool,
        typer.Option("--download", help="Fetch a model that is not on this machine by its name."),
    ] = False,
    cache: Annotated[
        bool,
        typer.Option(
            "--cache/--no-cache",
            help="Keep answers about traces in the folder .attlas-cache beside them.",
        ),
    ] = True,
) -> None:
    """Open the explorer in the browser.

    With a run: type a sentence, read its translation or its label, and see where the model looked.
    With a model of Hugging Face and its tokenizer: type a text; an encoder reads it, a decoder goes
    on with it, and an encoder–decoder answers it; of an image, see where a vision model looked.
    With a saved trace of any model: see where the model looked.
    With a watch.jsonl: see the heads of a training, while it goes on.

    No code of a model's folder runs. Nothing is sent to another machine, unless --download fetches
    a model. Ctrl-C ends the explorer, with exit code 0, or 2 if nothing could be shown.

    \b
    Examples:
      attlas look runs/demo
      attlas look runs/demo --port 0 --no-browser
      attlas look runs/demo --text "The cat is sleeping."
      attlas look trace.safetensors
      attlas look before.safetensors after.safetensors
      attlas look models/bert-base-uncased
      attlas look models/vit-base --image cat.jpg
      attlas look trace.safetensors --gold links.txt
      attlas look runs/demo/watch.jsonl
      attlas look trace.safetensors --export trace.html
      attlas look runs/demo --text "The cat is sleeping." --export cat.html
    """
    options: dict[str, Any] = {
        "num_beams": num_beams,
        "settings": tuple(settings or ()),
        "checkpoint": checkpoint,
        "device": device,
        "max_new_tokens": max_new_tokens,
        "download": download,
        "images": tuple(image or ()),
        "tokenizer": tokenizer,
    }
    if gold is not None or gold_first != 0:
        _check_gold_is_used(subjects, gold, export)
    if any(subject.suffix == ".jsonl" for subject in subjects):
        given = {"--text": text, "--export": export, "--exact": exact or None, "--gold": gold}
        _follow(subjects, options, given, host=host, port=port, browser=browser)
        return
    if export is not None:
        _export(subjects, options, text, export, exact)
        return
    with loading():
        from attlas.explorer.server import check_can_listen, serve_apis
        from attlas.explorer.sources import apis_of
        from attlas.jobs.sources import LookOptions, sources_of

        if text is not None or exact:
            from attlas.jobs.inputs import check_used, names_a_trace

            if any(names_a_trace(subject) for subject in subjects):
                check_used({"--text": text is not None}, "a trace", "its text is in the file")
            beside = {"--text": text is not None and bool(image)}
            check_used(beside, "a model that reads an image", "it reads no text")
            check_used({"--exact": exact}, "a page of a server", "it is for --export")
    check_can_listen(host, port)  # better reported before the work than after it
    sources = sources_of(subjects, LookOptions(**options), cache=cache)
    if gold is not None:
        with loading():
            from attlas.jobs.looking import with_gold
        sources = [with_gold(sources[0], gold, gold_first)]
    errors: list[AttlasError] = []

    def failed(error: AttlasError, requested: bool) -> None:
        errors.append(error)
        print(f"attlas: {error}", file=sys.stderr)
        if len(sources) == 1 and not requested:  # no page that says it
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C, which ends the server in order

    apis, begin = apis_of(sources, failed=failed)
    names = ", ".join(map(str, subjects))

    def ready(url: str) -> None:
        print(f"{url} shows {names}; Ctrl-C ends it", flush=True)
        begin()

    fragment = "" if text is None else f"text={quote(os.fsencode(text), safe='')}"
    serve_apis(apis, host=host, port=port, open_browser=browser, ready=ready, fragment=fragment)
    if len(errors) == len(sources):
        raise typer.Exit(2)


def _follow(
    subjects: Sequence[Path],
    options: Mapping[str, Any],
    given: Mapping[str, object],
    *,
    host: str,
    port: int,
    browser: bool,
) -> None:
    """Serve the page of a watch file."""
    with loading():
        from attlas.explorer.history import check_watch_file, history_site
        from attlas.explorer.server import serve_site
        from attlas.jobs.inputs import check_used
        from attlas.jobs.sources import LookOptions

    if len(subjects) > 1:
        raise AttlasError(
            "one watch file, alone", ", ".join(map(str, subjects)), "open a page for each"
        )
    (subject,) = subjects
    plain = LookOptions()
    used = {
        f"--{name.replace('_', '-')}": value != getattr(plain, name)
        for name, value in options.items()
    }
    used["--set"], used["--image"] = used.pop("--settings"), used.pop("--images")
    unused = {name: value is not None for name, value in given.items()}
    check_used(used | unused, "a watch file", "what it shows is in the file")
    check_watch_file(subject)

    def made(hosts: Sequence[str], token: str | None) -> Any:
        return history_site(subject, hosts, token=token)

    def ready(url: str) -> None:
        print(f"{url} shows {subject}; Ctrl-C ends it", flush=True)

    serve_site(made, host=host, port=port, open_browser=browser, ready=ready)


def _check_gold_is_used(subjects: Sequence[Path], gold: Path | None, export: Path | None) -> None:
    """Gold links belong to the texts of one trace, and to a server."""
    with loading():
        from attlas.jobs.inputs import check_used, names_a_trace

    if gold is None:
        check_used({"--gold-first": True}, "a page without links", "add --gold")
    check_used({"--gold": export is not None}, "--export", "the file takes no links")
    several = len(subjects) > 1
    owner = "a page of several" if several else str(subjects[0])
    unused = several or not names_a_trace(subjects[0])
    check_used({"--gold": unused}, owner, "its links belong to the texts of one trace")


def _export(
    subjects: Sequence[Path],
    options: Mapping[str, Any],
    text: str | None,
    export: Path,
    exact: bool,
) -> None:
    """Write the page and what it shows as one file."""
    with loading():
        from attlas._output import check_replaceable
        from attlas.explorer.notes import notes_path, read_notes
        from attlas.explorer.one_file import check_html, content_of, page_with, write
        from attlas.inference.huggingface import HuggingFaceModel
        from attlas.jobs.inputs import check_distinct
        from attlas.jobs.looking import opened
        from attlas.jobs.sources import LookOptions

    if len(subjects) > 1:
        raise AttlasError(
            "one run, trace or model to export", f"{len(subjects)}", "write a file for each"
        )
    (subject,) = subjects
    if text is None and (subject / "config.toml").is_file():
        raise AttlasError("a text to read", "none", "add --text")
    check_html(export)  # better reported before the work than after it
    check_replaceable(export)
    check_distinct([subject], [export])
    shown = opened(subject, LookOptions(**options))
    notes = () if isinstance(shown, HuggingFaceModel) else read_notes(notes_path(subject))
    content = content_of(shown, text, subject.name, "exact" if exact else "display")
    write(page_with(content.with_notes(notes)), export)
    print(export)
