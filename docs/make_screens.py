"""Type every command of the pages in docs again and put what it prints beside it.

python docs/make_screens.py                                  the guide to the commands, the report and all examples
python docs/make_screens.py docs/examples/lora_gateways.md   one page

An example needs its table, in the folder of tables that BICA_DATA names; the page says where it comes from.
"""

import io
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from click.testing import CliRunner

from bica.cli import options
from bica.cli.app import app
from bica.kernels import compiled

DOCS = Path(__file__).resolve().parent
FILE = r"^```(?:text|python) (?P<name>\S+)\n(?P<content>.*?)^```$"  # a file that the commands read
SCREEN = r"^```console\n(?P<screen>.*?)^```$"
BLOCK = re.compile(f"{FILE}|{SCREEN}", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(?=##+ )", re.MULTILINE)  # where a section begins
NAMED = re.compile(r"(?<![\w/.-])[\w-]+\.[a-z]\w*")  # table.csv, but not 0.05 or $FOLDER/X.csv
QUOTED = re.compile(r"""["']([\w-]+\.[a-z]\w*)["']""")  # "model.json", but not pd.read_csv or f"{folder}/X.csv"
TABLE = re.compile(r"^Table: `\$BICA_DATA/(\S+)`, (.*?)$\n\n", re.MULTILINE | re.DOTALL)  # its folder and its origin


def pages() -> list[Path]:
    """All pages that are performed."""
    return [
        DOCS / "commands.md",
        DOCS / "report.md",
        DOCS / "lossy-edges.md",
        *sorted((DOCS / "examples").glob("*.md")),
    ]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what a slow machine says beside the answers: that it compiles, and how far it has come."""
    with mock.patch.object(compiled, "announce"), mock.patch.object(options, "PAUSE", 3600.0):
        yield


def performed(page: str) -> str:
    """The page with fresh output, block after block in the current folder, which is best an empty one."""
    with _quiet():
        return BLOCK.sub(_performed_block, page)


def sections(page: str) -> list[str]:
    """The page, cut before each of its headings."""
    return HEADING.split(page)


def performed_section(page: str, number: int) -> str:
    """One section with fresh output, after those steps of earlier sections that make the files it needs."""
    parts = sections(page)
    earlier = [step for part in parts[:number] for step in steps(part)]
    with _quiet():
        for step in preparation(earlier, steps(parts[number])):
            step.perform()
        return BLOCK.sub(_performed_block, parts[number])


@dataclass(frozen=True)
class Step:
    """A file that the page shows, or a command that it types; ``content`` is that of the file or of the script."""

    command: str
    content: str
    is_file: bool = False

    def perform(self) -> None:
        """Write the file or type the command."""
        if self.is_file:
            Path(self.command).write_text(self.content)
        else:
            _fresh(self.command, "")

    def names(self) -> set[str]:
        """The files that the step may make, named in the command or in its script."""
        script = "" if self.is_file else self.content
        return {*NAMED.findall(self.command), *QUOTED.findall(script)}

    def needs(self, name: str) -> bool:
        """Whether the step may read this file; a script may put names together, as in ``f"{name}.json"``."""
        stem = re.escape(name.partition(".")[0])
        return name in self.names() or (not self.is_file and re.search(rf"[\"']{stem}\b", self.content) is not None)


def steps(text: str) -> list[Step]:
    """Everything that performing the text does, in order; a script is known once the text has shown it."""
    found: list[Step] = []
    for block in BLOCK.finditer(text):
        if block["name"]:
            found.append(Step(block["name"], block["content"], is_file=True))
            continue
        for command, _ in typed(block["screen"]):
            scripts = [step.content for step in found if step.is_file and step.command in command.split()]
            found.append(Step(command, "".join(scripts) if command.startswith("python ") else ""))
    return found


def preparation(earlier: list[Step], wanted: list[Step]) -> list[Step]:
    """The earlier steps that make what the wanted ones need: a file is made by the first step that names it."""
    kept: list[Step] = []
    known: set[str] = set()
    firsts = []
    for step in earlier:
        firsts.append(step.names() - known)
        known |= firsts[-1]
    for step, made in zip(reversed(earlier), reversed(firsts), strict=True):
        if any(later.needs(name) for name in made for later in (*kept, *wanted)):
            kept.insert(0, step)
    return kept


def typed(screen: str) -> list[tuple[str, str]]:
    """The commands on a screen, each with what it prints."""
    parts = re.split(r"^\$ (.*)\n", screen, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def missing_table(page: str) -> str | None:
    """The sentence to tell if the page's table is not there."""
    for name, origin in TABLE.findall(page):
        folder = Path(os.environ.get("BICA_DATA", "")) / name
        if not (os.environ.get("BICA_DATA") and folder.is_dir()):
            origin = " ".join(origin.split())
            return f"there is no {name} in the folder of tables that BICA_DATA names; it is the table {origin}"
    return None


def _performed_block(block: re.Match[str]) -> str:
    if block["name"]:
        Path(block["name"]).write_text(block["content"])
        return block.group()
    lines = [f"$ {command}\n{_fresh(command, shown)}" for command, shown in typed(block["screen"])]
    return f"```console\n{''.join(lines)}```"


def _fresh(command: str, shown: str) -> str:
    """What the command prints now; commands of other programs are left alone."""
    words = shlex.split(os.path.expandvars(command))
    if words[0] == "bica":
        output = CliRunner().invoke(app, words[1:], prog_name="bica", env={"COLUMNS": "80"}).output
    elif words[0] == "python":
        output = _script_output(words[1:])
    else:
        return shown
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    text = "\n".join(lines).strip("\n")
    return (f"{text}\n" if text else "") + ("\n" if shown.endswith("\n\n") else "")


def _script_output(words: list[str]) -> str:
    """What a script prints; it runs in this process, where everything is loaded already."""
    screen = io.StringIO()
    with mock.patch.object(sys, "argv", words), redirect_stdout(screen):
        runpy.run_path(words[0], run_name="__main__")
    return screen.getvalue()


def main(names: list[str]) -> None:
    """Work in an empty folder, as a reader would; pictures that a page makes go to docs/pictures."""
    for path in [Path(name).resolve() for name in names] or pages():
        text = path.read_text()
        if missing := missing_table(text):
            print(f"{path.name} stays as it is: {missing}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            path.write_text(performed(text))
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, DOCS / "pictures" / picture.name)


if __name__ == "__main__":
    main(sys.argv[1:])
