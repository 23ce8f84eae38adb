"""``bica fit``: from a table to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bica.cli.app import INTERRUPTED
from bica.cli.options import (
    beta_prior,
    binarize_option,
    flip_rates,
    force_option,
    json_option,
    known_columns,
    level_or_none,
    output_option,
    refuse_two_answers,
    seed_option,
    sets_of_names,
    weights_option,
)
from bica.output import check_outputs

if TYPE_CHECKING:
    import numpy as np

    from bica.model.fit import Method
    from bica.pipeline import Learned

SPELLED = {  # options whose names differ from Python's settings
    "n_sources": "--sources",
    "min_probability": "--min-probability",
    "significance": "--significance",
    "noise": "--noise",
    "known": "--known",
    "forbidden": "--forbidden",
    "prior": "--prior",
    "n_jobs": "--jobs",
}


@click.command()
@click.argument("table")
@output_option("Write the model here; - is standard output.")
@click.option("--method", metavar="NAME", default="likelihood", show_default=True, help="How to learn.")
@click.option(
    "--sources",
    "n_sources",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of sources, for methods that need it.",
)
@click.option(
    "--min-probability", type=float, metavar="NUMBER", help="Drop rarer sources.  [default: the method's choice]"
)
@click.option(
    "--significance",
    callback=level_or_none,
    metavar="NUMBER|none",
    help="Level of the test for columns that may share a source; none leaves it out.",
)
@click.option(
    "--noise",
    default="auto",
    show_default=True,
    callback=flip_rates,
    metavar="auto|estimate|two-rates|per-sensor|RATE[,RATE]",
    help="How often sensors err: one flip rate, false alarms and misses, or these of every sensor, as the rows suggest "
    "(auto) or as told; or given rates: flips, or false alarms, misses.",
)
@click.option(
    "--known",
    multiple=True,
    callback=known_columns,
    metavar="COLUMNS[=NUMBER]",
    help="Columns of a known source, separated by commas, and its probability if known. May be repeated.",
)
@click.option(
    "--forbidden",
    multiple=True,
    callback=sets_of_names,
    metavar="COLUMNS",
    help="Columns that no unknown source drives all at once. May be repeated.",
)
@click.option("--prior", callback=beta_prior, metavar="A,B", help="A Beta prior on every probability.")
@click.option("--temporal", is_flag=True, help="Rows are consecutive slots; learn from their order, too.")
@binarize_option
@weights_option
@click.option(
    "--bootstrap",
    "n_resamples",
    type=click.IntRange(min=1),
    metavar="N",
    help="Learn again from N resamples of the rows, and report how often each source returns.",
)
@click.option("--jobs", "n_jobs", type=click.IntRange(min=1), metavar="N", help="Threads to use.  [default: all cores]")
@seed_option
@force_option
@json_option
def fit(
    table: str,
    output: str | None,
    method: str,
    binarize: float | dict[str, float] | None,
    weights: str | None,
    temporal: bool,
    n_resamples: int | None,
    n_jobs: int | None,
    seed: int,
    force: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Learn the sources behind TABLE, a file of zeros and ones.

    TABLE has one line per sample and one named column per sensor: CSV, TSV, Parquet, JSON lines, .npy, .npz or .mtx. A
    single dash reads CSV from standard input.
    """
    given = {name: None if value == "none" else value for name, value in settings.items() if value not in (None, [])}
    if given["noise"] == "auto":
        del given["noise"]  # every method has its own idea of that
    refuse_two_answers(as_json, output)
    check_outputs(force, output)

    import numpy as np

    from bica.cli.screens import note, waiting
    from bica.cli.screens.model import give_model
    from bica.methods import method_named
    from bica.pipeline import learn, read
    from bica.threads import ALL_CORES

    learner = method_named(method, spelled=SPELLED.__getitem__, n_jobs=n_jobs or ALL_CORES, **given)
    with waiting("learning the sources"):
        data = read(table, sample_weight=weights, binarize=binarize, temporal=temporal)
        learned = learn(data, learner, np.random.default_rng(seed))
        if n_resamples is not None and "interrupted" not in learned.fit.diagnostics:
            learned = _resampled(learned, learner, n_resamples, np.random.default_rng(seed), n_jobs or ALL_CORES)
    give_model(learned.fit.document(), output, as_json=as_json, force=force)
    if learned.diagnosis.verdict not in ("fits", "open"):
        note(f"warning: {learned.diagnosis.sentences()[0]}")
    if "interrupted" in learned.fit.diagnostics:
        raise click.exceptions.Exit(INTERRUPTED)


def _resampled(learned: Learned, learner: Method, n_resamples: int, rng: np.random.Generator, n_jobs: int) -> Learned:
    """The same with the results of a bootstrap in its fit; Ctrl-C keeps the resamples so far."""
    from dataclasses import replace

    from bica.cli.screens import note
    from bica.estimate.bootstrap import bootstrap

    again = bootstrap(learner, learned.counts, learned.fit, n_resamples, rng, n_jobs=n_jobs)
    if again.n_resamples < n_resamples:
        note(f"interrupted: {again.n_resamples} of {n_resamples} resamples were done")
    return replace(learned, fit=again.added_to(learned.fit))
