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

    safetensors: the weights of any model, its recipe and its vocabularies. huggingface: a Marian
    model of transformers; the Transformer with norm = "post", LayerNorm, sinusoidal positions
    and relu or gelu. ctranslate2: a fast translator, also with 8-bit weights; any Transformer whose
    attention may look everywhere. onnx: encoder.onnx and decoder.onnx (one step, with the past in
    and out) for onnxruntime, of any model that translates; of any classifier classifier.onnx. A
    program beside them uses them without attlas.

    huggingface and onnx also write down how to search, as the run does or --set says.

    The folder is there whole or not at all. Its README.md says how to use it; attlas.json in it
    names the checkpoint and has the run's provenance.

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

    opened, checkpoint = run_at(run, checkpoint)
    if opened.classifies:
        check_used({"--set": bool(settings)}, "a classifier", "it has no search to be set")
    name = to if quantization == "float32" else f"{to}-{quantization}"
    exported = export_run(
        opened,
        to,
        out or run / "exports" / name,
        checkpoint=checkpoint,
        quantization=quantization,
        search=decoding_of(opened, settings) if settings else None,
    )
    print(f"{exported.path} is ready: {', '.join(exported.files)}")
    for remark in exported.remarks:
        print(f"- {remark}")
