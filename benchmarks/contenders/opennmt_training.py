"""OpenNMT-py: its own `onmt_train`, with a pause between blocks."""

import json
from collections.abc import Iterator
from typing import Any

import options

settings, pace = options.read()

from onmt import train_single  # noqa: E402
from onmt.bin.train import _get_parser, train  # noqa: E402
from onmt.constants import CorpusTask, DefaultTokens  # noqa: E402

SHAPES: dict[str, dict[str, Any]] = {
    "transformer": {
        "encoder_type": "transformer", "decoder_type": "transformer", "layers": 3, "heads": 4,
        "hidden_size": 256, "transformer_ff": 1024, "position_encoding": True,
        "attention_dropout": [0.1],
    },
    "additive": {"rnn_type": "GRU", "global_attention": "mlp"},
    "luong": {"rnn_type": "LSTM", "global_attention": "general"},
    "luong-free": {"rnn_type": "LSTM", "global_attention": "general", "input_feed": 0},
}  # fmt: skip
RECURRENT = {"encoder_type": "brnn", "decoder_type": "rnn", "layers": 1, "hidden_size": 256}
made = train_single.build_dynamic_dataset_iter


def paced(opt: Any, transforms: Any, vocabs: Any, *given: Any, **named: Any) -> Any:
    """The training data's own iterator, paced; the validation's as it is."""
    batches = made(opt, transforms, vocabs, *given, **named)
    if named.get("task") != CorpusTask.TRAIN:
        return batches
    padding = vocabs["tgt"][DefaultTokens.PAD]

    def tokens(batch: Any) -> int:
        return int(batch[0]["tgt"][:, 1:, 0].ne(padding).sum())  # with END, without BEGIN

    def endless() -> Iterator[Any]:
        yield from pace.through(batches, tokens)

    return endless()


def main() -> None:
    """Write the settings as OpenNMT-py reads them, and train."""
    shape = SHAPES[settings.model]
    if "rnn_type" in shape:
        shape = RECURRENT | shape
    vocabulary = settings.folder / "vocabulary.txt"
    pieces = (settings.corpus / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    vocabulary.write_text("".join(f"{piece}\t1\n" for piece in pieces), encoding="utf-8")
    files = {side: str(settings.corpus / f"train.{side}") for side in ("source", "target")}
    config = {
        "data": {"train": {"path_src": files["source"], "path_tgt": files["target"], "weight": 1}},
        "src_vocab": str(vocabulary),
        "tgt_vocab": str(vocabulary),
        "share_vocab": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "save_model": str(settings.folder / "model"),
        "word_vec_size": 256,
        "dropout": [0.1],
        "batch_type": "tokens",
        "batch_size": settings.tokens,
        "bucket_size": 29000,  # an epoch of Multi30k
        "num_workers": 0,
        "normalization": "tokens",
        "label_smoothing": 0.1,
        "optim": "adam",
        "learning_rate": 1e-4,
        "max_grad_norm": 1.0,
        "train_steps": 10**6,
        "save_checkpoint_steps": 10**6,
        "valid_steps": 10**6,
        "report_every": 50,
        "seed": 1,
        **shape,
    }
    written = settings.folder / "config.yaml"
    written.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    train_single.build_dynamic_dataset_iter = paced
    train(_get_parser().parse_args(["-config", str(written)]))


main()
