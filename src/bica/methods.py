"""Every method by its name; a new method is one file and one entry here."""

from dataclasses import fields
from importlib import import_module
from typing import Any

from bica.errors import SettingError
from bica.model.fit import Method

METHODS = {  # imported when first asked for, so that listing the names is quick
    "likelihood": "bica.estimate.likelihood:Likelihood",
    "findbica": "bica.estimate.findbica:FindBICA",
    "mac": "bica.rivals.mac:MAC",
    "grecond": "bica.rivals.grecond:GreConD",
    "grecond-essential": "bica.rivals.grecond:GreConDEssential",
    "message-passing": "bica.rivals.message_passing:MessagePassing",
    "fastica": "bica.rivals.fastica:FastICA",
}
COUNTED = (
    "mac",
    "grecond",
    "grecond-essential",
    "message-passing",
    "fastica",
)  # their probabilities are counts, not estimates
REFERENCES = ("fastica",)  # methods for another model, shown for reference; not expected to find OR mixtures


def method_named(name: str, **settings: Any) -> Method:
    """The method of this name with these settings; the others keep the method's own defaults.

    >>> method_named("findbica", min_probability=0.01).min_probability
    0.01
    """
    known = settings_of(name)
    for setting in settings:
        if setting not in known:
            raise SettingError(f"method {name!r} has no setting {setting!r}; it knows {', '.join(known)}")
    method: Method = _class_of(name)(**settings)
    return method


def settings_of(name: str) -> tuple[str, ...]:
    """The names of the settings that the method of this name has.

    >>> settings_of("findbica")[:2]
    ('min_probability', 'significance')
    """
    return tuple(field.name for field in fields(_class_of(name)))


def needs_n_sources(name: str) -> bool:
    """Whether the method of this name must be given the number of sources.

    >>> needs_n_sources("mac"), needs_n_sources("likelihood")
    (True, False)
    """
    return "n_sources" in settings_of(name)


def _class_of(name: str) -> Any:
    if name not in METHODS:
        raise SettingError(
            f"there is no method {name!r}; choose from {', '.join(map(repr, METHODS))}, "
            "or give an object with fit(data, rng)"
        )
    module, _, title = METHODS[name].partition(":")
    return getattr(import_module(module), title)
