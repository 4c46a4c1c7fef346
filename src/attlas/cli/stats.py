"""`attlas stats`: where a model looks in a whole corpus, in numbers."""

from pathlib import Path
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import Checkpoint, Device, NumBeams, SearchSettings


def stats(
    model: Annotated[
        Path,
        typer.Argument(metavar="RUN|MODEL", help="A run, or the folder of a Hugging Face model."),
    ],
    corpus: Annotated[
        str, typer.Argument(help='Texts, one a line, plain or gzipped; "-" = standard input.')
    ] = "-",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The table: a name in .parquet, .csv or .csv.gz."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="The translations that a translating model reads, line by line."),
    ] = None,
    by: Annotated[
        str, typer.Option(help="One row for each head of a layer and text, or for each token.")
    ] = "head",
    threshold: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, help="Count weights greater than this in the column count_above."
        ),
    ] = 0.01,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A further column: special_weight or gini."),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(
            "--layer", metavar="PATH", help='Only this layer, or a pattern such as "encoder.*".'
        ),
    ] = None,
    max_tokens: Annotated[
        int,
        typer.Option(
            min=1, help="How many padded tokens are read at once at most. Fewer need less memory."
        ),
    ] = 2048,
    num_beams: NumBeams = None,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
    settings: SearchSettings = None,
) -> None:
    """Measure where a model looks in every text of a corpus.

    The model is a run, or a folder with a Hugging Face model and its tokenizer. A model that
    translates reads each line together with its line of --target. Without --target, it reads what
    it writes itself, by greedy search; for a run, --num-beams and --set change the search. Any
    other model reads the line alone. A line without a word has no rows.

    \b
    One row for each line, layer and head, in this order, with these columns:
      line, layer, call, head      lines start at 1, calls and heads at 0
      kind, causal                 self or cross; whether no query looks at what
                                   comes after it
      queries, keys, unread        tokens that look, that are looked at, and that
                                   were left out because the model has no
                                   positions for them
      finished                     false where what the model wrote itself came
                                   to no end
      entropy                      in nats
      normalized_entropy           entropy, divided by log of num_visible
      effective_keys, num_visible  exp(entropy); the keys that a query may see
      max_weight                   the greatest weight
      count_above                  how many weights are greater than --threshold
      distance                     in keys, between a query and what it looks at
      first_weight, last_weight    the weight on the first key, and on the last
      self_weight                  the weight on the query's own key
      previous_weight, next_weight the weight on the keys beside it
      received                     the greatest share of all attention that one
                                   key gets
      special_weight               with --also: the weight on tokens that stand
                                   for no text, as [CLS]
      gini                         with --also: Gini's coefficient of the weights

    Each but received is the mean over the queries of the text. --by token has one row for each
    query, with its position from 0, its token, and argmax, the key of the greatest weight;
    received is then the share of its own key, and there is none where kind is cross.
    docs/reference/columns.md has the formulas.

    Checksums of the model and the corpus, and all settings, are saved with the numbers: in the
    metadata "attlas" of a Parquet file, or in NAME.json beside a CSV file. Parquet needs
    attlas[parquet].

    The output appears only when it is complete. After Ctrl-C or a kill, the same command continues
    and writes the same table. If the model, the corpus or a setting has changed since, it stops
    with an error.

    \b
    Examples:
      attlas stats runs/demo test.en -o stats.parquet
      attlas stats runs/demo test.en --target test.de -o stats.csv
      attlas stats runs/imdb reviews.txt.gz --by token -o tokens.csv.gz
      attlas stats models/bert texts.txt -o bert.parquet
    """
    with loading():
        from attlas.jobs.statistics import StatisticsOptions, run_statistics

    run_statistics(
        StatisticsOptions(
            model=model,
            corpus=corpus,
            output=output,
            target=target,
            by=by,
            threshold=threshold,
            also=tuple(dict.fromkeys(also or ())),
            layers=tuple(layers) if layers else None,
            max_tokens=max_tokens,
            num_beams=num_beams,
            checkpoint=checkpoint,
            device=device,
            settings=tuple(settings or ()),
        )
    )
