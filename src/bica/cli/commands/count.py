"""``bica count``: distinct rows with their counts, which merge."""

from __future__ import annotations

from typing import Any

import click

from bica.cli.options import force_option, json_option, output_option, table_options


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

    from bica.cli.screens import Screen, print_json, waiting
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
    Screen().print(f"{rows} of {counted(counts.n_sensors, 'sensor')}, {distinct}: {output}")
