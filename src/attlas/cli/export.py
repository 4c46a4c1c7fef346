"""`attlas export`: a run for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from attlas._signals import loading
from attlas.cli._options import Checkpoint, RunFolder, SearchSettings


def export(
    run: RunFolder,
    to: Annotated[
        str, typer.Option(help="safetensors, huggingface, ctranslate2 or onnx (see above).")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The new folder; by default RUN/exports/FORMAT."),
    ] = None,
    quantization: Annotated[
        str, typer.Option(help="float32, or for ctranslate2 also int8.")
    ] = "float32",
    checkpoint: Checkpoint = "best",
    settings: SearchSettings = None,
) -> None:
    """Write a run as a folder that other programs read.

    safetensors: the weights, the recipe and the vocabularies of any run.

    huggingface: a Marian model of transformers. The run must be a Transformer with norm = "post",
    LayerNorm, sinusoidal positions, and relu or gelu.

    ctranslate2: a fast translator, also with 8-bit weights. The run must be a Transformer without
    attention patterns.

    onnx: encoder.onnx and decoder.onnx for onnxruntime, from any run that translates;
    classifier.onnx from any classifier. A program in the folder shows how to use them without
    attlas.

    huggingface and onnx also contain the settings of the search: those of the run, or of --set.

    If the export fails, no folder is left. README.md in the folder explains how to use it.
    attlas.json names the checkpoint and the origin of the run.

    \b
    Examples:
      attlas export runs/tiny --to safetensors
      attlas export runs/tiny --to ctranslate2 --quantization int8 --out tiny-int8
      attlas export runs/tiny --to huggingface --set decoding.num_beams=10
      attlas export runs/tiny --to onnx --checkpoint averaged
      attlas export runs/imdb --to onnx
    """
    with loading():
        from attlas.export import export as export_run
        from attlas.jobs.inputs import check_used, decoding_of, run_at

    opened_run, checkpoint = run_at(run, checkpoint)
    if opened_run.classifies:
        check_used({"--set": bool(settings)}, "a classifier", "it has no search to be set")
    name = to if quantization == "float32" else f"{to}-{quantization}"
    exported = export_run(
        opened_run,
        to,
        out or run / "exports" / name,
        checkpoint=checkpoint,
        quantization=quantization,
        search=decoding_of(opened_run, settings) if settings else None,
    )
    print(f"{exported.path} is ready: {', '.join(exported.files)}")
    for remark in exported.remarks:
        print(f"- {remark}")
