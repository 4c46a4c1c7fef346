"""Data: corpora, vocabularies, batching, the toy tasks, the shipped corpus."""

from attlas.data.batch import Batch
from attlas.data.batching import Batches, batches_by_length, padded
from attlas.data.breaks import as_one_line
from attlas.data.bucketing import BatchingConfig, Bucketed
from attlas.data.conllu import Sentence, Word, read_conllu
from attlas.data.corpus import Corpus, SplitName, Splits, corpus_of
from attlas.data.encoded import EncodedCorpus, encode_corpus, sample_corpus
from attlas.data.files import FilesData, read_pairs
from attlas.data.filters import FilterConfig, FilterReport
from attlas.data.huggingface import HuggingFaceData
from attlas.data.labelled import LabelledTexts, read_labelled, read_labelled_texts
from attlas.data.labelled_batches import (
    EncodedTexts,
    LabelledBatch,
    LabelledBatches,
    encode_labelled,
    labelled_batch,
    sample_labelled,
)
from attlas.data.labelled_corpus import LabelledCorpus, LabelledSplits, labelled_corpus_of
from attlas.data.labelled_data import LabelledData
from attlas.data.labels import LabelledVocabularies, Labels, labels_told
from attlas.data.lines import Lines, read_lines, stream_lines
from attlas.data.listed import Characters, Words
from attlas.data.loading import DataConfig, load_splits
from attlas.data.pair import Labelled, Pair, Place
from attlas.data.shipped_corpus import ShippedData, attribution
from attlas.data.subwords import Subwords, train_subwords
from attlas.data.toy import ToyData
from attlas.data.vocabularies import (
    Vocabularies,
    VocabularyConfig,
    build_vocabularies,
    build_vocabulary,
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
    "Bucketed",
    "Characters",
    "Corpus",
    "DataConfig",
    "EncodedCorpus",
    "EncodedTexts",
    "FilesData",
    "FilterConfig",
    "FilterReport",
    "HuggingFaceData",
    "Labelled",
    "LabelledBatch",
    "LabelledBatches",
    "LabelledCorpus",
    "LabelledData",
    "LabelledSplits",
    "LabelledTexts",
    "LabelledVocabularies",
    "Labels",
    "Lines",
    "Pair",
    "Place",
    "Sentence",
    "ShippedData",
    "SplitName",
    "Splits",
    "Subwords",
    "ToyData",
    "Vocabularies",
    "Vocabulary",
    "VocabularyConfig",
    "Word",
    "Words",
    "as_one_line",
    "attribution",
    "batches_by_length",
    "build_vocabularies",
    "build_vocabulary",
    "corpus_of",
    "encode_corpus",
    "encode_labelled",
    "labelled_batch",
    "labelled_corpus_of",
    "labels_told",
    "load_splits",
    "load_vocabulary",
    "padded",
    "read_conllu",
    "read_labelled",
    "read_labelled_texts",
    "read_lines",
    "read_pairs",
    "sample_corpus",
    "sample_labelled",
    "stream_lines",
    "train_subwords",
]
