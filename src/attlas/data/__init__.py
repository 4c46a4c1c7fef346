"""Data: corpora, vocabularies, batching, the toy tasks, the shipped corpus."""

from attlas.data.batch import Batch
from attlas.data.batching import Batches, BatchingConfig, batches_by_length, padded
from attlas.data.corpus import Corpus, SplitName, Splits, corpus_of
from attlas.data.encoded import EncodedCorpus, encode_corpus, sample_corpus
from attlas.data.files import FilesData, read_pairs
from attlas.data.filters import FilterConfig, FilterReport
from attlas.data.huggingface import HuggingFaceData
from attlas.data.labelled import read_labelled
from attlas.data.lines import Lines, read_lines, stream_lines
from attlas.data.listed import Characters, Words
from attlas.data.loading import DataConfig, load_splits
from attlas.data.pair import Labelled, Pair
from attlas.data.shipped_corpus import ShippedData, attribution
from attlas.data.subwords import Subwords, train_subwords
from attlas.data.toy import ToyData
from attlas.data.vocabularies import (
    Vocabularies,
    VocabularyConfig,
    build_vocabularies,
    load_vocabulary,
)
from attlas.data.vocabulary import BEGIN, END, PAD, UNKNOWN, Vocabulary

__all__ = [
    "BEGIN",
    "END",
    "PAD",
    "UNKNOWN",
    "Batch",
    "Batches",
    "BatchingConfig",
    "Characters",
    "Corpus",
    "DataConfig",
    "EncodedCorpus",
    "FilesData",
    "FilterConfig",
    "FilterReport",
    "HuggingFaceData",
    "Labelled",
    "Lines",
    "Pair",
    "ShippedData",
    "SplitName",
    "Splits",
    "Subwords",
    "ToyData",
    "Vocabularies",
    "Vocabulary",
    "VocabularyConfig",
    "Words",
    "attribution",
    "batches_by_length",
    "build_vocabularies",
    "corpus_of",
    "encode_corpus",
    "load_splits",
    "load_vocabulary",
    "padded",
    "read_labelled",
    "read_lines",
    "read_pairs",
    "sample_corpus",
    "stream_lines",
    "train_subwords",
]
