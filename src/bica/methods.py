"""Every method by its name; a new method is one file and one entry here."""

from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from numbers import Real
from typing import Any, Literal, get_args

from bica.errors import SettingError
from bica.model.fit import Method
from bica.model.noise import Noise

METHODS = {  # imported when first asked for, so that listing the names is quick
    "likelihood": "bica.estimate.likelihood:Likelihood",
    "findbica": "bica.estimate.findbica:FindBICA",
    "mac": "bica.rivals.mac:MAC",
    "grecond": "bica.rivals.grecond:GreConD",
    "grecond-essential": "bica.rivals.grecond:GreConDEssential",
    "grecond-plus": "bica.rivals.grecond:GreConDPlus",
    "message-passing": "bica.rivals.message_passing:MessagePassing",
    "ormachine": "bica.rivals.or_machine:OrMachine",
    "asso": "bica.rivals.asso:Asso",
    "elbmf": "bica.rivals.elbmf:ELBMF",
    "attractor": "bica.rivals.attractor:Attractor",
    "buffet": "bica.rivals.buffet:IndianBuffet",
    "noca": "bica.rivals.noca:NOCA",
    "beta": "bica.rivals.beta:BetaSources",
    "aspect": "bica.rivals.aspect:AspectBernoulli",
    "quartets": "bica.rivals.quartets:Quartets",
    "xor": "bica.rivals.xor:XorICA",
    "linear": "bica.rivals.linear:LinearSums",
    "fastica": "bica.rivals.fastica:FastICA",
}
COUNTED = (  # probabilities are counted
    "mac",
    "grecond",
    "grecond-essential",
    "grecond-plus",
    "message-passing",
    "ormachine",
    "asso",
    "elbmf",
    "attractor",
    "buffet",
    "beta",
    "aspect",
    "linear",
    "fastica",
)
REFERENCES = (  # methods for another model, shown for reference; not expected to find OR mixtures
    "buffet",  # one probability for all sources, and links that fail: chains split sources of unequal frequency
    "beta",  # graded sources that add up
    "aspect",  # shares of a row that add up to one
    "noca",  # links that fail, each with its own probability
    "quartets",  # links that fail now and then: where they never do, two sources behind four sensors look like one
    "xor",
    "linear",  # levels that add up in measurements
    "fastica",
)
WIDE_ONLY = (  # need several sensors per source: where there are few, noise explains the rows as well
    "ormachine",
    "attractor",
    "buffet",
    "noca",
    "beta",
    "aspect",
    "quartets",
)


NoiseName = Literal["auto", "estimate", "two-rates", "per-sensor"]
NoiseSetting = Noise | float | NoiseName


def method_named(name: str, *, spelled: Callable[[str], str] = repr, **settings: Any) -> Method:
    """The method of this name with these settings; the others keep the method's own defaults.

    A setting that the method does not have is refused, ``spelled`` as the user wrote it; but ``n_jobs`` is left out
    for methods of one thread.

    >>> method_named("findbica", min_probability=0.01).min_probability
    0.01
    >>> method_named("findbica", n_sources=2, spelled=lambda name: "--sources")
    Traceback (most recent call last):
    bica.errors.SettingError: method 'findbica' has no setting --sources, which is for 'likelihood', 'mac', \
'message-passing', 'ormachine', 'asso', 'elbmf', 'noca', 'beta', 'aspect', 'linear', 'fastica'; \
leave it out, or choose one of these
    """
    known = settings_of(name)
    for setting in settings:
        if setting not in known and setting != "n_jobs":
            raise SettingError(_refusal(name, setting, spelled))
    method: Method = _class_of(name)(**{setting: settings[setting] for setting in settings if setting in known})
    return method


DEFAULTS: dict[str, Any] = {  # of the settings that go to whatever method was chosen
    "noise": "auto",
    "min_probability": None,
    "significance": 0.05,
    "known": (),
    "forbidden": (),
    "prior": None,
    "edges": "auto",
    "n_sources": None,
    "time_limit": None,
    "start": None,
}


def chosen_method(method: str | Method, n_jobs: int | None = None, **given: Any) -> Method:
    """A method by its name or as an object; ``given`` are settings of any method, refused if changed in vain.

    >>> chosen_method("findbica", **{**DEFAULTS, "noise": 0.1}).noise
    Noise(false_alarm=0.1, miss=0.1)
    """
    given = given | {"noise": noise_setting(given["noise"])}
    changed = {name: value for name, value in given.items() if value != DEFAULTS[name]}
    if given["noise"] == "auto":
        del given["noise"]  # every method has its own idea of that
    if isinstance(method, str):
        ours = {name: given[name] for name in settings_of(method) if given.get(name) is not None}
        return method_named(method, n_jobs=n_jobs, **(ours | changed))
    if isinstance(method, type) or not hasattr(method, "fit"):
        raise SettingError(f"method is {method!r}; give a name or an object with fit(data, rng)")
    for setting in changed:
        raise SettingError(f"{setting} has to be set on the object given as method, which knows its own settings")
    return method


def _refusal(name: str, setting: str, spelled: Callable[[str], str]) -> str:
    others = [repr(other) for other in METHODS if setting in settings_of(other)]
    if not others:
        return f"method {name!r} has no setting {spelled(setting)}; it knows {', '.join(settings_of(name))}"
    return (
        f"method {name!r} has no setting {spelled(setting)}, which is for {', '.join(others)}; "
        f"leave it out, or choose {'that method' if len(others) == 1 else 'one of these'}"
    )


def noise_setting(noise: NoiseSetting) -> Noise | NoiseName:
    """How often sensors err, as methods take it; a number is one flip rate.

    >>> noise_setting(0.1)
    Noise(false_alarm=0.1, miss=0.1)
    """
    if isinstance(noise, Noise):
        return noise
    if isinstance(noise, str) and noise in get_args(NoiseName):
        return noise
    if isinstance(noise, Real):
        return Noise.flips(float(noise))
    names = ", ".join(map(repr, get_args(NoiseName)))
    raise SettingError(f"noise is {noise!r}; it can be {names}, a flip rate or a Noise")


def settings_of(name: str) -> tuple[str, ...]:
    """The names of the settings that the method of this name has.

    >>> settings_of("findbica")[:2]
    ('min_probability', 'significance')
    """
    return tuple(field.name for field in fields(_class_of(name)))


def needs_n_sources(name: str) -> bool:
    """Whether the method of this name needs the number of sources.

    >>> needs_n_sources("mac"), needs_n_sources("likelihood")
    (True, False)
    """
    return name != "likelihood" and "n_sources" in settings_of(name)


def _class_of(name: str) -> Any:
    if name not in METHODS:
        raise SettingError(
            f"there is no method {name!r}; choose from {', '.join(map(repr, METHODS))}, "
            "or give an object with fit(data, rng)"
        )
    module, _, title = METHODS[name].partition(":")
    return getattr(import_module(module), title)
