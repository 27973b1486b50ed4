"""Features of texts: by hand, independent of each other where they must be, finite for strange texts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.datasets import texts
from sklearn.feature_extraction.text import TfidfVectorizer

from tolerances import EXACT

STRANGE = ["", " ", "...", "12345", "!!!", "a", "\n\n\n", "é ü", "x" * 5000, "http://a.b/c"]
SOME = [
    "Bottled water is good. It creates jobs, and people need jobs!",
    "water is bad because bottles r bad",
    "I dont agree. Why should we?",
    "Jobs are good, and water is good.",
    "People need water because water is life.",
]


def test_counts_by_hand() -> None:
    (row,) = texts.surface(["Yes, I dont agree! WHY should we? (See 12 pages: http://x.org)"]).to_dicts()
    words = ["Yes", "I", "dont", "agree", "WHY", "should", "we", "See", "pages", "http", "x", "org"]
    assert row["log_words"] == pytest.approx(np.log1p(len(words)), abs=EXACT)
    assert row["log_types"] == pytest.approx(np.log1p(len(words)), abs=EXACT)
    assert row["log_sentences"] == pytest.approx(np.log(3), abs=EXACT)
    assert row["word_length"] == pytest.approx(np.mean([len(w) for w in words]), abs=EXACT)
    assert row["shouted_words"] == pytest.approx(1 / len(words), abs=EXACT)
    assert row["first_person"] == pytest.approx(2 / len(words), abs=EXACT)  # I, we
    assert row["modals"] == pytest.approx(1 / len(words), abs=EXACT)
    assert row["missing_apostrophes"] == pytest.approx(np.log(2), abs=EXACT)
    assert row["numbers"] == pytest.approx(np.log(2), abs=EXACT)
    assert row["exclamations"] == row["questions"] == row["brackets"] == pytest.approx(np.log(2), abs=EXACT)
    assert (row["has_link"], row["starts_with_capital"], row["ends_with_stop"]) == (1.0, 1.0, 0.0)


def test_surface_is_of_one_text_alone_and_finite() -> None:
    together = texts.surface([*SOME, *STRANGE])
    alone = pl.concat([texts.surface([text]) for text in [*SOME, *STRANGE]])
    np.testing.assert_array_equal(together.to_numpy(), alone.to_numpy())
    assert np.isfinite(together.to_numpy()).all()


def test_rarity_by_hand() -> None:
    found = texts.rarity(["a b", "a c c", "", "a"])
    # a is in three texts of four, b and c in one each.
    assert found["words_of_one_text"].to_list() == pytest.approx([1 / 2, 2 / 3, 0, 0], abs=EXACT)
    assert found["words_of_three_texts"].to_list() == pytest.approx([1, 1, 0, 1], abs=EXACT)
    log = np.log
    expected = [(log(4 / 3) + log(4)) / 2, (log(4 / 3) + 2 * log(4)) / 3, 0, log(4 / 3)]
    assert found["mean_inverse_frequency"].to_list() == pytest.approx(expected, abs=EXACT)


def test_situation_is_the_cosine_to_the_others() -> None:
    group = np.array([1, 0, 1, 1, 7])
    found = texts.situation(SOME, {"topic": group})
    x = TfidfVectorizer(sublinear_tf=True).fit_transform(SOME).toarray()
    for i in range(4):
        others = [j for j in range(5) if j != i and group[j] == group[i]]
        if not others:
            assert found.row(i) == (0.0, 0.0)
            continue
        total = x[others].sum(axis=0)
        assert found["topic_centre"][i] == pytest.approx(x[i] @ total / np.linalg.norm(total), abs=EXACT)
        assert found["topic_nearest"][i] == pytest.approx(max(x[i] @ x[j] for j in others), abs=EXACT)
    assert found.row(4) == (0.0, 0.0)


@pytest.mark.parametrize("kind", list(texts.KINDS))
def test_semantic_is_an_exact_decomposition_with_its_signs_fixed(kind: str) -> None:
    found = texts.semantic(SOME, 3, kind, min_texts=2)
    assert found.equals(texts.semantic(SOME, 3, kind, min_texts=2))
    assert found.shape == (5, 3)
    x = TfidfVectorizer(sublinear_tf=True, **(texts.KINDS[kind] | {"min_df": 2})).fit_transform(SOME).toarray()
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    sign = np.sign(vt[np.arange(3), np.abs(vt[:3]).argmax(axis=1)])
    np.testing.assert_allclose(found.to_numpy(), (u * s)[:, :3] * sign, atol=1e-6)


def test_semantic_takes_no_more_vectors_than_there_are() -> None:
    assert texts.semantic(SOME, 50, "words", min_texts=1).shape == (5, 4)
