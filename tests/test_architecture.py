"""The architecture is a test: imports are absolute and point to earlier rows."""

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import bica

PACKAGE = Path(bica.__file__).parent
ROWS = [
    "version errors",
    "output progress text",
    "kernels",
    "data",
    "model",
    "invert simulate metrics",
    "diagnose",
    "estimate rivals",
    "methods",
    "pipeline",
    "estimator compare",
    "applications",
    "report",
    "experiments warmup",
    "web",
    "cli",
]
RANK = {name: rank for rank, row in enumerate(ROWS) for name in row.split()}
FORWARDS = {  # methods that only forward to a later row, which they import when called; the report by its public face
    ("model/or_mixture.py", "OrMixture.decode", "bica.invert.decode"),
    ("model/or_mixture.py", "OrMixture.posterior", "bica.invert.posterior"),
    ("model/or_mixture.py", "OrMixture.explain", "bica.invert.explain"),
    ("model/or_mixture.py", "OrMixture._repr_html_", "bica.report"),
    ("model/or_mixture.py", "OrMixture.report", "bica.report"),
    ("model/or_mixture.py", "OrMixture.plot_matrix", "bica.report"),
    ("model/or_mixture.py", "OrMixture.plot_network", "bica.report"),
    ("model/or_mixture.py", "OrMixture.plot_patterns", "bica.report"),
    ("model/or_mixture.py", "OrMixture.plot_activity", "bica.report"),
    ("model/fit.py", "Fit._repr_html_", "bica.report"),
    ("model/fit.py", "Fit.report", "bica.report"),
    ("invert/explain.py", "Explanations._repr_html_", "bica.report"),
    ("estimate/bootstrap.py", "Bootstrap._repr_html_", "bica.report"),
    ("estimator.py", "BICA.report", "bica.report"),
}
TYPES_OF_FORWARDS = {  # what these methods take and return, for type checkers
    ("model/or_mixture.py", "bica.invert"),
    ("model/or_mixture.py", "bica.report"),
    ("model/fit.py", "bica.report"),
    ("estimator.py", "bica.report"),
}
LONGEST_FORWARD = 4  # statements after the docstring: import, prepare, call


class Import(NamedTuple):
    """An import of one part of the package by a module of another, or of its own."""

    place: str  # of the module, below the package
    function: str  # in which it stands, or "" at the top of the module
    types_only: bool
    target: str  # the module

    @property
    def home(self) -> str:
        return Path(self.place).parts[0].removesuffix(".py")

    @property
    def part(self) -> str:
        return self.target.split(".")[1]

    @property
    def reaches_up(self) -> bool:
        return self.part != self.home and RANK[self.part] >= RANK[self.home]


def package_imports() -> Iterator[Import]:
    """Every import of the package by itself."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.name in ("__init__.py", "__main__.py") and len(place.parts) == 1:
            continue  # the public names and the command stand above all rows
        yield from imports_of(ast.parse(path.read_text()), place.as_posix())


def imports_of(tree: ast.AST, place: str, function: str = "", types_only: bool = False) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for target in targets_of(node, place):
                yield Import(place, function, types_only, target)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from imports_of(node, place, f"{function}.{node.name}".strip("."), types_only)
        else:
            only = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            yield from imports_of(node, place, function, types_only or only)


def targets_of(node: ast.Import | ast.ImportFrom, place: str) -> list[str]:
    if isinstance(node, ast.Import):
        targets = [name.name for name in node.names]
    else:
        assert node.level == 0, f"{place} imports relatively"
        targets = [f"bica.{name.name}" for name in node.names] if node.module == "bica" else [node.module or ""]
    return [target for target in targets if target.startswith("bica.")]


def test_the_walk_sees_the_package():
    found = list(package_imports())
    assert len(found) > 200
    assert any(found.function for found in found)
    assert any(found.types_only for found in found)


def test_imports_point_to_earlier_rows():
    for found in package_imports():
        if found.part not in RANK:  # a public name of the whole package: for the command line only
            assert found.home in ("cli", "web"), f"{found.place} imports the public name {found.part}"
        elif found.reaches_up and found.types_only:
            allowed = (found.place, f"bica.{found.part}") in TYPES_OF_FORWARDS
            assert allowed, f"{found.place} takes types from {found.target}"
        elif found.reaches_up:
            forward = (found.place, found.function, found.target)
            assert forward in FORWARDS, f"{found.place} reaches up into {found.target}"


def test_every_forward_is_there():
    found = {(found.place, found.function, found.target) for found in package_imports() if not found.types_only}
    assert found >= FORWARDS


def test_forwards_only_forward():
    for place, function, _ in FORWARDS:
        title, method = function.split(".")
        classes = [node for node in ast.parse((PACKAGE / place).read_text()).body if isinstance(node, ast.ClassDef)]
        (home,) = (node for node in classes if node.name == title)
        (body,) = (node.body for node in home.body if isinstance(node, ast.FunctionDef) and node.name == method)
        assert len(body) - 1 <= LONGEST_FORWARD, f"{place} does more than forward in {function}"
        assert isinstance(body[-1], ast.Return)


def test_every_part_has_a_row():
    parts = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    assert parts - {"__init__", "__main__"} <= RANK.keys()


def test_a_warning_about_our_own_code_fails_a_test_and_one_about_others_does_not():
    for name in ("bica", "bica.text"):
        with pytest.raises(DeprecationWarning, match="old"):
            warnings.warn_explicit("old", DeprecationWarning, "text.py", 1, module=name)
    with warnings.catch_warnings(record=True) as heard:
        for name in ("pandas.core", "bicarbonate"):
            warnings.warn_explicit("old", DeprecationWarning, "core.py", 1, module=name)
    assert len(heard) == 2
