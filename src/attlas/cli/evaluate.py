"""`attlas evaluate`: how good the translations of a run are."""

from pathlib import Path
from typing import Annotated

import typer

from attlas.cli.interrupt import loading
from attlas.cli.options import Beam, Checkpoint, Device, RunFolder, Settings


def evaluate(
    run: RunFolder,
    source: Annotated[
        str | None, typer.Option(help="A text to translate instead of the test set of the run.")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Its right translation, line by line.")
    ] = None,
    valid: Annotated[
        bool, typer.Option("--valid", help="Take the validation set instead of the test set.")
    ] = False,
    examples: Annotated[
        int, typer.Option(min=0, help="Show so many translations, exactly right ones if any.")
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Keep the translations in this file; .gz is gzipped."),
    ] = None,
    bleu_tokenizer: Annotated[
        str | None,
        typer.Option(
            help="What BLEU counts as a token: 13a, intl, char, zh, ja-mecab or ko-mecab; left "
            "out, as in the validation of the run."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    beam: Beam = None,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
    settings: Settings = None,
) -> None:
    """Translate a test set and score the translations.

    BLEU, chrF and TER come from sacrebleu, with its signatures. Every number comes with what it was
    measured on and how: the data and its checksum, the search, the checkpoint, the seed.

    \b
    Examples:
      attlas evaluate runs/demo --examples 5
      attlas evaluate runs/demo --source test.en --reference test.de --beam 10
      attlas evaluate runs/demo --json > scores.json
    """
    with loading():
        from attlas.cli.evaluating import report_of, test_set_of, tokenizer_of, told, translated
        from attlas.cli.given import folder_of, run_at
        from attlas.cli.searching import decoding_of
        from attlas.decoding import Translator

    folder_of(output)  # better told before the work than after it
    opened, checkpoint = run_at(run, checkpoint)
    tested = test_set_of(opened, source, reference, valid=valid)
    config = decoding_of(opened, settings, beam)
    tokenizer = tokenizer_of(opened, bleu_tokenizer)
    translator = Translator(opened, config, which=checkpoint, device=device)
    translations = translated(translator, tested, output)
    vocabulary = translator.vocabularies.target
    report = report_of(opened, checkpoint, config, tested, translations, vocabulary, tokenizer)
    print(told(report, tested, translations, vocabulary, examples, as_json=as_json))
