import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.metrics import bleu_tokenizer, check_tokenizer, corpus_bleu, corpus_score

HYPOTHESES = ["The cat sat on the mat.", "A dog , brown and big", "", "Völlig falsch!"]
REFERENCES = ["The cat sat on a mat.", "A big, brown dog", "nothing", "Ganz richtig."]
SENTENCES = st.lists(st.text(st.sampled_from("ab c.,Ü日")), min_size=1, max_size=5)


def agrees(hypotheses, references, tokenizer="13a"):
    scores = corpus_score(hypotheses, references, tokenizer)
    theirs = sacrebleu.BLEU(tokenize=tokenizer), sacrebleu.CHRF(), sacrebleu.TER()
    for score, metric in zip(scores, theirs, strict=True):
        assert score.value == metric.corpus_score(hypotheses, [references]).score
        assert score.signature == str(metric.get_signature())


def test_corpus_scores_are_those_of_sacrebleu_with_its_signatures():
    agrees(HYPOTHESES, REFERENCES)
    bleu = corpus_score(HYPOTHESES, REFERENCES).bleu
    assert "case:mixed" in bleu.signature
    assert "tok:13a" in bleu.signature
    assert bleu.signature in str(bleu)


def test_bleu_alone_is_that_of_all_scores_and_measures_nothing_else(monkeypatch):
    bleu = corpus_score(HYPOTHESES, REFERENCES, "char").bleu
    monkeypatch.setattr(sacrebleu.TER, "corpus_score", None)  # it would take minutes
    monkeypatch.setattr(sacrebleu.CHRF, "corpus_score", None)
    assert corpus_bleu(HYPOTHESES, REFERENCES, "char") == bleu
    with pytest.raises(AttlasError, match="one translation for each reference"):
        corpus_bleu(HYPOTHESES, REFERENCES[1:])


@pytest.mark.parametrize("tokenizer", ["13a", "intl", "char", "zh"])
@given(data=st.data(), hypotheses=SENTENCES)
def test_any_text_is_scored_as_sacrebleu_scores_it(tokenizer, data, hypotheses):
    references = data.draw(
        st.lists(
            st.text(st.sampled_from("ab c.,Ü日"), min_size=1),
            min_size=len(hypotheses),
            max_size=len(hypotheses),
        )
    )
    agrees(hypotheses, references, tokenizer)


def test_text_without_spaces_has_a_bleu_where_its_characters_are_the_tokens():
    hypotheses, references = ["我喜欢小猫。"], ["我喜欢小狗。"]
    assert corpus_score(hypotheses, references).bleu.value == 0
    for tokenizer in ("char", "zh"):
        bleu = corpus_score(hypotheses, references, tokenizer).bleu
        assert 0 < bleu.value < 100
        assert f"tok:{tokenizer}" in bleu.signature


@pytest.mark.parametrize(("tokenizer", "extra"), [("ja-mecab", "ja"), ("ko-mecab", "ko")])
def test_a_tokenizer_that_is_not_installed_names_its_package(monkeypatch, tokenizer, extra):
    monkeypatch.setattr(bleu_tokenizer, "find_spec", lambda name: None)
    with pytest.raises(AttlasError, match=rf"pip install 'sacrebleu\[{extra}\]'"):
        corpus_score(HYPOTHESES, REFERENCES, tokenizer)


def test_an_unknown_tokenizer_is_an_error_that_lists_those_there_are():
    with pytest.raises(AttlasError, match="got 'words'; use one of: 13a, intl, char, zh, ja-mecab"):
        check_tokenizer("words")


def test_the_same_text_is_perfect():
    scores = corpus_score(REFERENCES, REFERENCES)
    assert (scores.bleu.value, scores.chrf.value, scores.ter.value) == pytest.approx((100, 100, 0))


def test_unequal_counts_are_an_error_that_names_both():
    with pytest.raises(AttlasError, match="4 translations and 3 references"):
        corpus_score(HYPOTHESES, REFERENCES[:3])
    with pytest.raises(AttlasError, match="at least one sentence"):
        corpus_score([], [])
