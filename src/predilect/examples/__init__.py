"""Files of answers to try things with: ``python -m predilect.examples`` copies them into a folder."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent
# Each file, and what it is.
FILES = {
    "votes.csv": "8 931 votes of 124 people on 59 language models (LLMFAO, 2023, CC BY 4.0)",
    "survey.csv": "a made-up survey: 150 people of three ages, 12 pairs each of things to spend on",
    "choices.csv": "made-up choices: 100 people, 10 tasks each of three coffee machines or none",
    "market.csv": "coffee machines on offer together, today and with a new one",
}


def copy_into(folder: Path | str) -> dict[str, bool]:
    """Write the example files into a folder.

    Parameters
    ----------
    folder : path
        Must exist. A file that is there already stays as it is.

    Returns
    -------
    written : dict of str to bool
        For each name of ``FILES`` whether it was written.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    written = {}
    for name in FILES:
        text = _votes() if name == "votes.csv" else (_HERE / name).read_text(encoding="utf-8")
        try:
            with (Path(folder) / name).open("x", encoding="utf-8", newline="") as file:
                file.write(text)
            written[name] = True
        except FileExistsError:
            written[name] = False
    return written


def _votes() -> str:
    """The bundled votes as arenas have them: who judged, two models, which side won, and how long both answers were."""
    import polars as pl

    texts = pl.read_csv(_HERE / "llmfao" / "items.csv")
    # The binary logarithm of the number of words: one unit is twice as long.
    texts = texts.with_columns(words=(1 + pl.col("n_words")).log(2))
    model, words = (dict(texts.select("item", name).iter_rows()) for name in ("model", "words"))
    votes = pl.read_csv(_HERE / "llmfao" / "comparisons.csv.gz", infer_schema=False)
    left_won, right_won = (pl.col("winner") == pl.col(side) for side in ("left", "right"))
    side = pl.when(left_won).then(pl.lit("model_a")).when(right_won).then(pl.lit("model_b")).otherwise(pl.lit("tie"))
    return votes.select(
        judge="user",
        model_a=pl.col("left").replace_strict(model),
        model_b=pl.col("right").replace_strict(model),
        winner=side,
        words_a=pl.col("left").replace_strict(words),
        words_b=pl.col("right").replace_strict(words),
    ).write_csv()
