"""Commands and Python are twins: what one can set, the other can. Exceptions are listed with their reason."""

import inspect

import click
import pytest

from bica import BICA, OrMixture
from bica.cli.app import app
from bica.cli.commands.fit import METHOD_NAMES, SPELLED
from bica.methods import METHODS, settings_of
from bica.report import report_of

COMMAND_ONLY = {  # what belongs to a terminal and to files
    "table": "X, the argument of fit",
    "engine": "X is a frame of the engine",
    "model": "the object itself",
    "output": "save(path)",
    "force": "save(path, overwrite=True)",
    "as_json": "attributes are plain values already",
    "weights": "sample_weight of fit",
    "drop": "PatternCounts.of(path, drop=...), or a frame without the column",
    "columns": "PatternCounts.of(path, columns=...), or a frame of these columns",
    "id": "open_table(path, id=...); arrays of answers have the order of the rows",
    "time": "open_table(path, time=...), plot_activity(rows, times)",
    "names": "PatternCounts.of(path, sensors=...)",
    "baskets": "PatternCounts.of(path, baskets=True)",
    "long": "PatternCounts.of(path, long=(row, column))",
    "picture": "plot_matrix(), plot_activity(rows)",
    "n_resamples": "bootstrap(n_resamples)",
}
NAMES = {"random_state": "seed", "row": "on"}  # Python's name, and the option's where it differs
PYTHON_ONLY = {
    "fit": {"verbose": "the command line always shows how far it is"},
    "decode": {"rows": "TABLE, the argument of the command"},
    "explain": {},
    "report": {"sample_weight": "--weights", "origin": "the names of the files"},
}
OF_COMMAND = {
    "fit": {
        "names_from": "fit_.with_names_of(earlier); fitting again keeps names anyway",
        "memory": "bica.progress.memory_limited(2e9)",
        "sensors_are": "report(sensors_are=...)",
        "sources_are": "report(sources_are=...)",
        "rows_are": "report(rows_are=...)",
    },
    "report": {},
    "decode": {
        "binarize": "BICA(binarize=...); rows given to a model are binary",
        "temporal": "BICA.from_model(model, temporal=True).transform",
        "stay": "BICA.from_model(model, temporal=SLOTS).transform",
    },
    "explain": {"off": "a cell that is 0", "unknown": "a cell that is missing", "rest": "a row has all its cells"},
}
FACES = {"fit": BICA.__init__, "decode": OrMixture.decode, "explain": OrMixture.explain, "report": report_of}


def options_of(command: str) -> set[str]:
    with click.Context(app) as context:
        return {parameter.name for parameter in app.get_command(context, command).params}


def settings(command: str) -> set[str]:
    return {name for name in inspect.signature(FACES[command]).parameters if name != "self"}


@pytest.mark.parametrize("command", FACES)
def test_what_python_can_set_the_command_can(command):
    missing = {NAMES.get(name, name) for name in settings(command) - PYTHON_ONLY[command].keys()} - options_of(command)
    assert missing == set()


@pytest.mark.parametrize("command", FACES)
def test_what_the_command_can_set_python_can(command):
    known = {NAMES.get(name, name) for name in settings(command)}
    missing = options_of(command) - known - COMMAND_ONLY.keys() - OF_COMMAND[command].keys()
    assert missing == set()


@pytest.mark.parametrize("command", FACES)
def test_no_exception_is_out_of_date(command):
    assert PYTHON_ONLY[command].keys() <= settings(command)
    assert OF_COMMAND[command].keys() <= options_of(command)


def test_every_setting_that_a_method_may_refuse_is_spelled_as_an_option():
    with click.Context(app) as context:
        flags = {flag for parameter in app.get_command(context, "fit").params for flag in parameter.opts}
    assert set(SPELLED.values()) <= flags
    assert SPELLED.keys() <= {setting for name in METHODS for setting in settings_of(name)}


def test_the_methods_that_are_completed_are_those_that_exist():
    assert list(METHOD_NAMES) == list(METHODS)


def test_a_refusal_speaks_the_language_of_the_command_line(tmp_path):
    from click.testing import CliRunner

    (tmp_path / "t.csv").write_text("a,b\n0,1\n1,1\n0,0\n")
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), "--method", "findbica", "--sources", "2"])
    assert done.exit_code != 0
    assert "--sources" in done.output + str(done.exception)
    assert "n_sources" not in done.output + str(done.exception)
