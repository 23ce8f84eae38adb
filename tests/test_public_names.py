"""What the package promises is listed, can be imported, and costs nothing until it is used."""

import subprocess
import sys
from inspect import isfunction

import pytest

import bica


def test_the_list_is_sorted_and_has_no_repeats():
    assert sorted(set(bica.__all__), key=str) == sorted(bica.__all__)
    assert list(bica.__all__) == sorted(bica.__all__)


@pytest.mark.parametrize("name", bica.__all__)
def test_every_listed_name_can_be_imported(name):
    found = getattr(bica, name)
    assert name == "__version__" or found.__doc__


def test_every_name_that_can_be_imported_is_listed():
    assert set(bica.__all__) == {*bica._HOME, *bica._MODULES, "__version__"}
    assert dir(bica) == sorted(bica.__all__)


def test_a_name_is_the_same_thing_here_and_at_its_home():
    from bica.model.or_mixture import OrMixture

    assert bica.OrMixture is OrMixture


def test_an_unknown_name_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="module 'bica' has no attribute 'OrMixtures'"):
        _ = bica.OrMixtures


def test_star_import_gives_the_list():
    names = {}
    exec("from bica import *", names)
    assert set(bica.__all__) <= names.keys()


@pytest.mark.parametrize("statement", ["import bica", "from bica import __version__", "import bica; dir(bica)"])
def test_importing_the_package_loads_nothing_heavy(statement):
    show = "import sys; print([m for m in ('numpy', 'scipy', 'sklearn', 'numba', 'networkx') if m in sys.modules])"
    command = [sys.executable, "-c", f"{statement}; {show}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("from bica import OrMixture", ("networkx", "sklearn", "joblib", "bica.invert")),
        ("from bica import report; dir(report)", ("altair", "vl_convert", "numpy")),
        ("from bica import errors", ("numpy",)),
        ("import bica.progress, bica.methods; list(bica.progress.in_threads(len, 'ab'))", ("joblib",)),
    ],
)
def test_a_part_is_loaded_without_what_it_does_not_need(statement, unwanted):
    show = f"import sys; {statement}; print([m for m in {unwanted!r} if m in sys.modules])"
    command = [sys.executable, "-c", show]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("module", [bica.errors, bica.invert, bica.report], ids=lambda module: module.__name__)
class TestPublicModules:
    def test_it_has_an_example_that_runs(self, module):
        assert ">>> from bica import" in module.__doc__

    def test_every_name_is_explained_and_shows_where_it_belongs(self, module):
        names = getattr(module, "__all__", sorted(name for name in vars(module) if name.endswith(("Error", "Warning"))))
        assert list(names) == sorted(names)
        for name in names:
            assert getattr(module, name).__doc__, name
            assert getattr(module, name).__module__.startswith("bica."), name
            assert not isfunction(getattr(module, name)) or ">>>" in getattr(module, name).__doc__, name

    def test_an_unknown_name_is_an_ordinary_error(self, module):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = module.nonsense


def test_functions_of_invert_are_not_hidden_by_the_files_of_their_name():
    import bica.invert.decode
    import bica.invert.explain
    import bica.invert.posterior

    for name in ("decode", "explain", "posterior"):
        assert callable(getattr(bica.invert, name))


def test_charts_without_the_extra_are_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr(bica.report.pictures, "PACKAGES", ("nowhere_to_be_found",))
    with pytest.raises(bica.errors.MissingExtraError, match=r"pip install \"bica\[report\]\""):
        _ = bica.report.mixing_chart
    assert not bica.report.can_draw()


def test_every_error_of_ours_is_also_a_builtin():
    from bica import errors

    ours = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, errors.BicaError)]
    assert len(ours) > 5
    for error in ours:
        assert error is errors.BicaError or any(base.__module__ == "builtins" for base in error.__mro__[1:-3]), error
    assert issubclass(errors.MisfitWarning, errors.BicaWarning)
