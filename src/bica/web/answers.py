"""What the page asks about a fit, answered at once: names, explanations, a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bica.errors import InfeasibleError, SettingError
from bica.invert.explain import explain
from bica.invert.posterior import posterior
from bica.kernels.bits import packed
from bica.model.fit import Fit
from bica.model.names import renamed
from bica.model.or_mixture import OrMixture
from bica.report.content import parts_of
from bica.report.page import Parts, shown_name, with_plain_names
from bica.report.pairing import paired_sources
from bica.web.store import Store

EXPLANATIONS = 5
LIKELY = 40  # sources whose posterior is listed
LONGEST_NAME = 200  # characters of a name that the user gives


def parts(store: Store, identity: str) -> Parts:
    """What the report of a fit says; written anew where it is not kept, as for a model that was brought."""
    kept = store.report(identity)
    if kept is None:
        kept = parts_of(store.fit(identity))
        store.write_report(identity, kept)
    return kept


def rename(store: Store, identity: str, given: Mapping[str, Any]) -> list[str]:
    """Name sources by their places, and return the names of all as they are shown; an empty name takes it away."""
    fit = store.fit(identity)
    names = list(fit.model.names)
    for place, name in given.items():
        if not str(place).isdecimal() or int(place) >= len(names):
            raise SettingError("there is no such source")
        if not isinstance(name, str) or len(name) > LONGEST_NAME:
            raise SettingError(f"a name is a text of up to {LONGEST_NAME} characters")
        names[int(place)] = name.strip() or None
    checked = renamed(names, [str(j) for j in range(len(names))], {})
    fit = replace(fit, model=fit.model.with_names(checked))
    store.save_fit(identity, fit)
    shown = list(with_plain_names(fit, fit.nouns).model.source_names())
    told = parts(store, identity)
    sources = [{**source, "name": name} for source, name in zip(told.content["sources"], shown, strict=True)]
    store.write_report(identity, replace(told, content={**told.content, "sources": sources}))
    return shown


def explained(store: Store, task: Mapping[str, Any]) -> dict[str, Any]:
    """The likeliest explanations of one observation, and how probable it makes every source."""
    model, on, unknown = store.fit(task["fit"]).model, task.get("on", []), task.get("unknown", [])
    cells = np.zeros((1, model.n_sensors), np.uint8)
    cells[0, _places(on, model.n_sensors)] = 1
    cells[0, _places(unknown, model.n_sensors)] = 2
    words, observed = packed(cells == 1), packed(cells < 2)
    try:
        found = explain(model, words, observed, k=EXPLANATIONS)
    except InfeasibleError:
        return {"explanations": [], "posterior": [], "exact": True}
    active = posterior(model, words, observed)
    probability = np.nan_to_num(active.probability[0])
    order = np.argsort(-probability, kind="stable")[:LIKELY]
    return {
        "explanations": [
            {"sources": np.flatnonzero(row).tolist(), "p": _short(p)}
            for row, p in zip(found.activity, found.probability, strict=True)
        ],
        "posterior": [{"source": int(j), "p": _short(probability[j])} for j in order],
        "exact": bool(found.exact and active.exact.all()),
    }


def _places(given: Any, n_sensors: int) -> list[int]:
    if not isinstance(given, list) or not all(type(i) is int and 0 <= i < n_sensors for i in given):
        raise SettingError("sensors are given by their places")
    return given


def compared(store: Store, first: str, second: str) -> dict[str, Any]:
    """Two fits side by side: which sources they share, and how often each is on."""
    left, right = store.fit(first), store.fit(second)
    _same_sensors(left.model, right.model)
    ordered = right.model.of_sensors([right.model.sensors.index(name) for name in left.model.sensors])
    pairs = paired_sources(ordered, left.model)
    sides = [_side(store, identity, fit) for identity, fit in ((first, left), (second, right))]
    lines = [
        {"left": _source(left.model, pair.true), "right": _source(ordered, pair.found), "equal": pair.exact}
        for pair in pairs
    ]
    return {"sides": sides, "pairs": lines, "n_equal": sum(pair.exact for pair in pairs)}


def _same_sensors(left: OrMixture, right: OrMixture) -> None:
    if set(left.sensors) != set(right.sensors):
        raise SettingError("these two fits are about different sensors, so they cannot be compared")


def _side(store: Store, identity: str, fit: Fit) -> dict[str, Any]:
    entry = store.fit_entry(identity)
    return {
        "id": identity,
        "title": entry.title,
        "time": entry.time,
        "verdict": entry.verdict,
        "n_sources": fit.model.n_sources,
        "log_likelihood": None if fit.log_likelihood is None else _short(fit.log_likelihood),
        "n_rows": fit.n_samples,
    }


def _source(model: OrMixture, place: int | None) -> dict[str, Any] | None:
    if place is None:
        return None
    sensors = [shown_name(model.sensors[i]) for i in np.flatnonzero(model.mixing[:, place])]
    return {"name": shown_name(model.source_names()[place]), "p": _short(model.probability[place]), "sensors": sensors}


def _short(value: float | NDArray[np.float64]) -> float | None:
    number = float(value)
    return float(f"{number:.6g}") if np.isfinite(number) else None
