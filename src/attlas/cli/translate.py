"""`attlas translate`: lines in, lines out."""

from collections.abc import Mapping
from os.path import exists, isfile
from pathlib import Path
from shlex import join, quote
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import Checkpoint, Device, Engine, NumBeams, RunFolder, SearchSettings
from attlas.errors import quoted


def translate(
    run: RunFolder,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES", help="Texts to translate --into a folder (see below)."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the translation of each of FILES here."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Translate the I-th of N parts of FILES only, from 1."),
    ] = None,
    input: Annotated[
        str, typer.Option("--input", "-i", help='The text, plain or gzipped; "-" = standard input.')
    ] = "-",
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help='The translation, gzipped if .gz; "-" = standard output.'
        ),
    ] = "-",
    num_beams: NumBeams = None,
    n_best: Annotated[
        int | None,
        typer.Option(min=1, help="Write this many translations for each line (see above)."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="The words that each translation begins with.")
    ] = None,
    alignments: Annotated[
        Path | None, typer.Option(help="Write word alignments here: i-j pairs, one line per line.")
    ] = None,
    window: Annotated[
        int, typer.Option(min=1, help="Lines to translate together at most; more are faster.")
    ] = 1024,
    checkpoint: Checkpoint = "best",
    device: Device = "cpu",
    engine: Engine = "attlas",
    settings: SearchSettings = None,
) -> None:
    """Translate text line by line.

    For each line of the input, one line is written, also for an empty line. The text is UTF-8, and
    only a line feed ends a line. After a line that cannot be read, attlas stops with an error. A
    line is translated as soon as it has arrived. With a file as input, --window lines are
    translated together, which is faster. The translations stay the same.

    --n-best N writes up to N lines "number ||| translation ||| score" for each line of the input,
    the best one first. Numbers start at 0. A translation may contain " ||| " itself, so split at
    the first and at the last one.

    --alignments writes the Pharaoh format: i-j means that word i of the source is aligned to word j
    of the best translation. Words are separated by white space, and numbers start at 0.

    --engine ctranslate2 uses the export that attlas export RUN --to ctranslate2 wrote. Exports with
    --quantization int8 are called ctranslate2-int8. For an export in another folder, name the
    folder. attlas itself still translates what this engine cannot: sources that are too long, and
    searches with --prefix, min_length, length_penalty above 1, or unknown = "forbid".

    FILES --into FOLDER translates many files. Each file becomes a file of the same name in FOLDER,
    and appears there only when it is complete. After Ctrl-C or a kill, the same command continues.
    If the text, the run, a setting or --window has changed since, it stops with an error. If a file
    fails, the others are still translated; the exit code is then 2. Several processes may work on
    the same files and folder. --shard 2/8 takes every eighth file, starting with the second.

    \b
    Examples:
      echo "The cat is sleeping on the sofa." | attlas translate runs/demo
      attlas translate runs/demo -i test.en -o test.de --num-beams 10
      attlas translate runs/demo --set decoding.method=greedy < test.en > test.de
      attlas translate runs/demo --n-best 5 < test.en > lists.txt
      attlas translate runs/demo --prefix "Ich" < test.en
      attlas translate runs/demo --alignments test.align < test.en > test.de
      attlas translate runs/demo corpus/*.en.gz --into translated
    """
    with loading():
        from attlas._output import check_writable
        from attlas.data import BatchingConfig
        from attlas.errors import AttlasError
        from attlas.jobs.checkpointed_output import Shard
        from attlas.jobs.inputs import decoding_of, lists_asked_for, run_at, translator_of
        from attlas.jobs.translate_stream import translate_lines
        from attlas.runs import CONFIG

        if files:
            from attlas.jobs.checkpointed_output import origin_of
            from attlas.jobs.translate_files import translate_files

    options = {"FILES": files, "--into": into, "--shard": shard}
    single = {"--input": input, "--output": output, "--alignments": alignments}
    option_names = [name for name, value in options.items() if value not in (None, [])]
    others = {name: str(value) for name, value in single.items() if value not in ("-", None)}
    if option_names and (not files or into is None or others):
        got = " ".join([*option_names, *others])
        advice = "for a single text, use --input, --output and --alignments alone"
        if files and into is None:
            got, advice = _explain_files(run, files, others, got)
        elif not files and into is not None and run.is_file():
            got = f"the file {run} where the run should be, and no FILES"
            names = join([str(run), "--into", str(into)])
            advice = f"name the run first: attlas translate RUN {names}"
        raise AttlasError(
            "FILES --into FOLDER, and perhaps --shard, to translate files into a folder",
            got,
            advice,
        )
    check_writable(output)
    check_writable(alignments)
    divided = Shard() if shard is None else Shard.parse(shard)
    opened_run, checkpoint = run_at(run, checkpoint)
    config = decoding_of(opened_run, settings, num_beams, n_best)
    numbered = lists_asked_for(settings, n_best)
    location = f"[batching] of {opened_run.path / CONFIG}"
    trained_length = BatchingConfig.read(opened_run.table("batching"), location).max_length
    plain = translator_of(opened_run, engine, config, checkpoint, device)
    prefixed = plain if prefix is None else plain.with_prefix(prefix)
    with prefixed.forked() as translator:
        if files and into:
            translate_files(
                translator,
                files,
                into,
                origin={
                    **origin_of(
                        opened_run, checkpoint, translator, numbered=numbered, window=window
                    ),
                    **({} if prefix is None else {"prefix": prefix}),
                },
                shard=divided,
                numbered=numbered,
                window=window,
                trained_length=trained_length,
            )
            return
        translate_lines(
            translator,
            input,
            output,
            alignments=alignments,
            numbered=numbered,
            window=window,
            trained_length=trained_length,
        )


def _explain_files(
    run: Path, files: list[Path], others: Mapping[str, str], got: str
) -> tuple[str, str]:
    """Explain FILES without --into: what was given, and what to do.

    Args:
        others: The options given that are for a single text.
    """
    arguments = [w for name, value in others.items() if name != "--input" for w in (name, value)]
    command = ["attlas", "translate", str(run)]
    if not any(map(exists, files)):
        text = " ".join(map(str, files))
        advice = f"to translate a text: echo {quote(text)} | {join(command + arguments)}"
        return f"{quoted(text)}, and there is no such file", advice
    into = "add --into FOLDER"
    if others:
        into = f"take --into FOLDER instead of {' and '.join(others)}"
    if len(files) > 1 or not isfile(files[0]):
        return got, into
    advised = join([*command, "-i", str(files[0]), *arguments])
    return got, f"to translate that file: {advised}; or {into}"
