import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.metrics import corpus_score

HYPOTHESES = ["The cat sat on the mat.", "A dog , brown and big", "", "Völlig falsch!"]
REFERENCES = ["The cat sat on a mat.", "A big, brown dog", "nothing", "Ganz richtig."]
SENTENCES = st.lists(st.text(st.sampled_from("ab c.,Ü日")), min_size=1, max_size=5)


def agrees(hypotheses, references):
    scores = corpus_score(hypotheses, references)
    theirs = sacrebleu.BLEU(), sacrebleu.CHRF(), sacrebleu.TER()
    for score, metric in zip(scores, theirs, strict=True):
        assert score.value == metric.corpus_score(hypotheses, [references]).score
        assert score.signature == str(metric.get_signature())


def test_corpus_scores_are_those_of_sacrebleu_with_its_signatures():
    agrees(HYPOTHESES, REFERENCES)
    bleu = corpus_score(HYPOTHESES, REFERENCES).bleu
    assert "case:mixed" in bleu.signature
    assert "tok:13a" in bleu.signature
    assert bleu.signature in str(bleu)


@given(data=st.data(), hypotheses=SENTENCES)
def test_any_text_is_scored_as_sacrebleu_scores_it(data, hypotheses):
    references = data.draw(
        st.lists(
            st.text(st.sampled_from("ab c.,Ü日"), min_size=1),
            min_size=len(hypotheses),
            max_size=len(hypotheses),
        )
    )
    agrees(hypotheses, references)


def test_the_same_text_is_perfect():
    scores = corpus_score(REFERENCES, REFERENCES)
    assert (scores.bleu.value, scores.chrf.value, scores.ter.value) == pytest.approx((100, 100, 0))


def test_unequal_counts_are_an_error_that_names_both():
    with pytest.raises(AttlasError, match="4 translations and 3 references"):
        corpus_score(HYPOTHESES, REFERENCES[:3])
    with pytest.raises(AttlasError, match="at least one sentence"):
        corpus_score([], [])
