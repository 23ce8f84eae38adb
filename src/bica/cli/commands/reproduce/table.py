"""``bica reproduce table``: the computation times of the paper's evaluation."""

from __future__ import annotations

import click

from bica.cli.commands.reproduce.runs import evaluated, evaluation_options, table_of, write_figure


@click.command()
@evaluation_options()
def table(output: str, runs: int | None, quick: bool, methods: str | None, jobs: int | None, as_json: bool) -> None:
    """Show the evaluation's computation times: mean CPU seconds of a fit.

    The runs are those of `bica reproduce topologies`; in the same folder nothing is run twice.
    """
    from bica.cli.screen import print_json, screen_for
    from bica.experiments.evaluation import markdown_of_times, mean_times, times_chart

    times = mean_times(evaluated(output, runs, quick, methods, jobs))
    write_figure(output, "table", times_chart(times), markdown_of_times(times))
    if as_json:
        print_json({"times": times})
        return
    screen = screen_for()
    screen.print("mean CPU seconds of a fit on each topology, averaged over all else:")
    screen.print(table_of(times, "network"))
