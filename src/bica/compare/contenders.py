"""Who takes part: a contender is a method with settings, and one entry here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bica.errors import SettingError
from bica.methods import COUNTED, METHODS, method_named, needs_n_sources
from bica.model.fit import Method


@dataclass(frozen=True, slots=True)
class Contender:
    """A method by name, with the settings that differ from its defaults."""

    method: str | None  # None: the true model itself, to see what decoding alone gets wrong
    settings: Mapping[str, Any] = field(default_factory=dict)  # plain values: they are written beside every result

    def prepared(self, n_sources: int) -> Method | None:
        """The method, told the true number of sources if it cannot do without."""
        if self.method is None:
            return None
        told = {"n_sources": n_sources} if needs_n_sources(self.method) else {}
        return method_named(self.method, **told, **self.settings)

    @property
    def estimates_probability(self) -> bool:
        """Whether its probabilities are more than counts of what it covered."""
        return self.method not in COUNTED


CONTENDERS = {
    **{name: Contender(name) for name in METHODS},
    **{f"findbica {e:g}": Contender("findbica", {"min_probability": e}) for e in (0.005, 0.01, 0.03, 0.05, 0.08)},
    "truth": Contender(None),
}


def contender(name: str) -> Contender:
    """The contender of this name."""
    if name not in CONTENDERS:
        raise SettingError(f"there is no contender {name!r}; choose from {', '.join(map(repr, CONTENDERS))}")
    return CONTENDERS[name]
