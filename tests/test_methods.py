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
    with pytest.raises(SettingError, match="'findbica' has no setting 'magic'; it knows min_probability"):
        method_named("findbica", magic=[])


@pytest.mark.parametrize(
    ("name", "setting", "sentence"),
    [
        (
            "findbica",
            "n_sources",
            "which is for 'likelihood', 'mac', 'message-passing', .*'fastica'; leave it out, or choose one",
        ),
        ("findbica", "known", "which is for 'likelihood'; leave it out, or choose that method"),
        ("mac", "significance", "which is for 'findbica'; leave it out, or choose that method"),
    ],
)
def test_a_setting_of_other_methods_is_refused_with_their_names(name, setting, sentence):
    with pytest.raises(SettingError, match=f"^method '{name}' has no setting '{setting}', {sentence}"):
        method_named(name, **{setting: 1})


def test_settings_are_spelled_as_the_user_wrote_them():
    with pytest.raises(SettingError, match="'findbica' has no setting --sources, which is for 'likelihood', 'mac'"):
        method_named("findbica", n_sources=3, spelled={"n_sources": "--sources"}.__getitem__)


def test_threads_are_for_methods_that_use_them():
    assert method_named("likelihood", n_jobs=3).n_jobs == 3
    assert method_named("findbica", n_jobs=3) == FindBICA()


def test_an_unknown_method_is_refused_with_the_choice():
    with pytest.raises(SettingError, match="no method 'magic'; choose from 'likelihood', 'findbica'"):
        method_named("magic")


@pytest.mark.slow
def test_the_list_of_names_imports_no_method():
    code = "import sys, bica.methods; assert not any('bica.estimate' in name for name in sys.modules)"
    assert run([sys.executable, "-c", code]).returncode == 0
