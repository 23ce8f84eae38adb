"""The verdicts of a diagnosis in words; plain text, so that a model can be shown without loading NumPy."""

VERDICTS = {
    "fits": "the rows are as the model has them",
    "doubtful": "take the model with care",
    "misfit": "the rows contradict the model",
    "open": "so far nothing speaks against independent sources; a fit will tell",
}


def verdict_words(verdict: str) -> str:
    """The verdict and what it means.

    >>> verdict_words("fits")
    'fits: the rows are as the model has them'
    """
    return f"{verdict}: {VERDICTS[verdict]}" if verdict in VERDICTS else verdict
