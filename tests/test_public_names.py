"""What the package promises is listed, can be imported, and costs nothing until it is used."""

import subprocess
import sys

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


def test_a_model_is_loaded_without_optional_packages():
    show = "import sys; from bica import OrMixture; print([m for m in ('networkx', 'sklearn') if m in sys.modules])"
    command = [sys.executable, "-c", show]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
