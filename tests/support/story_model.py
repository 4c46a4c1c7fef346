"""A small trained decoder, with its tokenizer, as a folder that transformers and others load."""

import shutil
import struct
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast


def story_model(shared: Path, folder: Path) -> Path:
    """Copy the model of the shared data into a folder, with its tokenizer."""
    shutil.copytree(shared / "hf", folder, dirs_exist_ok=True)
    story_tokenizer(shared / "tok512.bin").save_pretrained(folder)
    return folder


def story_tokenizer(vocabulary: Path) -> PreTrainedTokenizerFast:
    """SentencePiece's BPE, from the vocabulary file of llama2.c: score, length, bytes of each."""
    data, scores = vocabulary.read_bytes(), {}
    offset = 4  # after the length of the longest
    while offset < len(data):
        score, length = struct.unpack_from("<fi", data, offset)
        piece = data[offset + 8 : offset + 8 + length].decode()
        scores[(piece.strip("\n") or piece).replace(" ", "▁")] = score
        offset += 8 + length
    merges = [
        (score, piece[:cut], piece[cut:])
        for piece, score in scores.items()
        for cut in range(1, len(piece))
        if piece[:cut] in scores and piece[cut:] in scores
    ]
    merges.sort(key=lambda merge: -merge[0])
    numbers = {piece: number for number, piece in enumerate(scores)}
    pairs = [(left, right) for _, left, right in merges]
    tokenizer = Tokenizer(models.BPE(numbers, pairs, unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<unk>",
    )
