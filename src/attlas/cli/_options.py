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
TestSource = Annotated[
    str | None,
    typer.Option(
        "--source",
        help="A text to translate instead of the test set of the run; for a classifier, "
        "labelled texts.",
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        help="The right translations, line by line. Repeat the option for several files.",
    ),
]
UseValidation = Annotated[
    bool, typer.Option("--valid", help="Use the validation set instead of the test set.")
]
TokenizerOfBleu = Annotated[
    str | None,
    typer.Option(
        "--bleu-tokenizer",
        help="What BLEU counts as a token: 13a, intl, char, zh, ja-mecab or ko-mecab. The default "
        "is that of the run's validation.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
