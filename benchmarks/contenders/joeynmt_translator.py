"""JoeyNMT from text to text: tokens, batches, search and text again, as `joeynmt translate`.

Its `translate` reads the standard input once and wants a checkpoint; so what it calls is called.
"""

from pathlib import Path
from typing import Any

from joeynmt.config import parse_global_args
from joeynmt.data import load_data
from joeynmt.model import build_model
from joeynmt.prediction import predict
from joeynmt.tokenizers import BasicTokenizer, SentencePieceTokenizer


class Translator:
    """translator(lines) → lines, by `model`, which has random weights.

    cfg: what would stand in its configuration file, with [testing]; corpus: whose sentencepiece
    model it reads and writes by.
    """

    def __init__(self, cfg: dict[str, Any], corpus: Path) -> None:
        pieces = {
            "level": "bpe", "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(corpus / "tokenizer.model")},
        }  # fmt: skip
        data = cfg["data"] | {side: cfg["data"][side] | pieces for side in ("src", "trg")}
        # It asks its tokenizers to write no piece beyond the vocabulary, by a method that
        # sentencepiece has no more; there is none beyond it.
        SentencePieceTokenizer.set_vocab = BasicTokenizer.set_vocab
        self._args = parse_global_args(cfg | {"data": data}, rank=0, mode="train")
        source, target, _, _, self._stream = load_data(self._args.data, ["stream"])
        self.model = build_model(self._args.model, src_vocab=source, trg_vocab=target).eval()

    def __call__(self, lines: list[str]) -> list[str]:
        for line in lines:
            self._stream.set_item(f" {line}")  # as attlas reads it: each word has a space before it
        _, _, found, *_ = predict(
            model=self.model, data=self._stream, device=self._args.device, n_gpu=0,
            normalization="none", args=self._args.test, autocast=self._args.autocast,
        )  # fmt: skip
        self._stream.reset_cache()
        return list(found)
