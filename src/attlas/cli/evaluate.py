"""`attlas evaluate`: how good a run is."""

from pathlib import Path
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import (
    AsJson,
    Checkpoint,
    Device,
    Engine,
    EvaluationSettings,
    NumBeams,
    References,
    RunFolder,
    TestSource,
    TokenizerOfBleu,
    UseValidation,
)


def evaluate(
    run: RunFolder,
    source: TestSource = None,
    reference: References = None,
    valid: UseValidation = False,
    examples: Annotated[
        int,
        typer.Option(min=0, help="Show this many examples: right translations, or wrong labels."),
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Save the translations or labels in this file. A name in .gz is gzipped.",
        ),
    ] = None,
    bleu_tokenizer: TokenizerOfBleu = None,
    as_json: AsJson = False,
    num_beams: NumBeams = None,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
    engine: Engine = "attlas",
    settings: EvaluationSettings = None,
) -> None:
    """Score a run on a test set.

    A run that translates: BLEU, chrF and TER by sacrebleu, with their signatures. A line without a
    text or without a reference is not scored. With several --reference files, an empty line means
    that this file has no reference for it. TER counts the same tokens as BLEU if --bleu-tokenizer
    is char, zh, ja-mecab or ko-mecab. --engine scores an export instead of the run itself.

    A classifier: accuracy with its 95% interval (Wilson), macro-F1, and a table of right and given
    labels. --source is a file of labelled texts, or a folder with a folder for each label. The
    names of its fields come from the recipe of the run, or from --set data.text=NAME and --set
    data.label=NAME.

    The report also says what was measured and how: the data and its checksum, the search, the
    checkpoint and the seed.

    \b
    Examples:
      attlas evaluate runs/demo --examples 5
      attlas evaluate runs/demo --source test.en --reference test.de
      attlas evaluate runs/demo --source test.en --reference a.de --reference b.de
      attlas evaluate runs/demo --json > scores.json
      attlas evaluate runs/imdb --valid --examples 3
      attlas evaluate runs/imdb --source aclImdb
      attlas evaluate runs/imdb --source films.csv --set data.text=review
    """
    with loading():
        from attlas._output import check_writable, kept
        from attlas.errors import AttlasError
        from attlas.jobs.evaluation import (
            evaluate_labels,
            format_report,
            scored,
            test_set_of,
            tokenizer_of,
            translated,
        )
        from attlas.jobs.inputs import (
            check_distinct,
            check_used,
            data_of,
            decoding_of,
            first_repeated,
            run_at,
            translator_of,
        )

    check_writable(output)  # better reported before the work than after it
    opened_run, checkpoint = run_at(run, checkpoint)
    # A training may name another one best while this one is scored.
    checkpoint = opened_run.store.number_of(checkpoint)
    if as_json and output is not None and str(output) == "-":
        raise AttlasError(
            "the scores or the translations on the standard output", "both", "name a file for -o"
        )
    check_distinct([source, *(reference or ()), *data_of(opened_run)], [output])
    if (twice := first_repeated(reference or ())) is not None:
        raise AttlasError("--reference files that differ", f"{twice} twice", "name each once")
    if opened_run.classifies:
        of_translation = {
            "--reference": bool(reference),
            "--bleu-tokenizer": bleu_tokenizer is not None,
            "--num-beams": num_beams is not None,
            "--engine": engine != "attlas",
        }
        check_used(of_translation, "a classifier", "it writes no text")
        shown, lines = evaluate_labels(
            opened_run,
            checkpoint,
            device,
            source,
            settings or (),
            valid=valid,
            examples=examples,
            as_json=as_json,
        )
        with kept(lines, output):
            print(shown, flush=True)  # first: no disk that is full takes the scores away
    else:
        test_set = test_set_of(opened_run, source, reference or (), valid=valid)
        config = decoding_of(opened_run, settings, num_beams)
        tokenizer = tokenizer_of(opened_run, bleu_tokenizer)
        translator = translator_of(opened_run, engine, config, checkpoint, device)
        with translator.forked() as faster:
            translations = translated(faster, test_set)
        # To score a large set takes minutes: whatever happens then, its translations are kept.
        with kept((f"{translation.text}\n".encode() for translation in translations), output):
            report, right = scored(
                opened_run, checkpoint, translator, test_set, translations, tokenizer
            )
            print(
                format_report(report, test_set, translations, right, examples, as_json=as_json),
                flush=True,
            )
