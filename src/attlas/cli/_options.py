"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run, written by attlas train.")
]
Checkpoint = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help='Which checkpoint: "best", "last", "averaged" or the number of a checkpoint.',
    ),
]
Device = Annotated[str, typer.Option(help='Where to compute: "cpu", "cuda", "cuda:1" or "auto".')]
Engine = Annotated[
    str,
    typer.Option(
        help="What searches: attlas, ctranslate2, ctranslate2-int8, or the folder of an export."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="TABLE.KEY=VALUE", help="Change a setting; may be given several times."
    ),
]
SearchSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="decoding.KEY=VALUE",
        help="Change a setting of the search; may be given several times.",
    ),
]
EvaluationSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="decoding.KEY=VALUE",
        help="Change a setting of the search, or of a classifier's --source data.text and "
        "data.label; may be given several times.",
    ),
]
NumBeams = Annotated[int | None, typer.Option(min=1, help="Use beam search with this many beams.")]
