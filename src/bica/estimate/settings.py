"""What can be set on the likelihood learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bica.errors import SettingError
from bica.estimate.prior_knowledge import KnownSource, forbidden_sets, known_sources
from bica.model.noise import Noise


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Noise, prior knowledge and a floor, checked.

    >>> Settings(forbidden=["door", ("door", "window")]).forbidden
    (('door',), ('door', 'window'))
    """

    noise: Noise | Literal["estimate", "per-sensor"] = "estimate"  # one flip rate for all, or one a sensor
    min_probability: float | None = None  # rarer sources are dropped; None leaves the choice to the likelihood
    known: Sequence[KnownSource] = ()  # also as tuples or mappings
    forbidden: Sequence[str | Sequence[str]] = ()  # sensors that are never all driven by one unknown source
    prior: tuple[float, float] | None = None  # a Beta prior on every probability
    n_jobs: int | None = None  # threads for tables of many sensors; None: one a core

    def __post_init__(self) -> None:
        if self.min_probability is not None and not 0 <= self.min_probability < 1:
            raise SettingError(f"min_probability must lie in [0, 1), but {self.min_probability:g} was given")
        if self.prior is not None and not (len(self.prior) == 2 and min(self.prior) >= 1):
            raise SettingError(
                f"a Beta prior is two numbers of at least 1 (they count rows), but {self.prior} was given"
            )
        if self.n_jobs is not None and self.n_jobs < 1:
            raise SettingError(
                f"n_jobs counts threads from 1 up, or is None for one a core, but {self.n_jobs} was given"
            )
        object.__setattr__(self, "known", known_sources(self.known))
        object.__setattr__(self, "forbidden", forbidden_sets(self.forbidden))
