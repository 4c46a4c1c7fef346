"""`attlas classify`: texts in, labels out."""

from pathlib import Path
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import Checkpoint, Device, RunFolder


def classify(
    run: RunFolder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="What to classify, instead of the lines of --input."),
    ] = None,
    input: Annotated[
        str, typer.Option("--input", "-i", help='Texts, plain or gzipped; "-" = standard input.')
    ] = "-",
    output: Annotated[
        str, typer.Option("--output", "-o", help='The labels; "-" = standard output.')
    ] = "-",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line, with every label (see above).")
    ] = False,
    attention: Annotated[
        Path | None,
        typer.Option(
            help="Where the model looked: of a single text a trace (.safetensors) or a figure "
            "(.png, .svg, .pdf); of several a new folder, for a trace of each."
        ),
    ] = None,
    layer: Annotated[
        str | None, typer.Option(help="In the figure, draw only maps whose name begins with this.")
    ] = None,
    window: Annotated[
        int,
        typer.Option(
            min=1, help="How many texts are classified together at most. More are faster."
        ),
    ] = 512,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
) -> None:
    """Give each text a label.

    Each line of the input is a text. For each text, one line is written: the label, a tab, and the
    probability of the label. With --json, a line is an object with the probabilities of all labels.

    A line is classified as soon as it has arrived. Long texts are read whole. Two kinds of texts
    get a remark on the standard error: a text of which the model knows no word ("known" is false
    with --json), and a text that is longer than the model can read ("unread" counts the tokens
    that were left out).

    \b
    Examples:
      attlas classify runs/imdb "A lovely film." "What a bore."
      attlas classify runs/imdb < reviews.txt > labels.tsv
      attlas classify runs/imdb --json -i reviews.txt.gz
      attlas classify runs/imdb "A lovely film." --attention map.png
      attlas classify runs/imdb "A lovely film." --attention film.safetensors
      attlas classify runs/imdb -i reviews.txt --attention looks
      attlas figure looks/7.safetensors -o map.png
      attlas look film.safetensors
    """
    with loading():
        from attlas.inference import TextClassifier
        from attlas.jobs.classify_stream import (
            check_texts,
            classify_lines,
            classify_texts,
            classify_with_trace,
            is_folder,
        )
        from attlas.jobs.inputs import run_at

    check_texts(
        texts, input, output, attention, layer
    )  # better reported before the work than after it
    opened_run, checkpoint = run_at(run, checkpoint)
    classifier = TextClassifier(opened_run, checkpoint=checkpoint, device=device)
    if attention and not is_folder(attention):
        classify_with_trace(classifier, texts, input, attention, layer, output, as_json=as_json)
    elif texts:
        classify_texts(classifier, texts, output, window=window, as_json=as_json, traces=attention)
    else:
        classify_lines(classifier, input, output, window=window, as_json=as_json, traces=attention)
