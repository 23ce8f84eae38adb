"""Checks at the door of the model: numbers and bits become arrays, or are refused in one sentence."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bica.errors import ModelError


def as_numbers(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """A fresh array of float64.

    >>> as_numbers([0, "1"], "a list")
    Traceback (most recent call last):
    bica.errors.ModelError: a list must hold numbers
    """
    try:
        numbers = np.array(values)
    except ValueError:  # rows of different length
        raise ModelError(f"{what} must hold numbers in an even grid") from None
    if numbers.size and numbers.dtype.kind not in "biuf":
        raise ModelError(f"{what} must hold numbers")
    return numbers.astype(np.float64) + 0.0  # makes -0.0 an ordinary zero, so that equal models have equal bytes


def as_probabilities(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """A fresh array of numbers in [0, 1]."""
    numbers = as_numbers(values, what)
    outside = numbers[~((numbers >= 0) & (numbers <= 1))]
    if outside.size:
        raise ModelError(f"{what} must lie in [0, 1], but {outside.flat[0]:g} was given")
    return numbers


def as_bits(values: ArrayLike, what: str) -> NDArray[np.bool_]:
    """A fresh two-dimensional array of truth values, from zeros and ones."""
    if isinstance(values, np.ndarray) and values.dtype == np.bool_ and values.ndim == 2:
        return values.astype(np.bool_)
    numbers = as_numbers(values, what)
    if numbers.ndim != 2:
        raise ModelError(f"{what} needs two dimensions, but has {numbers.ndim}")
    strange = numbers[(numbers != 0) & (numbers != 1)]
    if strange.size:
        raise ModelError(f"{what} may hold 0 and 1 only, but {strange[0]:g} was given")
    return numbers.astype(np.bool_)


def as_places(chosen: Sequence[int] | NDArray[np.int64], count: int, what: str) -> NDArray[np.int64]:
    """Distinct whole numbers from 0 to ``count - 1``, in the order given.

    >>> as_places([2, 2], 3, "source")
    Traceback (most recent call last):
    bica.errors.ModelError: source 2 was chosen twice
    """
    places = np.asarray(chosen)
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
        raise ModelError(f"choose each {what} by its number, counted from 0")
    outside = places[(places < 0) | (places >= count)]
    if outside.size:
        raise ModelError(f"there is no {what} {outside[0]}; they are numbered from 0 to {count - 1}")
    if np.unique(places).size < places.size:
        raise ModelError(f"{what} {np.flatnonzero(np.bincount(places) > 1)[0]} was chosen twice")
    return places.astype(np.int64)
