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
    assert f"## `bica {name}" in GUIDE
    part = GUIDE.split(f"## `bica {name}", 1)[1].split("\n## ")[0]
    with click.Context(app) as context:
        command = app.get_command(context, name)
        members = {} if not isinstance(command, click.Group) else group_members(command, context)
    for member in members:
        assert f"### `bica {name} {member}" in part
    for explained in (command, *members.values()):
        assert explained.help
        for option in explained.params:
            if isinstance(option, click.Option):
                assert any(f"`{flag}" in part for flag in option.opts), option.name


def group_members(group: click.Group, context: click.Context) -> dict[str, click.Command]:
    return {name: group.get_command(context, name) for name in group.list_commands(context)}


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
