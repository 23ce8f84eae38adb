import sys
from subprocess import run

import pytest

from bica.errors import SettingError
from bica.estimate.findbica import FindBICA
from bica.methods import METHODS, method_named, settings_of


@pytest.mark.parametrize("name", METHODS)
def test_every_name_leads_to_a_method_with_its_defaults(name):
    assert callable(method_named(name).fit)


def test_settings_reach_the_method():
    assert method_named("findbica", min_probability=0.1, significance=None) == FindBICA(
        min_probability=0.1, significance=None
    )
    assert "noise" in settings_of("findbica")


def test_an_unknown_setting_is_refused_by_name():
    with pytest.raises(SettingError, match="'findbica' has no setting 'known'; it knows min_probability"):
        method_named("findbica", known=[])


def test_an_unknown_method_is_refused_with_the_choice():
    with pytest.raises(SettingError, match="no method 'magic'; choose from 'likelihood', 'findbica'"):
        method_named("magic")


@pytest.mark.slow
def test_the_list_of_names_imports_no_method():
    code = "import sys, bica.methods; assert not any('bica.estimate' in name for name in sys.modules)"
    assert run([sys.executable, "-c", code]).returncode == 0
