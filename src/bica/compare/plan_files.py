"""A contest as a short TOML file: which tables and networks, which methods, how many runs."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bica.compare.contest import ContestProblem, OwnTable, SimulatedRows
from bica.compare.task import Setting
from bica.errors import DataError

KNOWN = {
    "": {"methods", "runs", "table", "simulated"},
    "table": {"path", "truth", "sources"},
    "simulated": {"network", "rows", "flips"},
}


@dataclass(frozen=True, slots=True)
class ContestPlan:
    """What a file asks for; None where it leaves the choice to the reader."""

    problems: Sequence[ContestProblem]
    methods: tuple[str, ...] | None = None
    runs: int | None = None


def read_plan(path: str | Path) -> ContestPlan:
    r"""Read a contest; files that it names are found beside it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "plan.toml")
    ...     _ = file.write_text('runs = 2\n[[simulated]]\nnetwork = "bars 3"\nrows = [100, 500]')
    ...     [problem.title for problem in read_plan(file).problems]
    ['bars 3, 100 rows', 'bars 3, 500 rows']
    """
    try:
        content = tomllib.loads(Path(path).read_bytes().decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as a plan: {error}") from None
    return _Parts(path).plan(content)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a file, each checked; errors name the file."""

    path: str | Path

    def plan(self, content: dict[str, Any]) -> ContestPlan:
        self._check_names(content, "")
        tables, drawn = (self._list(content, name, dict) for name in ("table", "simulated"))
        problems = [self._table(part) for part in tables] + [s for part in drawn for s in self._simulated(part)]
        if not problems:
            raise DataError(f"{self.path} names nothing to compare methods on; add a [[table]] or a [[simulated]]")
        methods = tuple(self._list(content, "methods", str)) or None
        return ContestPlan(problems, methods, self._count(content, "runs"))

    def _table(self, part: dict[str, Any]) -> ContestProblem:
        self._check_names(part, "table")
        path, truth = self._text(part, "path"), self._text(part, "truth")
        if path is None:
            raise DataError(f"{self.path}: a [[table]] needs a path")
        beside = Path(self.path).parent
        return OwnTable(
            path=str(beside / path),
            truth=None if truth is None else str(beside / truth),
            n_sources=self._count(part, "sources"),
        )

    def _simulated(self, part: dict[str, Any]) -> list[ContestProblem]:
        self._check_names(part, "simulated")
        network = self._text(part, "network")
        if network is None:
            raise DataError(f'{self.path}: [[simulated]] needs a network, such as "topology one"')
        rows, flips = self._list(part, "rows", int) or [1000], self._list(part, "flips", int | float) or [0.0]
        if min(rows) < 1 or not all(0 <= share < 1 for share in flips):
            raise DataError(f"{self.path}: rows are whole numbers from 1 up, and flips lie in [0, 1)")
        return [
            SimulatedRows(setting=Setting(network=network, n_samples=count, flip_rate=float(share)))
            for count in rows
            for share in flips
        ]

    def _check_names(self, part: dict[str, Any], what: str) -> None:
        strange = sorted(part.keys() - KNOWN[what])
        if strange:
            place = f" in [[{what}]]" if what else ""
            known = ", ".join(sorted(KNOWN[what]))
            raise DataError(f"{self.path} has {strange[0]!r}{place}, which means nothing; it can have {known}")

    def _text(self, part: dict[str, Any], name: str) -> str | None:
        value = part.get(name)
        if value is not None and not isinstance(value, str):
            raise DataError(f"{self.path}: {name} is {value!r}; give a text in quotes")
        return value

    def _count(self, part: dict[str, Any], name: str) -> int | None:
        value = part.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise DataError(f"{self.path}: {name} is {value!r}; give a whole number from 1 up")
        return value

    def _list(self, part: dict[str, Any], name: str, kind: Any) -> list[Any]:
        value = part.get(name, [])
        value = value if isinstance(value, list) else [value]
        if not all(isinstance(item, kind) and not isinstance(item, bool) for item in value):
            raise DataError(
                f"{self.path}: {name} holds something else than it should; look at the example in the guide"
            )
        return value
