"""fairseq: its own `fairseq-train`, with a pause between blocks."""

import sys
from typing import Any

import options

settings, pace = options.read()

from fairseq.trainer import Trainer  # noqa: E402
from fairseq_cli.train import cli_main  # noqa: E402

WIDTHS = ["--encoder-embed-dim", "256", "--decoder-embed-dim", "256", "--dropout", "0.1"]
SHAPES = {
    "transformer": [
        "--arch", "transformer", *WIDTHS, "--encoder-layers", "3", "--decoder-layers", "3",
        "--encoder-attention-heads", "4", "--decoder-attention-heads", "4",
        "--encoder-ffn-embed-dim", "1024", "--decoder-ffn-embed-dim", "1024",
        "--attention-dropout", "0.1", "--activation-dropout", "0.1",
    ],
    "luong": [
        "--arch", "lstm", *WIDTHS, "--encoder-layers", "1", "--decoder-layers", "1",
        "--encoder-hidden-size", "128", "--encoder-bidirectional", "--decoder-hidden-size", "256",
        "--decoder-out-embed-dim", "256", "--decoder-attention", "1",
    ],
}  # fmt: skip
TRAINING = [
    "--task", "translation", "--source-lang", "source", "--target-lang", "target",
    "--dataset-impl", "raw", "--share-all-embeddings", "--max-tokens", str(settings.tokens),
    "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1",
    "--optimizer", "adam", "--lr", "1e-4", "--clip-norm", "1.0", "--max-update", "1000000",
    "--disable-validation", "--no-save", "--save-dir", str(settings.folder), "--no-progress-bar",
    "--log-interval", "50", "--cpu", "--num-workers", "0", "--seed", "1",
]  # fmt: skip

begun: list[bool] = []
plain = Trainer.train_step


def paced(self: Any, samples: Any, *given: Any, **named: Any) -> Any:
    """An update; the first waits for the first block."""
    if not begun:
        begun.append(True)
        pace.begin()
    tokens = sum(int(sample["ntokens"]) for sample in samples)  # with END, without padding
    done = plain(self, samples, *given, **named)
    pace.updated(tokens)
    return done


def data() -> str:
    """The corpus under the names that fairseq looks for."""
    folder = settings.folder / "data"
    folder.mkdir()
    pieces = (settings.corpus / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    for side in ("source", "target"):
        for split in ("train", "valid"):
            link = folder / f"{split}.source-target.{side}"
            link.symlink_to((settings.corpus / f"{split}.{side}").resolve())
        dictionary = "".join(f"{piece} 1\n" for piece in pieces)
        (folder / f"dict.{side}.txt").write_text(dictionary, encoding="utf-8")
    return str(folder)


Trainer.train_step = paced
sys.argv = ["fairseq-train", data(), *TRAINING, *SHAPES[settings.model]]
cli_main()
