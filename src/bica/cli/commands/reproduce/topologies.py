"""``bica reproduce topologies``: the figure of the paper's evaluation."""

from __future__ import annotations

import click

from bica.cli.commands.reproduce.runs import evaluated, evaluation_options, table_of, write_figure


@click.command()
@evaluation_options()
def topologies(
    output: str, runs: int | None, quick: bool, methods: str | None, jobs: int | None, as_json: bool
) -> None:
    """Draw the evaluation's figure: all error measures on four networks.

    Four topologies, five numbers of rows, with and without 10 % of the cells flipped; one row per measure, one
    line per method.
    """
    from bica.cli.screen import print_json, screen_for
    from bica.compare import summarise
    from bica.experiments.evaluation import evaluation_chart, markdown_of_means
    from bica.simulate import TOPOLOGIES, topology

    means = summarise(evaluated(output, runs, quick, methods, jobs))
    networks = {f"topology {network}": topology(network) for network in TOPOLOGIES}
    write_figure(output, "topologies", evaluation_chart(means, networks), markdown_of_means(means))
    if as_json:
        print_json({"means": means})
        return
    largest = max(row["n_samples"] for row in means)
    shown = [row for row in means if row["measure"] == "hamming_distance" and row["n_samples"] == largest]
    screen = screen_for()
    screen.print(f"share of wrong cells in the mixing of each topology, from {largest} rows:")
    screen.print(table_of(shown, "network"))
