"""Fields in files: JSON with everything that is known, or CSV with the places of the monitors."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from bica.applications.spectrum.field import Field, Propagation
from bica.applications.spectrum.survey import Traffic
from bica.errors import BicaError, DataError

SCHEMA, VERSION = "bica-field", 1
REASON = 200  # characters of what Python says, which may quote all of a file
COLUMNS = ("monitor", "x", "y")
MARGIN_IN_RADII = 1.0  # how far the square of a CSV file reaches beyond the outermost monitors


def field_text(field: Field, traffic: Traffic | None = None) -> str:
    """The field as JSON text, with the users' traffic if it is known.

    >>> json.loads(field_text(Field([[1, 2]])))["monitors"]
    [{'name': 'm1', 'x': 1.0, 'y': 2.0}]
    """
    users: list[dict[str, Any]] = [
        {"name": name, "x": x, "y": y} for name, (x, y) in zip(field.user_names, field.users.tolist(), strict=True)
    ]
    if traffic is not None:
        numbers = zip(users, traffic.probability.tolist(), traffic.stay.tolist(), strict=True)
        users = [user | {"probability": probability, "stay": stay} for user, probability, stay in numbers]
    places = zip(field.monitor_names, field.monitors.tolist(), strict=True)
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "side": field.side,
        "corner": list(field.corner),
        "propagation": asdict(field.propagation),
        "monitors": [{"name": name, "x": x, "y": y} for name, (x, y) in places],
        "users": users,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def read_field(path: str | Path, propagation: Propagation | None = None) -> Field:
    """A field from JSON as ``field_text`` writes it, or monitors from CSV with the columns monitor, x and y.

    ``propagation`` replaces that of the file; a CSV file has none, so the default is used. Its square reaches one
    radius beyond the outermost monitors.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a field: {error}") from None
    try:
        return _of_json(text, propagation) if Path(path).suffix.lower() == ".json" else _of_csv(text, propagation)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError, csv.Error) as error:
        reason = str(error) if isinstance(error, BicaError) else f"{type(error).__name__} {str(error)[:REASON]}"
        raise DataError(
            f"{path} is no field: {reason}; it holds the JSON of `bica spectrum simulate --field`, or CSV with the "
            f"columns {', '.join(COLUMNS)}"
        ) from None


def _of_json(text: str, propagation: Propagation | None) -> Field:
    content = json.loads(text)
    if not isinstance(content, Mapping) or (content.get("schema"), content.get("version")) != (SCHEMA, VERSION):
        raise DataError(f"it is not {SCHEMA} version {VERSION}")
    known = {entry.name for entry in fields(Propagation)}
    given = Propagation(**{name: float(value) for name, value in content["propagation"].items() if name in known})
    x, y = content["corner"]
    return Field(
        [(float(entry["x"]), float(entry["y"])) for entry in content["monitors"]],
        [(float(entry["x"]), float(entry["y"])) for entry in content["users"]],
        side=float(content["side"]),
        propagation=propagation or given,
        monitor_names=[entry["name"] for entry in content["monitors"]],
        corner=(float(x), float(y)),
    )


def _of_csv(text: str, propagation: Propagation | None) -> Field:
    rows = list(csv.DictReader(text.splitlines()))
    if not rows:
        raise DataError("it names no monitor")
    used = propagation or Propagation()
    places = np.array([(float(row["x"]), float(row["y"])) for row in rows])
    least, most = places.min(axis=0) - MARGIN_IN_RADII * used.radius, places.max(axis=0) + MARGIN_IN_RADII * used.radius
    return Field(
        places,
        side=float((most - least).max()),
        propagation=used,
        monitor_names=[row["monitor"] for row in rows],
        corner=(float(least[0]), float(least[1])),
    )
