"""``bica demo``: a first look with bundled data; ``bica warmup``: compile ahead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bica.cli.options import force_option, json_option, note, print_json, screen_for, waiting

if TYPE_CHECKING:
    from altair import TopLevelMixin

    from bica.model.fit import Fit
    from bica.model.or_mixture import OrMixture


PICTURES = ("overview.png", "found-and-true.png", "network.png")
ROWS_DRAWN = 28  # in the overview


@click.command()
@click.option("-o", "--output", metavar="FOLDER", help='Write the model and pictures here (needs "bica[report]").')
@force_option
@json_option
def demo(output: str | None, force: bool, as_json: bool) -> None:
    """Find the hidden links behind a small bundled table, and compare with the truth.

    The table says which of ten paths through a real network were bad in 5000 simulated moments, but not which links
    were down.
    """
    import numpy as np

    from bica.cli.screens.results import comparison_values, show_comparison
    from bica.data.patterns import PatternCounts
    from bica.estimate.likelihood import Likelihood
    from bica.model.or_mixture import OrMixture
    from bica.pipeline import learn
    from bica.simulate import example

    if output is not None:
        _check_folder(Path(output), force)
    given = example("abilene")
    truth = OrMixture(given.mixing, given.probability, sensors=given.sensors, names=given.source_names)
    with waiting("learning the sources"):
        data = PatternCounts.of(given.table_path)
        found = learn(data, Likelihood(n_jobs=-1), np.random.default_rng(0)).fit
    if output is not None:
        with waiting("drawing pictures"):
            _write_folder(Path(output), found, truth, given.table_path)
        note(f"the model and {len(PICTURES)} pictures are in {output}")
    if as_json:
        print_json({"sources": comparison_values(found.model, truth)})
    else:
        screen = screen_for()
        screen.print(
            f"{truth.n_sensors} paths watched over {data.n_samples:g} moments, and how often each link is down:"
        )
        show_comparison(screen, found.model, truth)
    note("next, with a table of your own: bica fit TABLE.csv -o model.json")


def _check_folder(folder: Path, force: bool) -> None:
    """Before the work, check that the packages are there and that nothing would be overwritten."""
    from bica.errors import OutputError
    from bica.output import check_target
    from bica.report.pictures import need_drawing

    need_drawing()
    if folder.is_dir():
        for name in ("model.json", *PICTURES):
            check_target(folder / name, overwrite=force)
    elif folder.exists():
        raise OutputError(f"{folder} is a file; name a folder")
    else:
        check_target(folder)


def _write_folder(folder: Path, found: Fit, truth: OrMixture, table: Path) -> None:
    from bica.data.rows import read_complete
    from bica.errors import OutputError
    from bica.report.figures import found_and_true_chart, network_chart, overview_chart
    from bica.report.pictures import save_picture

    rows = read_complete(str(table), found.model.sensors)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {error.strerror or error}") from error
    found.save(folder / "model.json", overwrite=True)
    charts: list[TopLevelMixin] = [
        overview_chart(rows[:ROWS_DRAWN], found.model, len(rows)),
        found_and_true_chart(found.model, truth),
        network_chart(found.model),
    ]
    for name, chart in zip(PICTURES, charts, strict=True):
        save_picture(chart, folder / name, overwrite=True)


@click.command()
@json_option
def warmup(as_json: bool) -> None:
    """Compile ahead what fits, decodes and reports need, once on each machine.

    For images of containers and nodes of clusters; elsewhere the first fit compiles what it needs.
    """
    from bica.ahead import warmup as warm_up

    with waiting("warming up"):
        done = warm_up()
    if as_json:
        print_json({"compiled": done.n_compiled, "ready": done.n_ready})
    elif done.n_compiled:
        screen_for().print(f"{done.n_compiled} kernels compiled; {done.n_ready} are ready")
    else:
        screen_for().print(f"all {done.n_ready} kernels were ready already")
