"""``bica compare`` and ``bica score``: methods against each other, and a model against the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bica.cli.options import (
    json_option,
    named_model,
    names_between_commas,
    note,
    print_json,
    rate,
    read_model,
    screen_for,
    waiting,
)

if TYPE_CHECKING:
    from rich.table import Table

    from bica.compare.contest import ContestProblem
    from bica.compare.summary import Standing
    from bica.metrics import Match
    from bica.model.or_mixture import OrMixture


DEFAULT_METHODS = ("likelihood", "findbica", "grecond")  # none has to be told the number of sources


NOT_ON_SCREEN = ("similarity", "gain")  # 80 characters are few; the files have all columns
PLAIN = ("CPU s",)  # columns that need no words


def _whole_numbers(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < len(part) < 9 and int(part) for part in parts):
        raise click.BadParameter("give whole numbers from 1 up, separated by commas, as in 200,1000.")
    return tuple(map(int, parts))


def _rates(_: click.Context, __: click.Parameter, text: str) -> tuple[float, ...]:
    return tuple(rate(part.strip()) for part in text.split(","))


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--truth", "truths", multiple=True, metavar="MODEL", help="The true model of each TABLE, in their order.")
@click.option(
    "--sources", type=click.IntRange(min=1), metavar="N", help="For methods that must be told, on each TABLE."
)
@click.option(
    "--network",
    "networks",
    multiple=True,
    metavar="NAME",
    help="A network to draw rows from, such as: topology one, random 20 x 30, lossy 10 x 6, bars 4, xor 8. Repeatable.",
)
@click.option(
    "--rows",
    callback=_whole_numbers,
    default="1000",
    show_default=True,
    metavar="NUMBERS",
    help="Rows to draw from each network.",
)
@click.option(
    "--flips",
    callback=_rates,
    default="0",
    show_default=True,
    metavar="RATES",
    help="Shares of cells to flip in these rows.",
)
@click.option(
    "--plan", metavar="FILE", help="A TOML file with tables, networks, methods and runs, in place of options."
)
@click.option(
    "--methods",
    callback=names_between_commas,
    metavar="NAMES",
    help=f"Methods, separated by commas.  [default: {', '.join(DEFAULT_METHODS)}]",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Seeds: other rows, or another split of each TABLE.  [default: 3]",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Give a method up on rows that take it more CPU time.",
)
@click.option("-o", "--output", metavar="FOLDER", default="bica-compare", show_default=True, help="Where results go.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes at a time.  [default: one per core]")
@json_option
def compare(
    tables: tuple[str, ...],
    truths: tuple[str, ...],
    sources: int | None,
    networks: tuple[str, ...],
    rows: tuple[int, ...],
    flips: tuple[float, ...],
    plan: str | None,
    methods: tuple[str, ...] | None,
    runs: int | None,
    time_limit: float | None,
    output: str,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compare methods: on each TABLE, on simulated problems, or both.

    Of a TABLE, every run learns from two thirds of the rows and is judged by the others; with --truth, by the sources,
    too. Finished runs are kept: the same command continues after an interruption, and adds what is new.
    """
    from bica.cli.commands.reproduce import run_in_folder, write_figure
    from bica.compare import matches, standings
    from bica.output import write_whole
    from bica.report.standings import standings_chart, standings_markdown, standings_page

    asked = {"tables": tables, "truths": truths, "sources": sources, "networks": networks, "rows": rows, "flips": flips}
    contest = _planned(plan, methods, runs, tables or networks) if plan else _typed(asked)
    names = methods or contest.get("methods") or DEFAULT_METHODS
    seeds = range(runs or contest.get("runs") or 3)
    found = standings(run_in_folder(matches(names, contest["problems"], seeds, time_limit), output, jobs))
    write_figure(output, "comparison", standings_chart(found), standings_markdown(found))
    write_whole(f"{output}/table.html", standings_page(found), overwrite=True)
    note(f"all columns, with the best of each: {output}/table.html; open it in any browser")
    if as_json:
        print_json({"standings": [_plain(standing) for standing in found]})
        return
    _show(screen_for(), found)


def _typed(asked: dict[str, Any]) -> dict[str, Any]:
    """The problems that options describe."""
    from bica.compare import OwnTable, Setting, SimulatedRows

    tables, truths = asked["tables"], asked["truths"]
    if truths and len(truths) != len(tables):
        raise click.UsageError(f"{len(tables)} tables have {len(truths)} truths; give --truth once for each TABLE.")
    own: list[ContestProblem] = [
        OwnTable(path=path, truth=truth, n_sources=asked["sources"])
        for path, truth in zip(tables, truths or [None] * len(tables), strict=True)
    ]
    drawn = [
        SimulatedRows(setting=Setting(network=network, n_samples=count, flip_rate=share))
        for network in asked["networks"]
        for count in asked["rows"]
        for share in asked["flips"]
    ]
    if not own and not drawn:
        raise click.UsageError("name a TABLE, a --network or a --plan to compare methods on.")
    return {"problems": [*own, *drawn]}


def _planned(path: str, methods: Sequence[str] | None, runs: int | None, others: Sequence[str]) -> dict[str, Any]:
    """The contest that a file describes; its methods and runs hold unless options name others."""
    from bica.compare.run import read_plan

    if others:
        raise click.UsageError("--plan has its own tables and networks; leave the others out.")
    read = read_plan(path)
    return {"problems": read.problems, "methods": methods or read.methods, "runs": runs or read.runs}


def _plain(standing: Standing) -> dict[str, Any]:
    from dataclasses import asdict

    from bica.model.files import as_json

    means = {name: as_json(asdict(mean)) for name, mean in standing.means.items()}
    return {**asdict(standing), "means": means}


def _show(screen: Any, found: Sequence[Standing]) -> None:
    from bica.cli.screens.model import show_findings
    from bica.report.standings import COLUMNS, MEANING, by_problem

    for problem, members in by_problem(found).items():
        screen.print(problem, style="bold")
        screen.print(_table(members))
    titles = [COLUMNS[name][0] for name in _measures(found)] + ["verdict"]
    show_findings(screen, [f"{title}: {MEANING[title]}" for title in titles if title not in PLAIN])


def _measures(members: Sequence[Standing]) -> list[str]:
    from bica.report.standings import measures_of

    return [name for name in measures_of(members) if name not in NOT_ON_SCREEN]


def _table(members: Sequence[Standing]) -> Table:
    from rich import box
    from rich.table import Table

    from bica.report.standings import COLUMNS, cells_of, verdicts_of

    measures = _measures(members)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))  # narrow: there are many columns
    for title in ("method", *(COLUMNS[name][0] for name in measures)):
        table.add_column(title, justify="left" if title == "method" else "right", no_wrap=True)
    table.add_column("verdict", min_width=len("verdict"))
    for member in members:
        table.add_row(member.contender, *cells_of(member, measures), verdicts_of(member))
    return table


@click.command()
@click.argument("model")
@click.argument("truth")
@click.option(
    "--activity",
    nargs=2,
    metavar="TABLE ACTIVITY",
    help="Decode TABLE with MODEL and compare with ACTIVITY, both as `bica simulate` writes them.",
)
@click.option("--sources", is_flag=True, help="Show the sources of both side by side, too.")
@json_option
def score(model: str, truth: str, activity: tuple[str, str] | None, sources: bool, as_json: bool) -> None:
    """Measure how far MODEL is from TRUTH, another model file."""
    from bica.cli.screens.results import comparison_values, show_comparison, show_score
    from bica.metrics import compare_models
    from bica.model.fit import Fit

    found, true = Fit.of_document(read_model(model)).all_named(), named_model(read_model(truth))
    with waiting("comparing"):
        comparison = compare_models(found.model, true, found.n_samples)
        measures = comparison.as_dict()
        if activity is not None:
            measures["activity_error_ratio"] = _activity_error(found.model, true, comparison.match, *activity)
    if as_json:
        print_json(measures | ({"sources": comparison_values(found.model, true)} if sources else {}))
        return
    if sources:
        show_comparison(screen_for(), found.model, true)
    show_score(screen_for(), measures)


def _activity_error(model: OrMixture, truth: OrMixture, match: Match, table: str, activity: str) -> float:
    """The share of wrong cells in the activity decoded from ``table``, compared with the true ``activity``."""
    from bica.data.rows import read_complete
    from bica.invert.decode import decode
    from bica.kernels.bits import packed
    from bica.metrics import activity_error_ratio

    found = decode(model, packed(read_complete(table, model.sensors)))
    if not found.feasible.all():
        impossible = int((~found.feasible).sum())
        note(f"{impossible} rows of {table} are impossible under MODEL and count as silent; fit it with noise")
    return activity_error_ratio(found.activity, read_complete(activity, truth.source_names()), match)
