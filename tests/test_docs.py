"""The guide to the commands explains each of them, and shows what they really print."""

import re
from pathlib import Path

import click
import pytest
from _pytest.mark import ParameterSet

from bica.cli.app import COMMANDS, app
from docs.make_screens import BLOCK, TABLE, missing_table, pages, performed, performed_section, sections, steps, typed

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-\d+)?")
SLOW = re.compile("bica-reproduce|bica-spectrum-(fit|map)")  # headings whose commands take more than a second
GUIDE = (Path(__file__).parents[1] / "docs" / "commands.md").read_text()


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


def test_every_command_has_a_screen():
    commands = [command for block in BLOCK.finditer(GUIDE) for command, _ in typed(block["screen"] or "")]
    assert {command.split()[1] for command in commands if command.startswith("bica ")} >= COMMANDS.keys()


def performed_sections() -> list[ParameterSet]:
    """Every section with a screen: its page, its number on the page, and its heading as the name of the test."""
    found = []
    for path in pages():
        page = path.read_text()
        for number, section in enumerate(sections(page)):
            if BLOCK.search(section):
                heading = re.sub(r"\W+", "-", section.partition("\n")[0]).strip("-")
                marks = [pytest.mark.slow] if TABLE.search(page) or SLOW.search(heading) else []
                found.append(pytest.param(path, number, id=f"{path.stem}-{heading}", marks=marks))
    return found


@pytest.mark.parametrize(("path", "number"), performed_sections())
def test_the_screens_are_real(path, number, request, tmp_path, monkeypatch):
    page = path.read_text()
    shown = sections(page)[number]
    monkeypatch.chdir(tmp_path)
    if not TABLE.search(page):
        assert printed(performed_section(page, number)) == printed(shown)
        return
    monkeypatch.setenv("BICA_DATA", str(request.getfixturevalue("shared_data")))
    if missing := missing_table(page):
        pytest.skip(missing)
    check_same(printed(performed_section(page, number)), printed(shown))


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_no_screen_is_lost_between_sections(path):
    page = path.read_text()
    assert [block.group() for part in sections(page) for block in BLOCK.finditer(part)] == [
        block.group() for block in BLOCK.finditer(page)
    ]


def printed(text: str) -> str:
    """Without blank ends, and without the digits in which machines may differ."""
    text = re.sub(r"(less than|some)\s+\d+\s+(seconds|minutes)", "some time", text)  # a forecast tries this machine
    text = re.sub(r"\d\.\d{7,}", lambda number: f"{float(number.group()):.6f}", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def check_same(fresh: str, page: str) -> None:
    """The same words, and numbers that nearly agree: real tables have close calls, which machines may round apart."""
    assert NUMBER.sub("#", " ".join(fresh.split())) == NUMBER.sub("#", " ".join(page.split()))
    for new, old in zip(NUMBER.findall(fresh), NUMBER.findall(page), strict=True):
        assert float(new) == pytest.approx(float(old), rel=0.001, abs=last_digit(old)), (new, old)


def last_digit(number: str) -> float:
    """One in the last digit that is shown; a rate below 0.0001 stands for none."""
    return 1e-4 if "e" in number else 10.0 ** -len(number.partition(".")[2])


def test_a_page_whose_table_is_absent_says_where_it_comes_from(tmp_path, monkeypatch):
    page = "Table: `$BICA_DATA/birds`, which comes from\nthe museum.\n\nMore.\n"
    (tmp_path / "birds").mkdir()
    monkeypatch.setenv("BICA_DATA", str(tmp_path))
    assert missing_table(page) is None
    monkeypatch.setenv("BICA_DATA", str(tmp_path / "elsewhere"))
    assert missing_table(page).endswith("it is the table which comes from the museum.")


def test_a_wrong_screen_is_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "```python sum.py\nprint('half of it:', 0.5)\n```\n\n```console\n$ python sum.py\nhalf of it: 0.5\n```\n"
    check_same(performed(page), page)
    for wrong in ("half of it: 0.7", "all of it: 0.5"):
        with pytest.raises(AssertionError):
            check_same(performed(page), page.replace("\nhalf of it: 0.5", f"\n{wrong}"))


PAGE = """# A page

## First

```python first.py
open("made.txt", "w").write("3")
print("made")
```

```console
$ python first.py
made
```

## Aside

```console
$ python never.py
```

## Second

```python second.py
print(open(f"{'made'}.txt").read())
```

```console
$ python second.py
3
```
"""


def test_a_section_is_performed_after_the_steps_that_make_its_files_and_no_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = sections(PAGE)
    assert performed_section(PAGE, 3) == parts[3]  # never.py, which does not exist, was not asked for
    assert {path.name for path in tmp_path.iterdir()} == {"first.py", "made.txt", "second.py"}


def test_a_wrong_screen_fails_its_own_section_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.replace("\nmade\n", "\nborrowed\n")
    assert performed_section(page, 1) != sections(page)[1]
    assert performed_section(page, 3) == sections(page)[3]


def test_files_are_recognised_by_their_names():
    (command,) = steps("```console\n$ bica fit $BICA_DATA/x/X.csv --noise 0.05 1=ch1.csv -o model.json\n```\n")
    assert command.names() == {"ch1.csv", "model.json"}
