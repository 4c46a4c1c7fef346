"""`attlas lab`: claims about attention as experiments with a verdict."""

from pathlib import Path
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._process import Guarded, GuardedGroup

lab = typer.Typer(
    cls=GuardedGroup,
    help="""Run claims about attention as experiments, and judge them.

    \b
    Examples:
      attlas lab list
      attlas lab run scale
      attlas lab report
    """,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Folder = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder of results and trainings.")
]


@lab.command("list", cls=Guarded)
def list_experiments(out: Folder = Path("lab")) -> None:
    """List all experiments, their claims, and what their results say.

    Experiments that were not run here are judged by the results that come with attlas.

    \b
    Examples:
      attlas lab list
    """
    with loading():
        from attlas.jobs.lab import list_entries

    list_entries(out)


@lab.command("run", cls=Guarded)
def run_experiments(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME…|all", help="Experiments, as the list has them.")
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick/--full", help="Small sizes for minutes on a laptop, or those of the report."
        ),
    ] = True,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many seeds.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="How many experiments run at the same time, each with one thread; by default one "
            "for each core, 8 at most. Those that measure time run alone.",
        ),
    ] = None,
    out: Folder = Path("lab"),
) -> None:
    """Measure experiments, and print their verdicts.

    A seed that is measured is not measured again, unless its settings, its code, its data or the
    version of attlas or torch has changed. After Ctrl-C the same command continues.

    Some experiments read data that attlas does not ship. They look for it in the folder that the
    environment variable ATTLAS_LAB_DATA names, and are left out with a sentence where it is
    missing.

    \b
    Examples:
      attlas lab run scale
      attlas lab run all --quick
      attlas lab run all --quick --jobs 1
      attlas lab run reversal --full --seeds 3
    """
    with loading():
        from attlas.jobs.lab import run_named

    run_named(names, "quick" if quick else "full", seeds, out, jobs)


@lab.command(cls=Guarded)
def report(
    out: Folder = Path("lab"),
    html: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write HTML pages with pictures.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write Markdown pages with pictures.")
    ] = None,
) -> None:
    """Print the verdict table, or write it as pages.

    Experiments that were not run here are judged by the results that come with attlas.

    \b
    Examples:
      attlas lab report
      attlas lab report --html pages
    """
    with loading():
        from attlas.jobs.lab import write_report

    write_report(out, html, markdown)


@lab.command(cls=Guarded)
def figures(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the figures go.")
    ] = Path("figures"),
    format: Annotated[str, typer.Option(help="svg, png or pdf.")] = "svg",
    seed: Annotated[int, typer.Option(min=0, help="The seed of what is drawn at random.")] = 0,
) -> None:
    """Draw the figures that textbooks draw, from real numbers.

    Six come from the NumPy reference: a weight matrix, a causal mask, four heads, the variance of
    the score, sinusoidal positions, and the similarity of positions.

    Three come from trained models: the maps of two translators, heads of MiniLM that show the four
    drawn patterns, and the statistics of a head on a long text.

    \b
    Examples:
      attlas lab figures --out figures --format png
    """
    with loading():
        from attlas.jobs.lab import draw_figures

    draw_figures(out, format, seed)
