"""`attlas compare`: several runs on one test set."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import (
    AsJson,
    Checkpoint,
    Device,
    EvaluationSettings,
    References,
    TestSource,
    TokenizerOfBleu,
    UseValidation,
)


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="The folders that train wrote.")
    ],
    source: TestSource = None,
    reference: References = None,
    valid: UseValidation = False,
    text: Annotated[
        str | None,
        typer.Option(help="A text whose attention maps are drawn side by side, into --output."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The figure: a file that ends in .png, .svg or .pdf."),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            help="Only maps whose name begins so; by default the last layer that looks at the "
            "source."
        ),
    ] = None,
    bleu_tokenizer: TokenizerOfBleu = None,
    as_json: AsJson = False,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
    settings: EvaluationSettings = None,
) -> None:
    """Compare runs on the same test set: scores with intervals, speed and size.

    Runs that translate: BLEU and chrF by sacrebleu. Intervals and p values come from paired
    bootstrap resampling, 1,000 samples. Classifiers: accuracy with Wilson's interval and McNemar's
    exact test, and macro-F1. p is of the difference to the first run. A small p, such as 0.01,
    means that chance alone would seldom make such a difference.

    All runs must have the same test set. If they differ, name one with --source and --reference.

    \b
    Examples:
      attlas compare runs/tiny runs/multi30k
      attlas compare runs/a runs/b --source test.en --reference test.de
      attlas compare runs/a runs/b --valid --json > scores.json
      attlas compare runs/a runs/b --text "The cat is sleeping." --output maps.png
    """
    with loading():
        from attlas._output import check_replaceable
        from attlas.errors import ConfigError
        from attlas.figures.saving import figure_suffix
        from attlas.inference import TextClassifier
        from attlas.jobs.comparison import (
            Compared,
            as_text,
            check_comparable,
            check_same_test,
            common_tokenizer,
            draw_side_by_side,
            facts_of,
            label_comparison,
            timed_labels,
            timed_translations,
            tokenizer_remark,
            translation_scores,
        )
        from attlas.jobs.evaluation import labelled_test_set, test_set_of
        from attlas.jobs.inputs import (
            UnscoredError,
            check_distinct,
            check_used,
            decoding_of,
            run_at,
            translator_of,
        )

    if (text is None) != (output is None):
        raise ConfigError(
            "--text and --output together, for a figure",
            "--text alone" if output is None else "--output alone",
            "add the other",
        )
    if output is not None:
        figure_suffix(output)
        check_replaceable(output)
    check_distinct([source, *(reference or ())] * len(runs), [output])  # each run reads them
    opened_runs = [run_at(run, checkpoint) for run in runs]
    classifies = check_comparable([run for run, _ in opened_runs])
    checkpoints = [run.store.number_of(name) for run, name in opened_runs]
    names = [str(run.path) for run, _ in opened_runs]
    facts, seconds = [], []
    if classifies:
        unused = {"--reference": bool(reference), "--text": text is not None}
        unused["--bleu-tokenizer"] = bleu_tokenizer is not None
        check_used(unused, "classifiers", "they write no text")
        sets = [
            labelled_test_set(run, source, settings or (), valid=valid) for run, _ in opened_runs
        ]
        check_same_test(names, [labelled.checksum for labelled in sets], "--source TEXTS")
        predictions = []
        for (run, _), number in zip(opened_runs, checkpoints, strict=True):
            classifier = TextClassifier(run, checkpoint=number, device=device)
            classifications, took = timed_labels(classifier, sets[0])
            predictions.append(classifications)
            seconds.append(took)
            facts.append(facts_of(run, number, classifier.facts))
        labels = sorted(
            {*sets[0].labels, *(label for labels_of_run in predictions for label in labels_of_run)}
        )
        scores, signatures = label_comparison(sets[0].labels, predictions, labels)
        noun, size = "text", len(sets[0])
        data = {"name": sets[0].name, "sha256": sets[0].checksum}
    else:
        no_scores = ""
        try:
            tokenizer = common_tokenizer([run for run, _ in opened_runs], bleu_tokenizer)
            tests = [
                test_set_of(run, source, reference or (), valid=valid) for run, _ in opened_runs
            ]
            check_same_test(
                names,
                [test.corpus.checksum for test in tests],
                "--source TEXTS --reference TRANSLATIONS",
            )
        except UnscoredError as error:
            if text is None or valid or source is not None or reference or bleu_tokenizer:
                raise
            tests, no_scores = [], f"attlas: no scores: {error}"  # a figure needs none
        translators, systems = {}, []
        for (run, _), number in zip(opened_runs, checkpoints, strict=True):
            config = decoding_of(run, settings)
            translator = translator_of(run, "attlas", config, number, device)
            translators[str(run.path)] = translator
            facts.append(facts_of(run, number, translator.facts))
            if tests:
                with translator.forked() as faster:
                    translations, took = timed_translations(faster, tests[0])
                systems.append(translations)
                seconds.append(took)
        if no_scores and text is not None and output is not None:
            texts = draw_side_by_side(translators, text, layer, output)
            print(no_scores, file=sys.stderr)
            if as_json:
                rows_without = [
                    {"run": name, "checkpoint": checkpoint, "scores": None, **own}
                    for name, checkpoint, own in zip(names, checkpoints, facts, strict=True)
                ]
                without = {"runs": rows_without, "data": None, "translations": texts}
                print(json.dumps(without, ensure_ascii=False, indent=2))
            else:
                print("\n".join(f"{name}: {translation}" for name, translation in texts.items()))
            return
        if remark := tokenizer_remark(tests[0].corpus.targets, tokenizer):
            print(remark, file=sys.stderr)
        scores, signatures = translation_scores(systems, tests[0].references, tokenizer)
        noun, size = "sentence", len(tests[0].corpus)
        data = {"name": tests[0].corpus.name, "sha256": tests[0].corpus.checksum}
    rows = [
        Compared(*facts_of_run)
        for facts_of_run in zip(names, checkpoints, seconds, scores, facts, strict=True)
    ]
    facts_of_data = {**data, f"{noun}s": size}
    translation_texts = None
    if text is not None and output is not None:
        translation_texts = draw_side_by_side(translators, text, layer, output)
    if as_json:
        report = {
            "runs": [
                {"run": result.run, "checkpoint": result.checkpoint, "scores": result.scores,
                 "seconds": result.seconds, **result.facts}
                for result in rows
            ],
            "signatures": signatures,
            "data": facts_of_data,
            **({} if translation_texts is None else {"translations": translation_texts}),
        }  # fmt: skip
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return
    print(as_text(rows, signatures, facts_of_data, noun))
    if translation_texts is not None:
        print()
        print(
            "\n".join(f"{name}: {translation}" for name, translation in translation_texts.items())
        )
