"""What a method found, and what it takes to be a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.errors import ModelError, SettingError
from bica.model.files import (
    LEVEL,
    ModelDocument,
    as_json,
    known_numbers,
    probability_interval,
    rate_interval,
    read_document,
    write_document,
)
from bica.model.names import renamed
from bica.model.noise import as_numbers
from bica.model.or_mixture import OrMixture, in_order
from bica.text import USUAL_NOUNS, Nouns
from bica.version import __version__

if TYPE_CHECKING:
    from bica.report.page import Report


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A model learned from data, with how it was learned and how sure it is.

    >>> fit = Fit(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]), method="by hand", probability_error=[0.01, np.inf])
    >>> fit.probability_error
    array([0.01,  nan])
    """

    model: OrMixture  # sources by falling probability, then by columns
    method: str = "given"
    n_samples: float | None = None
    log_likelihood: float | None = None  # minus infinity if the data are impossible
    probability_error: NDArray[np.float64] | None = None  # (n_sources,), standard errors; NaN where there is none
    n_iter: int = 1
    converged: bool = True
    diagnostics: Mapping[str, Any] = field(default_factory=dict)  # plain values that JSON can hold
    nouns: Nouns = USUAL_NOUNS  # what the user calls sensors, sources and rows
    reach_error: NDArray[np.float64] | None = None  # (n_sensors, n_sources); NaN where not identified
    leak_error: NDArray[np.float64] | None = None  # (n_sensors,), of the false-alarm rates; NaN where there is none

    def __post_init__(self) -> None:
        if not self.method:
            raise ModelError("a fit needs the name of its method")
        if self.n_samples is not None and not 0 <= self.n_samples < np.inf:
            raise ModelError(f"n_samples cannot be {self.n_samples:g}")
        if self.log_likelihood is not None and not self.log_likelihood < np.inf:
            raise ModelError(f"a log-likelihood cannot be {self.log_likelihood:g}")
        if self.probability_error is not None:
            self._check_errors("probability_error", (self.model.n_sources,))
        if self.reach_error is not None:
            self._check_errors("reach_error", self.model.mixing.shape)
        if self.leak_error is not None:
            self._check_errors("leak_error", (self.model.n_sensors,))

    def _check_errors(self, name: str, shape: tuple[int, ...]) -> None:
        object.__setattr__(self, name, _checked_errors(getattr(self, name), name, shape))

    def interval(self, level: float = LEVEL) -> NDArray[np.float64]:
        """Where each true probability lies with probability ``level``: (n_sources, 2); NaN where there is no error.

        Symmetric in the log odds, where estimates spread about evenly also near 0 and 1. A value that was given has
        the error 0, and both ends are that value. That a source is there at all is taken for granted.

        >>> Fit(OrMixture([[1]], [0.02]), probability_error=[0.01]).interval().round(3)
        array([[0.007, 0.053]])
        """
        if not 0 < level < 1:
            raise SettingError(f"the level of an interval lies between 0 and 1, but {level:g} was given")
        ends = [probability_interval(*pair, level) for pair in zip(self.model.probability, self._errors(), strict=True)]
        return np.array(ends).reshape(-1, 2)

    def reach_interval(self, level: float = LEVEL) -> NDArray[np.float64]:
        """Where each true reach lies with probability ``level``: (n_sensors, n_sources, 2); NaN without an error.

        >>> model = OrMixture([[1], [1]], [0.2], reach=[[0.9], [0.4]])
        >>> Fit(model, reach_error=[[0.01], [np.nan]]).reach_interval().round(3)[:, 0]
        array([[0.879, 0.918],
               [  nan,   nan]])
        """
        errors = np.full(self.model.mixing.shape, np.nan) if self.reach_error is None else self.reach_error
        pairs = zip(self.model.reach.ravel(), errors.ravel(), strict=True)
        ends = [rate_interval(*pair, level) for pair in pairs]
        return np.array(ends).reshape(*errors.shape, 2)

    def _errors(self) -> NDArray[np.float64]:
        return np.full(self.model.n_sources, np.nan) if self.probability_error is None else self.probability_error

    def persistence(self) -> NDArray[np.float64] | None:
        """For how many slots each source stays on, on average (infinity: always); None where the order was not used.

        >>> Fit(OrMixture([[1], [1]], [0.5]), diagnostics={"persistence": [None]}).persistence()
        array([inf])
        """
        stays = self.diagnostics.get("persistence")
        if stays is None:
            return None
        known = isinstance(stays, Sequence) and len(stays) == self.model.n_sources
        if not known or not all(stay is None or (isinstance(stay, int | float) and stay >= 1) for stay in stays):
            raise ModelError(
                'the diagnostics have a "persistence" that is not one number of slots from 1 up, or null, per source'
            )
        return np.array([np.inf if stay is None else stay for stay in stays], dtype=np.float64)

    @property
    def support(self) -> NDArray[np.float64] | None:
        """How probable it is that each source is exactly right, given the rows: (n_sources,); None where unknown.

        Known where all sets of sources in doubt could be averaged over, or where the search left no doubt: for
        "likelihood" up to 12 sensors that vary, with sure edges and without a prior.

        >>> Fit(OrMixture([[1], [1]], [0.5]), diagnostics={"averaging": {"support": [0.8]}}).support
        array([0.8])
        """
        shares = self._averaged("support")
        return None if shares is None else np.array(shares, dtype=np.float64)

    @property
    def edge_support(self) -> NDArray[np.float64] | None:
        """How probable each edge of the model is, given the rows: (n_sensors, n_sources), 0 where there is no edge."""
        shares = self._averaged("edge_support")
        if shares is None:
            return None
        support = np.zeros(self.model.mixing.shape)
        for reached, known, column in zip(self.model.mixing.T, shares, support.T, strict=True):
            if len(known) != reached.sum():
                raise ModelError('the diagnostics have an "edge_support" that is not one number per edge')
            column[reached] = known
        return support

    def _averaged(self, name: str) -> Sequence[Any] | None:
        averaging = self.diagnostics.get("averaging")
        shares = averaging.get(name) if isinstance(averaging, Mapping) else None
        if shares is not None and not (isinstance(shares, Sequence) and len(shares) == self.model.n_sources):
            raise ModelError(f'the diagnostics have a "{name}" of other sources than the model')
        return shares

    def named(self, names: Mapping[str, str | None]) -> Fit:
        """The same fit with some sources named, as ``OrMixture.named`` does it.

        >>> Fit(OrMixture([[1]], [0.5])).named({"source1": "lift"}).model.source_names()
        ('lift',)
        """
        new = renamed(self.model.names, self.model.source_ids(), names, self.nouns.source[0])
        return replace(self, model=self.model.with_names(new))

    def source_names(self) -> tuple[str, ...]:
        """A name for every source, no two alike: the user's or, by its place, the user's noun and a number.

        >>> Fit(OrMixture([[1]], [0.5]), nouns=Nouns(sources="diseases")).source_names()
        ('disease1',)
        """
        return self.model.source_names(self.nouns.source[0])

    def all_named(self) -> Fit:
        """The same fit in which every source has the name that it is shown with."""
        return replace(self, model=self.model.with_names(self.source_names()))

    def with_names_of(self, earlier: Fit) -> Fit:
        """The same fit with the names and words of an earlier one, as far as sources are nearly the same."""
        nouns = earlier.nouns if self.nouns == USUAL_NOUNS else self.nouns
        return replace(self, model=self.model.with_names_of(earlier.model), nouns=nouns)

    def __repr__(self) -> str:
        rows = "" if self.n_samples is None else f", learned from {self.n_samples:.15g} rows by {self.method}"
        return f"<Fit: {self.model.n_sources} sources behind {self.model.n_sensors} sensors{rows}>"

    def _repr_html_(self) -> str:
        from bica.report import model_table

        return model_table(self)

    def report(self, table: Any = None, **settings: Any) -> Report:
        """A report to send, as ``OrMixture.report`` makes it, with all that this fit knows."""
        from bica.report import report_of

        return report_of(self, table, **settings)

    def in_order(self) -> Fit:
        """The fit with its sources by falling probability, then by columns; our methods do so, but others may not."""
        model, order = in_order(self.model, np.arange(self.model.n_sources))
        errors, stays = self.probability_error, self.persistence()
        noted: dict[str, Any] = {}
        if stays is not None:
            noted["persistence"] = [float(s) if s < np.inf else None for s in stays[order]]
        if self.support is not None:
            averaging = self.diagnostics["averaging"]
            moved = {name: [averaging[name][j] for j in order] for name in ("support", "edge_support")}
            noted["averaging"] = {**averaging, **moved}
        return replace(
            self,
            model=model,
            probability_error=None if errors is None else errors[order],
            reach_error=None if self.reach_error is None else self.reach_error[:, order],
            diagnostics={**self.diagnostics, **noted},
        )

    def document(self) -> ModelDocument:
        """The fit in the plain values of a model file."""
        errors = [None if np.isnan(error) else float(error) for error in self._errors()]
        leaks = None if self.leak_error is None else known_numbers(self.leak_error)
        document = self.model.document(errors, self._fitted(), self.reach_error)
        return replace(document, nouns=self.nouns, leak_error=leaks)

    def _fitted(self) -> dict[str, Any]:
        fitted = {name: as_json(getattr(self, name)) for name in _FITTED if getattr(self, name) is not None}
        return {} if fitted == _GIVEN else {"by": f"bica {__version__}", **fitted}

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a model file with the errors and how the model was found."""
        write_document(self.document(), path, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> Fit:
        """Read a model file with all that is in it; ``bica.load`` reads the model alone."""
        return Fit.of_document(read_document(path))

    @staticmethod
    def of_document(document: ModelDocument) -> Fit:
        """The fit that a model file describes; a model that was not learned is ``given``."""
        errors = np.array([np.nan if source.error is None else source.error for source in document.sources])
        fitted = {name: document.fitted[name] for name in _FITTED if name in document.fitted}
        if "log_likelihood" in fitted:
            fitted["log_likelihood"] = float(fitted["log_likelihood"])  # "-inf" is text there
        known = None if np.isnan(errors).all() else errors
        return Fit(
            OrMixture.of_document(document),
            probability_error=known,
            reach_error=_reach_errors(document),
            leak_error=None if document.leak_error is None else _with_gaps(document.leak_error),
            nouns=document.nouns,
            **fitted,
        )


def _reach_errors(document: ModelDocument) -> NDArray[np.float64] | None:
    if all(source.reach_error is None for source in document.sources):
        return None
    errors = np.full((len(document.sensors), len(document.sources)), np.nan)
    for j, source in enumerate(document.sources):
        if source.reach_error is not None:
            errors[list(source.sensors), j] = _with_gaps(source.reach_error)
    return errors


def _with_gaps(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values])


_FITTED = ("method", "n_samples", "log_likelihood", "n_iter", "converged", "diagnostics")
_GIVEN = {"method": "given", "n_iter": 1, "converged": True, "diagnostics": {}}


def _checked_errors(values: Any, what: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    errors = as_numbers(values, what)
    if errors.shape != shape:
        raise ModelError(
            f"{what} has shape {errors.shape}, but the model asks for {shape}: {shape[-1]} "
            f"{'sensors' if what == 'leak_error' else 'sources'}"
        )
    if (errors < 0).any():
        raise ModelError(f"a standard error cannot be {errors.min():g}")
    errors[~np.isfinite(errors)] = np.nan
    errors.flags.writeable = False
    return errors


class Method(Protocol):
    """Settings plus one verb: learn a model from counted rows, with random numbers from ``rng`` alone.

    A method that can make use of the order of rows may offer a second verb, ``fit_in_order(rows: Rows, rng) -> Fit``,
    for rows that are consecutive slots. It notes among the diagnostics of its fit, in plain values, ``"persistence"``
    (for how many slots each source stays on, on average, in the order of the sources; None: always) and ``"in_time"``
    (the sources ``"added"`` and ``"dropped"`` because of the order, each as the list of its sensors). Who has such
    rows (``bica.pipeline``) calls it where it exists, and ``fit`` where it does not.
    """

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Return a new value; the method itself stays as it was."""
