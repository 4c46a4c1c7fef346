import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import read_lines
from attlas.errors import AttlasError
from attlas.metrics import better_tokenizers, check_tokenizer, corpus_bleu, corpus_score
from attlas.metrics import translation as bleu_tokenizer

HYPOTHESES = ["The cat sat on the mat.", "A dog , brown and big", "", "Völlig falsch!"]
REFERENCES = ["The cat sat on a mat.", "A big, brown dog", "nothing", "Ganz richtig."]
SENTENCES = st.lists(st.text(st.sampled_from("ab c.,Ü日")), min_size=1, max_size=5)


def agrees(hypotheses, references, tokenizer="13a"):
    """references: of each reference set one list."""
    scores = corpus_score(hypotheses, references, tokenizer)
    asian = tokenizer in ("char", "zh", "ja-mecab", "ko-mecab")
    ter = sacrebleu.TER(normalized=asian, asian_support=asian)
    theirs = sacrebleu.BLEU(tokenize=tokenizer), sacrebleu.CHRF(), ter
    for score, metric in zip(scores, theirs, strict=True):
        assert score.value == metric.corpus_score(hypotheses, references).score
        assert score.signature == str(metric.get_signature())


def test_corpus_scores_are_those_of_sacrebleu_with_its_signatures():
    agrees(HYPOTHESES, [REFERENCES])
    assert corpus_score(HYPOTHESES, REFERENCES) == corpus_score(HYPOTHESES, [REFERENCES])
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
    size, text = len(hypotheses), st.text(st.sampled_from("ab c.,Ü日"), min_size=1)
    first = data.draw(st.lists(text, min_size=size, max_size=size))
    other = st.lists(st.none() | text, min_size=size, max_size=size)
    agrees(hypotheses, [first, *data.draw(st.lists(other, max_size=2))], tokenizer)


@pytest.mark.parametrize(
    ("hypotheses", "references"), [("abc", ["a", "b", "c"]), (["a", "b", "c"], "abc"), ("a", "a")]
)
def test_a_text_is_not_taken_for_the_list_of_its_letters(hypotheses, references):
    with pytest.raises(AttlasError, match=r"lists of translations.*\[text\] for text"):
        corpus_score(hypotheses, references)


def test_several_references_are_counted_in_the_signatures():
    several = corpus_score(HYPOTHESES, [REFERENCES, HYPOTHESES])
    assert several.bleu.value > 99
    assert all("nrefs:2" in score.signature for score in several)
    some = corpus_score(HYPOTHESES, [REFERENCES, ["one", None, None, None]])
    assert all("nrefs:var" in score.signature for score in some)
    with pytest.raises(AttlasError, match="4 translations and 3 references"):
        corpus_score(HYPOTHESES, [REFERENCES, REFERENCES[1:]])
    with pytest.raises(AttlasError, match="none for the translation at index 1"):
        corpus_score(["a", "b"], [["a", None], [None, None]])


def test_asian_text_without_spaces_has_a_ter_of_its_characters():
    hypotheses, references = ["私は猫が好きです。"], ["私は犬が好きです。"]
    expected = sacrebleu.TER(normalized=True, asian_support=True)
    assert corpus_score(hypotheses, references).ter.value == 100
    for tokenizer in ("char", "zh"):
        ter = corpus_score(hypotheses, references, tokenizer).ter
        assert 0 < ter.value == expected.corpus_score(hypotheses, [references]).score < 30
        assert ter.signature == str(expected.get_signature())
        assert "asian:yes" in ter.signature


@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [
        ("ฉันชอบแมวมาก", "ฉันชอบหมามาก"),
        ("ຂ້ອຍມັກແມວ", "ຂ້ອຍມັກໝາ"),
        ("ကျွန်တော်ကြောင်ချစ်တယ်", "ကျွန်တော်ခွေးချစ်တယ်"),
        ("ខ្ញុំចូលចិត្តឆ្មា", "ខ្ញុំចូលចិត្តឆ្កែ"),
    ],
)
def test_other_text_without_spaces_has_a_ter_of_its_characters_too(hypothesis, reference):
    assert corpus_score([hypothesis], [reference]).ter.value == 100
    ter = corpus_score([hypothesis], [reference], "char").ter
    characters = sacrebleu.TER().corpus_score([" ".join(hypothesis)], [[" ".join(reference)]])
    assert 0 < characters.score < 100
    assert ter.value == pytest.approx(characters.score)
    assert ter.signature.endswith("|chars:yes")


@pytest.mark.parametrize(
    ("text", "fitting"),
    [
        ("私は猫が好きです。", ("ja-mecab", "char")),
        ("我喜欢小猫，也喜欢狗。", ("zh", "char")),
        ("ฉันชอบแมวมาก", ("char",)),
        ("ខ្ញុំចូលចិត្តឆ្មា", ("char",)),
        ("私 は 猫 が 好き です 。", ()),
        ("나는 고양이를 좋아한다.", ()),
        ("Ich mag 猫.", ()),
        ("", ()),
    ],
)
def test_a_script_without_spaces_is_reported_by_its_letters(text, fitting):
    assert better_tokenizers([text] * 3, "13a") == fitting
    assert better_tokenizers([text] * 3, "intl") == fitting
    assert better_tokenizers([text] * 3, "char") == ()


def test_real_japanese_is_reported_where_it_is_not_divided_into_words(shared_data):
    divided = read_lines(shared_data / "tanaka-en-ja" / "dev.ja.gz").texts[:200]
    whole = [line.replace(" ", "") for line in divided]
    assert better_tokenizers(divided, "13a") == ()
    assert better_tokenizers(whole, "13a") == ("ja-mecab", "char")
    others = [*whole[1:], whole[0]]
    agrees(others, [whole], "char")


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
