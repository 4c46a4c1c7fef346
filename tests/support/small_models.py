"""Small random models of Hugging Face, with a tokenizer of words, for the tests."""

from pathlib import Path
from typing import Any

import torch

WORDS = (
    "small",
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "in",
    "mat",
    "house",
    "very",
    "red",
    "big",
)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZE = len(SPECIAL) + len(WORDS)


def tokenizer(**options: Any) -> Any:
    """Words, between [CLS] and [SEP]."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(
        WordLevel({w: i for i, w in enumerate([*SPECIAL, *WORDS])}, unk_token="[UNK]")
    )
    words.pre_tokenizer = Whitespace()
    words.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", bos_token="[CLS]", eos_token="[SEP]", **options,
    )  # fmt: skip


def model(kind: str, **options: Any) -> Any:
    """A random model: bert, gpt2, llama, albert, roberta, bart, t5."""
    import transformers as hf

    torch.manual_seed(11)
    of = {"vocab_size": SIZE, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    wide = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, **options}
    inner = {"intermediate_size": 24, "max_position_embeddings": 24}
    written = {"decoder_start_token_id": 2, "is_encoder_decoder": True}
    match kind:
        case "bert":
            return hf.BertForMaskedLM(hf.BertConfig(**of, **wide, **inner))
        case "roberta":
            return hf.RobertaModel(hf.RobertaConfig(**{**of, "pad_token_id": 1}, **wide, **inner))
        case "albert":
            return hf.AlbertModel(hf.AlbertConfig(**of, **wide, **inner, embedding_size=8))
        case "gpt2":
            return hf.GPT2LMHeadModel(
                hf.GPT2Config(**of, n_embd=16, n_layer=2, n_head=4, n_positions=24, **options)
            )
        case "llama":
            return hf.LlamaForCausalLM(hf.LlamaConfig(**of, **wide, **inner, num_key_value_heads=2))
        case "bart":
            return hf.BartForConditionalGeneration(
                hf.BartConfig(
                    **of, **written, d_model=16, encoder_layers=1, decoder_layers=1,
                    encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24,
                    decoder_ffn_dim=24, max_position_embeddings=24, forced_eos_token_id=None,
                )
            )  # fmt: skip
        case "t5":
            return hf.T5ForConditionalGeneration(
                hf.T5Config(**of, **written, d_model=16, d_kv=4, d_ff=24, num_layers=1, num_heads=4)
            )
    raise ValueError(kind)


def saved(folder: Path, kind: str, **options: Any) -> Path:
    """Model and tokenizer in a folder."""
    model(kind, **options).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
