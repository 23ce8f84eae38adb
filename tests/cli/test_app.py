"""The command ``bica`` itself: it starts fast and knows its commands."""

import json
import subprocess
import sys

import click
import pytest

from bica.cli.app import COMMANDS, app
from bica.version import __version__

HEAVY = ("numpy", "scipy", "sklearn", "numba", "duckdb", "rich", "narwhals", "altair")
LOOK = """
import json, sys
from bica.cli.app import main
try:
    main()
except SystemExit:
    print("LOADED", json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def loaded_by(*words: str) -> set[str]:
    shown = subprocess.run([sys.executable, "-c", LOOK, *words], capture_output=True, text=True, check=True).stdout
    return set(json.loads(shown.rpartition("LOADED ")[2]))


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("fit", "--help"), ("nonsense",)], ids=" ".join)
def test_help_loads_nothing_heavy(words):
    loaded = loaded_by(*words)
    assert "click" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_show_needs_no_arrays(model_file):
    loaded = loaded_by("show", str(model_file))
    assert "rich" in loaded
    assert loaded.isdisjoint({"numpy", "numba", "sklearn", "duckdb"})


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_first_line_of_the_help(name, run):
    with click.Context(app) as context:
        command = app.get_command(context, name)
    assert command.name == name
    assert command.help.splitlines()[0] == COMMANDS[name][1]
    assert COMMANDS[name][1] in " ".join(run("--help").stdout.split())


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_explains_itself(name, flag, run):
    shown = run(name, flag)
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"Usage: bica {name} ")
    assert shown.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name):
    with click.Context(app) as context:
        command = app.get_command(context, name)
    assert all(option.help for option in command.params if isinstance(option, click.Option))


def test_the_version_is_told(run):
    assert run("--version").stdout == f"bica {__version__}\n"


def test_no_command_shows_the_help(run):
    assert "Commands:" in run().output


@pytest.mark.parametrize("words", [("nonsense",), ("show",), ("show", "--nonsense"), ("fit", "a", "b")], ids=" ".join)
def test_wrong_usage_is_2(words, run):
    shown = run(*words)
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert "Error: " in shown.stderr


def test_python_dash_m_does_the_same():
    shown = subprocess.run([sys.executable, "-m", "bica", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"bica {__version__}\n"


def test_the_shell_completes_commands(run):
    shown = run(env={"_BICA_COMPLETE": "bash_complete", "COMP_WORDS": "bica s", "COMP_CWORD": "1"})
    assert sorted(shown.stdout.split()) == [
        f"plain,{name}" for name in ("score", "serve", "show", "simulate", "slots", "spectrum")
    ]


@pytest.mark.parametrize(("typed", "meant"), [("fti", "fit"), ("shwo", "show"), ("Fit", "fit"), ("reprot", "report")])
def test_a_mistyped_command_is_guessed(run, typed, meant):
    done = run(typed, "table.csv")
    assert done.exit_code == 2
    assert f"No such command {typed!r}; did you mean {meant}?" in done.stderr


def test_an_unlikely_command_is_not_guessed(run):
    assert "did you mean" not in run("xyzzy").stderr


def test_method_names_are_completed(run, monkeypatch):
    from click.shell_completion import ShellComplete

    found = ShellComplete(app, {}, "bica", "_BICA_COMPLETE").get_completions(["fit", "--method"], "grecond-e")
    assert [item.value for item in found] == ["grecond-essential"]
