"""Texts as numbers: what can be counted on the surface, how a text sits among its neighbours, and TF-IDF + SVD.

Nothing here sees a label, a rank or a vote. The counts of a text need that text alone. Document frequencies, the
neighbours of a text and the singular vectors are taken from all texts that are given, those of held-out topics
included: the texts that a model is to judge are known when it is asked, and the published experiments took word vectors
and vocabularies from more than the training topics as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

__all__ = ["KINDS", "rarity", "semantic", "situation", "surface"]

FloatArray = npt.NDArray[np.float64]

_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_SENTENCE_END = re.compile(r"[.!?]+(?:\s+|$)")
_VOWELS = re.compile(r"[aeiouy]+")
_LONG, _VERY_LONG = 7, 10  # letters

# Shares of the words that are one of these.
WORD_LISTS = {
    "first_person": "i me my mine myself we us our ours",
    "second_person": "you your yours yourself u ur",
    "third_person": "he she they him her them his their it its",
    "connectives": "because therefore thus hence since so consequently however although though but while whereas "
    "moreover furthermore also besides first second secondly finally instead example instance such",
    "modals": "should would could may might must can will shall ought",
    "negations": "not no never none nothing don't doesn't can't cannot isn't aren't won't didn't",
    "hedges": "think believe feel maybe perhaps probably opinion guess seems",
    "question_words": "what why who how when where which",
}  # fmt: skip
# Apostrophes left out: the commonest slip of spelling that needs no dictionary.
MISSING_APOSTROPHES = "dont cant doesnt isnt wont didnt im ive thats arent shouldnt wouldnt couldnt"

# Logarithms of 1 + how often these occur in a text.
PATTERNS = {
    "exclamations": r"!",
    "questions": r"\?",
    "commas": r",",
    "quotation_marks": r'["“”]',
    "brackets": r"\(",
    "numbers": r"\d+",
    "apostrophes": r"['’]",
    "colons_semicolons": r"[:;]",
    "line_breaks": r"\n",
    "missing_spaces": r"[a-z][.,!?][A-Za-z]",
    "double_spaces": r"  ",
    "stretched_letters": r"(\w)\1\1",
    "lower_case_i": r"\bi\b",
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}


def surface(texts: Sequence[str]) -> pl.DataFrame:
    """Counts, shares and readability of each text, none of which depends on another text.

    Parameters
    ----------
    texts : sequence of str, n
        An empty text has zeros wherever a share has nothing to be a share of.

    Returns
    -------
    features : data frame, n rows
        Finite floats; see the names.
    """
    return pl.DataFrame([_counts(text) for text in texts])


def _counts(text: str) -> dict[str, float]:
    written = _WORD.findall(text)
    words = [word.lower().replace("’", "'") for word in written]
    sentences = [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
    n_words, n_sentences, n_chars = len(words), max(len(sentences), 1), max(len(text), 1)
    lengths = np.array([len(word) for word in words] or [0])
    n_types = len(set(words))
    syllables = sum(max(1, len(_VOWELS.findall(word))) for word in words)
    per_word = _share(n_words)
    features = {
        "log_words": np.log1p(n_words),
        "log_characters": np.log1p(len(text)),
        "sqrt_words": np.sqrt(n_words),
        "log_types": np.log1p(n_types),
        "log_sentences": np.log(n_sentences),
        "log_words_a_sentence": np.log1p(n_words / n_sentences),
        "word_length": lengths.mean(),
        "long_words": (lengths >= _LONG).mean(),
        "very_long_words": (lengths >= _VERY_LONG).mean(),
        "types_a_word": per_word(n_types),
        "capitals": sum(c.isupper() for c in text) / n_chars,
        "shouted_words": per_word(sum(word.isupper() and len(word) > 1 for word in written)),
        "starts_with_capital": float(text[:1].isupper()),
        "sentences_with_capital": sum(part[:1].isupper() for part in sentences) / n_sentences,
        "ends_with_stop": float(text.rstrip()[-1:] in tuple('.!?"')),
        "commas_a_word": per_word(text.count(",")),
        "has_link": float("http" in text or "www." in text),
        "has_ellipsis": float(".." in text),
        "syllables_a_word": per_word(syllables),
        "reading_ease": 1.015 * n_words / n_sentences + 84.6 * per_word(syllables),  # Flesch, sign and constant aside
        "readability_index": 4.71 * lengths.mean() + 0.5 * n_words / n_sentences,  # ARI, constant aside
        "missing_apostrophes": np.log1p(sum(word in _MISSPELT for word in words)),
    }
    features |= {name: np.log1p(len(pattern.findall(text))) for name, pattern in _PATTERNS.items()}
    for name, known in _LISTS.items():
        hits = sum(word in known for word in words)
        features[name] = per_word(hits)
        if name in ("connectives", "negations", "hedges"):
            features[f"_log{name}"] = np.log1p(hits)
    return {name: float(value) for name, value in features.items()}


_LISTS = {name: frozenset(words.split()) for name, words in WORD_LISTS.items()}
_MISSPELT = frozenset(MISSING_APOSTROPHES.split())


def _share(total: int) -> Callable[[float], float]:
    return lambda part: part / total if total else 0.0


def rarity(texts: Sequence[str]) -> pl.DataFrame:
    """How rare the words of a text are among all texts: shares of words in 1 text and in at most 3, mean log inverse.

    Words that occur nowhere else are often misspelt. n rows.
    """
    words = [[word.lower() for word in _WORD.findall(text)] for text in texts]
    in_texts: dict[str, int] = {}
    for mine in words:
        for word in set(mine):
            in_texts[word] = in_texts.get(word, 0) + 1
    rows = []
    for mine in words:
        count = np.array([in_texts[word] for word in mine] or [len(texts)], dtype=float)
        rows.append(((count == 1).mean(), (count <= 3).mean(), np.log(len(texts) / count).mean()))
    return pl.DataFrame(np.array(rows), schema=["words_of_one_text", "words_of_three_texts", "mean_inverse_frequency"])


def situation(texts: Sequence[str], groups: dict[str, npt.ArrayLike]) -> pl.DataFrame:
    """Where a text stands among the texts of its group: cosines of TF-IDF to the sum of the others and to the nearest.

    Parameters
    ----------
    texts : sequence of str, n
    groups : dict of name to array, shape (n,)
        Such as the topic of each text. The cosine is 0 for a text that is alone.

    Returns
    -------
    features : data frame, n rows
        ``<name>_centre`` (on the point of the discussion) and ``<name>_nearest`` (said before) for each grouping.
    """
    vectors = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    features: dict[str, FloatArray] = {}
    for name, group in groups.items():
        centre, nearest = np.zeros(len(texts)), np.zeros(len(texts))
        for members in _members(np.asarray(group)):
            if len(members) == 1:
                continue
            mine = vectors[members]
            cosines = (mine @ mine.T).toarray()
            total = np.asarray(mine.sum(axis=0)).ravel()
            alone = np.diag(cosines).copy()
            # |sum of the others|² = |total|² - 2 x·total + |x|²
            dot = mine @ total
            others = np.sqrt(np.maximum(total @ total - 2.0 * dot + alone, 1e-300))
            centre[members] = (dot - alone) / others
            np.fill_diagonal(cosines, 0.0)
            nearest[members] = cosines.max(axis=1)
        features |= {f"{name}_centre": centre, f"{name}_nearest": nearest}
    return pl.DataFrame(features)


def _members(group: npt.NDArray[Any]) -> list[npt.NDArray[np.int64]]:
    _, code = np.unique(group, return_inverse=True)
    return [np.flatnonzero(code == g) for g in range(code.max() + 1)]


# What the columns of a TF-IDF matrix are: words, pieces of words, or words, pairs of words and stops that are in many
# texts, which tell how something is said rather than what about.
KINDS: dict[str, dict[str, Any]] = {
    "words": {"min_df": 3},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4), "min_df": 5},
    "common": {"ngram_range": (1, 2), "min_df": 30, "token_pattern": r"(?u)\b\w+\b|[.,!?;:]"},
}


def semantic(texts: Sequence[str], n_components: int, kind: str, *, min_texts: int | None = None) -> pl.DataFrame:
    """Coordinates of the texts on the first singular vectors of their TF-IDF matrix.

    Parameters
    ----------
    texts : sequence of str, n
    n_components : int
        At most; one fewer than the matrix has rows or columns.
    kind : {"words", "characters", "common"}
        See ``KINDS``.
    min_texts : int, optional
        Columns that occur in fewer texts are left out.

    Returns
    -------
    features : data frame, n rows
        Not standardised; signs are fixed by the largest loading of each vector.
    """
    options = KINDS[kind] | ({} if min_texts is None else {"min_df": min_texts})
    matrix = TfidfVectorizer(sublinear_tf=True, **options).fit_transform(texts)
    svd = TruncatedSVD(min(n_components, min(matrix.shape) - 1), n_iter=7, random_state=0)
    scores = svd.fit_transform(matrix)
    largest = np.abs(svd.components_).argmax(axis=1)
    sign = np.sign(svd.components_[np.arange(len(largest)), largest])
    return pl.DataFrame(scores * sign, schema=[f"{kind}_{k}" for k in range(scores.shape[1])])
