"""`attlas figure`: where a model looked, on paper."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import Checkpoint, Device, NumBeams, SearchSettings


def figure(
    subject: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|TRACE|WATCH", help="A run, a trace that was saved, or a watch.jsonl."
        ),
    ],
    text: Annotated[
        str | None,
        typer.Argument(help="The text that the run translates or labels. A trace needs none."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A file that ends in .png, .svg or .pdf.")
    ] = Path("map.png"),
    layer: Annotated[
        str | None,
        typer.Option(
            help="Only maps whose name begins with this. A wrong name lists those there are."
        ),
    ] = None,
    query: Annotated[
        int | None,
        typer.Option(
            min=0, help="Draw bars for this target token or query only. Numbers start at 0."
        ),
    ] = None,
    head: Annotated[
        int | None, typer.Option(min=0, help="Only this head of each layer. Numbers start at 0.")
    ] = None,
    statistics: Annotated[
        bool,
        typer.Option(
            "--statistics",
            help="Entropy, largest weight and number of weights above 0.1, by query, of one map.",
        ),
    ] = False,
    statistic: Annotated[
        str | None,
        typer.Option(help="What is drawn of a watch file, such as entropy. Default: max_logit."),
    ] = None,
    architecture: Annotated[
        bool,
        typer.Option("--architecture", help="Draw the parts of the run's model, and no map."),
    ] = False,
    cmap: Annotated[
        str | None, typer.Option(help="A colormap of matplotlib, such as viridis or YlOrRd.")
    ] = None,
    fmt: Annotated[
        str | None, typer.Option(help='How the numbers are written, such as ".3f" or ".0%".')
    ] = None,
    vmin: Annotated[
        float | None, typer.Option(help="The weight that has the first colour. Default: 0.")
    ] = None,
    vmax: Annotated[
        float | None,
        typer.Option(help="The weight that has the last colour. Default: the largest weight."),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Read all weights of maps that are so long that a sample is drawn."
        ),
    ] = False,
    row: Annotated[int, typer.Option(min=0, help="Which text of a trace. Numbers start at 0.")] = 0,
    save_trace: Annotated[
        Path | None, typer.Option(help="Save the trace, too, as a .safetensors file.")
    ] = None,
    num_beams: NumBeams = None,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
    settings: SearchSettings = None,
) -> None:
    """Draw an attention map into a file.

    The rows of the map are target tokens, and its columns are source tokens. In self-attention, the
    rows are queries and the columns are keys. Several layers or heads are drawn side by side, with
    one colour scale. Of very long maps a sample is drawn; --exact reads all of them.

    \b
    Examples:
      attlas figure runs/demo "The cat is sleeping." --output map.pdf
      attlas figure runs/demo "The cat is sleeping." --query 1 -o word.svg
      attlas figure runs/demo "The cat is sleeping." --save-trace cat.safetensors
      attlas figure runs/imdb "A lovely film." -o map.png
      attlas figure cat.safetensors -o map.png
      attlas figure cat.safetensors --cmap YlOrRd --fmt .3f -o map.png
      attlas figure cat.safetensors --statistics -o statistics.png
      attlas figure runs/demo --architecture -o model.svg
      attlas figure runs/demo/watch.jsonl --statistic entropy -o heads.png
    """
    with loading():
        from attlas._output import check_replaceable
        from attlas.errors import AttlasError
        from attlas.figures.saving import figure_suffix
        from attlas.inference import TextClassifier, Translator
        from attlas.jobs.drawing import (
            Style,
            check_text,
            draw,
            draw_architecture,
            draw_history,
            trace_of_classifier,
            trace_of_run,
            trace_on_disk,
        )
        from attlas.jobs.inputs import (
            check_distinct,
            check_nothing_searched,
            check_run_or_trace,
            check_used,
            decoding_of,
            names_a_trace,
            run_at,
        )

    style = Style(
        query=query, statistics=statistics, cmap=cmap, fmt=fmt, vmin=vmin, vmax=vmax, exact=exact
    )
    style.check()
    check_text(subject, text)
    figure_suffix(output)  # better reported before the work than after it
    check_replaceable(output)
    check_replaceable(save_trace)
    check_distinct([subject], [output, save_trace])
    given: dict[str, object] = {
        "a text": text, "--query": query, "--head": head, "--statistics": statistics or None,
        "--cmap": cmap, "--fmt": fmt, "--vmin": vmin, "--vmax": vmax, "--exact": exact or None,
        "--row": row or None, "--save-trace": save_trace,
    }  # fmt: skip
    if architecture:
        check_run_or_trace(subject)
        given |= {"--layer": layer, "--statistic": statistic, "--num-beams": num_beams}
        given |= {"--set": settings, "--device": None if device == "cpu" else device}
        opened_run, checkpoint = run_at(subject, checkpoint)
        draw_architecture(opened_run, output, checkpoint, given)
        print(output)
        return
    if subject.suffix == ".jsonl":
        check_nothing_searched(num_beams, settings, checkpoint, device)
        draw_history(subject, output, statistic, layer, given)
        print(output)
        return
    if statistic is not None:
        raise AttlasError(
            "a watch file, such as runs/demo/watch.jsonl, for --statistic",
            str(subject),
            "name the watch file, or leave --statistic out",
        )
    if names_a_trace(subject):
        check_nothing_searched(num_beams, settings, checkpoint, device)
        trace = trace_on_disk(subject, text)
    else:
        check_run_or_trace(subject)
        opened_run, checkpoint = run_at(subject, checkpoint)
        if text is None:
            raise AttlasError(
                "a text to read",
                "none",
                f'add it: attlas figure {quote(str(subject))} "a text"',
            )
        if opened_run.classifies:
            options = {"--num-beams": num_beams is not None, "--set": bool(settings)}
            check_used(options, "a classifier", "it searches for nothing")
            trace = trace_of_classifier(
                TextClassifier(opened_run, checkpoint=checkpoint, device=device), text
            )
        else:
            config = decoding_of(opened_run, settings, num_beams)
            trace = trace_of_run(
                Translator(opened_run, config, checkpoint=checkpoint, device=device), text
            )
    if save_trace:
        trace.save(save_trace)
    draw(trace, output, layer=layer, row=row, head=head, style=style)
    print(output)
