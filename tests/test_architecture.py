"""The architecture is a test: imports are absolute and point to earlier rows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import bica

PACKAGE = Path(bica.__file__).parent
ROWS = [
    "version errors",
    "output progress threads text",
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
    "experiments",
    "web",
    "cli",
]
RANK = {name: rank for rank, row in enumerate(ROWS) for name in row.split()}


def package_imports() -> Iterator[tuple[Path, str, str]]:
    """Every import of one part of the package by another: file, its part, the part it reaches into."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.name in ("__init__.py", "__main__.py") and len(place.parts) == 1:
            continue  # the public names and the command stand above all rows
        home = place.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{place} imports relatively"
            targets = [node.module] if isinstance(node, ast.ImportFrom) else []
            targets += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module == "bica":
                targets = [f"bica.{name.name}" for name in node.names]
            for target in targets:
                if target and target.startswith("bica."):
                    yield place, home, target.split(".")[1]


def test_the_walk_sees_the_package():
    assert len(list(package_imports())) > 20


def test_imports_point_to_earlier_rows():
    for place, home, target in package_imports():
        if target in RANK:
            assert target == home or RANK[target] < RANK[home], f"{place} reaches up into {target}"
        else:  # a public name of the whole package: for the command line only
            assert home in ("cli", "web"), f"{place} imports the public name {target}"


def test_every_part_has_a_row():
    parts = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}
    assert parts - {"__init__", "__main__"} <= RANK.keys()
