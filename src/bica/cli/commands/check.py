"""``bica check`` and ``bica count``: what a table shows before any fit, and its distinct rows with their counts."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from bica.cli.options import force_option, json_option, output_option, print_json, screen_for, table_options, waiting

if TYPE_CHECKING:
    from bica.diagnose.table import Hint


@click.command()
@click.argument("table")
@click.option("--fit", "with_fit", is_flag=True, help="Learn the sources, too, and judge how well they explain TABLE.")
@table_options()
@json_option
def check(table: str, with_fit: bool, as_json: bool, reading: dict[str, Any]) -> None:
    """Check TABLE before any fit: whether hidden sources can explain it or another tool suits it, and the cost.

    TABLE is a file as for `bica fit`; a single dash reads CSV from standard input.
    """
    import numpy as np

    from bica.cli.screens.model import show_findings, show_verdict
    from bica.data.patterns import PatternCounts
    from bica.diagnose.table import hints
    from bica.diagnose.verdicts import Diagnosis
    from bica.estimate.likelihood import forecast
    from bica.methods import method_named
    from bica.pipeline import learn

    with waiting("checking the table"):
        counts = PatternCounts.of(table, **reading)
        diagnosis, signs = Diagnosis.of(counts), hints(counts)
    ahead = forecast(diagnosis.table)
    if with_fit:
        with waiting("learning the sources"):
            diagnosis = learn(counts, method_named(ahead.method, n_jobs=-1), np.random.default_rng(0)).diagnosis
    if as_json:
        print_json(diagnosis.as_dict() | {"hints": [asdict(sign) for sign in signs], "forecast": asdict(ahead)})
        return
    show_verdict(screen_for(), diagnosis.as_dict())
    show_findings(screen_for(), [sign.sentence + _command(table, sign) for sign in signs])
    screen_for().print()
    show_findings(screen_for(), [*diagnosis.findings(), ahead.sentence])


def _command(table: str, sign: Hint) -> str:
    """What to type for such a table, if a method suits it."""
    if sign.method is None:
        return ""
    told = "" if sign.n_sources is None else f" --sources {sign.n_sources}"
    return f"; try `bica fit {table} --method {sign.method}{told}`"


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@output_option("Write the counts here, as Parquet.", required=True)
@table_options()
@force_option
@json_option
def count(tables: tuple[str, ...], output: str, force: bool, as_json: bool, reading: dict[str, Any]) -> None:
    """Count the distinct rows of each TABLE into one file, from which models are learned.

    Tables have the same columns. A TABLE may itself be a file of counts, so batches can be counted anywhere and merged
    anywhere: the counts are the same as those of all rows at once.
    """
    from functools import reduce
    from operator import add

    from bica.data.patterns import PatternCounts
    from bica.errors import SettingError
    from bica.output import check_target
    from bica.text import counted

    if not output.lower().endswith(".parquet"):
        raise SettingError(f"{output} should end in .parquet, which is how counts are kept")
    check_target(output, overwrite=force)
    with waiting("counting"):
        counts = reduce(add, (PatternCounts.of(table, **reading) for table in tables))
        counts.save(output, overwrite=force)
    if as_json:
        print_json({"rows": counts.n_samples, "distinct": len(counts.weights), "sensors": list(counts.sensors)})
        return
    rows, distinct = counted(int(counts.n_samples), "row"), counted(len(counts.weights), "distinct one")
    screen_for().print(f"{rows} of {counted(counts.n_sensors, 'sensor')}, {distinct}: {output}")
