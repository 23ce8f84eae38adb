"""What a method found, and what it takes to be a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bica.data.patterns import PatternCounts
from bica.model.files import ModelDocument, read_document, write_document
from bica.model.or_mixture import OrMixture
from bica.version import __version__


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A model learned from data, with how it was learned and how sure it is."""

    model: OrMixture  # sources by falling probability, then by columns
    method: str = "given"
    n_samples: float | None = None
    log_likelihood: float | None = None
    probability_error: NDArray[np.float64] | None = None  # (n_sources,), standard errors where the method has them
    n_iter: int = 1
    converged: bool = True
    diagnostics: Mapping[str, Any] = field(default_factory=dict)  # plain values that JSON can hold

    def document(self) -> ModelDocument:
        """The fit in the plain values of a model file."""
        given = self.model.document()
        errors = [None] * self.model.n_sources if self.probability_error is None else self.probability_error.tolist()
        sources = tuple(replace(source, error=error) for source, error in zip(given.sources, errors, strict=True))
        return replace(given, sources=sources, fitted=self._fitted())

    def _fitted(self) -> dict[str, Any]:
        return {
            "by": f"bica {__version__}",
            "method": self.method,
            "n_samples": self.n_samples,
            "log_likelihood": self.log_likelihood,
            "n_iter": self.n_iter,
            "converged": self.converged,
            "diagnostics": dict(self.diagnostics),
        }

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a model file with the errors and how the model was found."""
        write_document(self.document(), path, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> Fit:
        """Read a model file with all that it tells; ``bica.load`` reads the model alone."""
        return Fit.of_document(read_document(path))

    @staticmethod
    def of_document(document: ModelDocument) -> Fit:
        """The fit that a model file describes."""
        errors = [source.error for source in document.sources]
        known = {name: document.fitted[name] for name in _FITTED if document.fitted.get(name) is not None}
        return Fit(
            OrMixture.of_document(document),
            probability_error=None if not errors or None in errors else np.array(errors, dtype=float),
            **known,
        )


_FITTED = ("method", "n_samples", "log_likelihood", "n_iter", "converged", "diagnostics")


class Method(Protocol):
    """Settings plus one verb: learn a model from counted rows, with chance from ``rng`` alone."""

    def fit(self, data: PatternCounts, rng: np.random.Generator) -> Fit:
        """Return a new value; the method itself stays as it was."""
