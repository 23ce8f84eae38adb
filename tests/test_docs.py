"""The guide to the commands explains each of them, and shows what they really print."""

import re
from pathlib import Path

import click
import pytest

from bica.cli.app import COMMANDS, app
from docs.make_screens import BLOCK, TABLE, missing_table, pages, performed, typed

GUIDE = (Path(__file__).parents[1] / "docs" / "commands.md").read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_explained(name):
    with click.Context(app) as context:
        command = app.get_command(context, name)
    assert command.help
    assert f"## `bica {name}" in GUIDE
    part = GUIDE.split(f"## `bica {name}")[1].split("\n## ")[0]
    for option in command.params:
        if isinstance(option, click.Option):
            assert any(f"`{flag}" in part for flag in option.opts), option.name


def printed(text: str) -> str:
    """Without blank ends, and without the digits in which machines may differ."""
    text = re.sub(r"\d\.\d{7,}", lambda number: f"{float(number.group()):.6f}", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def test_every_command_has_a_screen():
    commands = [command for block in BLOCK.finditer(GUIDE) for command, _ in typed(block["screen"] or "")]
    assert {command.split()[1] for command in commands if command.startswith("bica ")} >= COMMANDS.keys()


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_the_screens_are_real(path, request, tmp_path, monkeypatch):
    page = path.read_text()
    if TABLE.search(page):
        monkeypatch.setenv("BICA_DATA", str(request.getfixturevalue("shared_data")))
    if missing := missing_table(page):
        pytest.skip(missing)
    monkeypatch.chdir(tmp_path)
    assert printed(performed(page)) == printed(page)
