"""Type every command of docs/commands.md again and put what it prints beside it.

python docs/make_screens.py
"""

import os
import re
import shlex
import tempfile
from pathlib import Path

from click.testing import CliRunner

from bica.cli import waiting
from bica.cli.app import app

GUIDE = Path(__file__).parent / "commands.md"
FILE = re.compile(r"^```text (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # a file that the commands read


def retyped(screen: re.Match[str]) -> str:
    """The same screen with fresh output; lines that are no bica command stay as they are."""
    parts = re.split(r"^\$ (.*)\n", screen.group(1), flags=re.MULTILINE)
    fresh = [parts[0]]
    for command, shown in zip(parts[1::2], parts[2::2], strict=True):
        if command.startswith("bica "):
            result = CliRunner().invoke(app, shlex.split(command)[1:], prog_name="bica", env={"COLUMNS": "80"})
            lines = [line.rstrip() for line in result.output.strip("\n").splitlines()]
            shown = "\n".join(lines).strip("\n") + "\n" + ("\n" if shown.endswith("\n\n") else "")
        fresh.append(f"$ {command}\n{shown.lstrip(chr(10))}" if shown.strip() else f"$ {command}\n")
    return f"```console\n{''.join(fresh)}```"


def main() -> None:
    """Work in an empty folder, as a reader would."""
    waiting.compiled_before = lambda: True
    text = GUIDE.read_text()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, content in FILE.findall(text):
            Path(name).write_text(content)
        text = re.sub(r"```console\n(.*?)```", retyped, text, flags=re.DOTALL)
    GUIDE.write_text(text)


if __name__ == "__main__":
    main()
