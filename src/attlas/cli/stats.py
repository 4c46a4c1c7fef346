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
        typer.Option(help="What a model that writes is to have written, line by line."),
    ] = None,
    by: Annotated[
        str, typer.Option(help="One row for each head of a layer and text, or for each token.")
    ] = "head",
    threshold: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="A greater weight counts in the column above.")
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
        int, typer.Option(min=1, help="Padded tokens to read at once at most; fewer need less.")
    ] = 2048,
    num_beams: NumBeams = None,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
    settings: SearchSettings = None,
) -> None:
    """Measure where a model looks in every text of a corpus.

    The model is a run, or a model of Hugging Face with its tokenizer in a folder on this machine.
    A run that translates, and an encoder-decoder of Hugging Face, read each line with its line of
    --target; without it, with what they write themselves, by greedy search, or as --num-beams and
    --set say of a run. Any other model reads the line alone. A line without a word has no rows.

    \b
    One row for each line, layer and head, in this order, with these columns:
      line, layer, call, head       from 1 the line, from 0 the head; call counts the calls of a
                                    layer
      kind, causal                  self or cross; whether no query looks at what comes after it
      queries, keys, unread        tokens that look, that are looked at, and that were left out
                                    because the model has no positions for them
      finished                      false where what the model wrote itself came to no end
      entropy, normalized_entropy   in nats; and divided by log of the keys that a query may see
      effective_keys, num_visible   exp(entropy); the keys that a query may see
      max_weight, count_above       the greatest weight; weights greater than --threshold
      distance                      in keys, between a query and what it looks at
      first_weight, last_weight     the weight on the first key, and on the last
      self_weight, previous_weight, next_weight
                                    the weight on the query's own key, and on those beside it
      received                      the greatest share of all attention that one key gets
      special_weight                with --also: the weight on tokens that stand for no text, as
                                    [CLS]
      gini                          with --also: Gini's coefficient of the weights
    Each but received is the mean over the queries of the text. --by token has one row for each
    query, with its position from 0, its token, and argmax, the key of the greatest weight;
    received is then the share of its own key, and there is none where kind is cross.
    docs/reference/columns.md has the formulas.

    What the numbers depend on, checksums of model and corpus among it, is in the Parquet file as
    its metadata "attlas", and beside a CSV file in NAME.json. Parquet needs attlas[parquet].

    The corpus is read in one stream. The output is there whole or not at all. The same command
    after a kill, or after Ctrl-C, goes on where it stopped, and ends with the same table; where the
    model, the corpus or a setting has changed since, it says so instead.

    \b
    Examples:
      attlas stats runs/demo test.en -o stats.parquet
      attlas stats runs/demo test.en --target test.de -o stats.csv
      attlas stats runs/imdb reviews.txt.gz --by token --layer "encoder.*" -o tokens.csv.gz
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
