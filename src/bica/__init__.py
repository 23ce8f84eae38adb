"""bica: the independent hidden causes behind on/off data.

The public names load when they are first used, so that ``import bica`` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bica.version import __version__

if TYPE_CHECKING:
    from bica import applications, compare, errors, invert, metrics, report, simulate
    from bica.ahead import warmup
    from bica.data.patterns import PatternCounts
    from bica.estimate.findbica import FindBICA
    from bica.estimate.likelihood import Likelihood
    from bica.estimate.settings import KnownSource
    from bica.estimator import BICA
    from bica.model.fit import Fit
    from bica.model.noise import Noise
    from bica.model.or_mixture import OrMixture, load

_HOME = {
    "BICA": "bica.estimator",
    "FindBICA": "bica.estimate.findbica",
    "KnownSource": "bica.estimate.settings",
    "Likelihood": "bica.estimate.likelihood",
    "Fit": "bica.model.fit",
    "Noise": "bica.model.noise",
    "OrMixture": "bica.model.or_mixture",
    "PatternCounts": "bica.data.patterns",
    "load": "bica.model.or_mixture",
    "warmup": "bica.ahead",
}
_MODULES = ("applications", "compare", "errors", "invert", "metrics", "report", "simulate")

__all__ = [
    "BICA",
    "FindBICA",
    "Fit",
    "KnownSource",
    "Likelihood",
    "Noise",
    "OrMixture",
    "PatternCounts",
    "__version__",
    "applications",
    "compare",
    "errors",
    "invert",
    "load",
    "metrics",
    "report",
    "simulate",
    "warmup",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"bica.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'bica' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
