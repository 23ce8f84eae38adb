"""The guide to the commands explains each of them, and shows what they really print."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bica.cli import waiting
from bica.cli.app import COMMANDS, app

GUIDE = (Path(__file__).parents[1] / "docs" / "commands.md").read_text()
FILES = re.findall(r"^```text (\S+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
SCREENS = re.findall(r"^```console\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


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


def typed(screen: str) -> list[tuple[str, str]]:
    """The commands on a screen, each with what it prints."""
    parts = re.split(r"^\$ (.*)\n", screen, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def printed(text: str) -> str:
    """Without blank ends, and without the digits in which machines may differ."""
    text = re.sub(r"\d\.\d{7,}", lambda number: f"{float(number.group()):.6f}", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def test_the_screens_are_real(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(waiting, "compiled_before", lambda: True)
    for name, content in FILES:
        Path(name).write_text(content)
    commands = [command for screen in SCREENS for command in typed(screen) if command[0].startswith("bica ")]
    assert {command.split()[1] for command, _ in commands} >= COMMANDS.keys()
    for command, shown in commands:
        result = CliRunner().invoke(app, shlex.split(command)[1:], prog_name="bica", env={"COLUMNS": "80"})
        assert printed(result.output) == printed(shown), command
