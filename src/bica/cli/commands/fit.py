"""``bica fit``: from a table to a model."""

from typing import Any

import click

from bica.cli.failures import INTERRUPTED
from bica.cli.options import (
    binarize_option,
    force_option,
    json_option,
    output_option,
    rate,
    refuse_two_answers,
    seed_option,
    weights_option,
)


def _noise(_: click.Context, __: click.Parameter, text: str) -> float | str:
    return text if text in ("estimate", "per-sensor") else rate(text)


def _significance(_: click.Context, __: click.Parameter, text: str | None) -> float | str | None:
    return text if text in (None, "none") else rate(text)


@click.command()
@click.argument("table")
@output_option("Write the model here; - is standard output.")
@click.option("--method", metavar="NAME", default="likelihood", show_default=True, help="How to learn.")
@click.option(
    "--sources",
    "n_sources",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many sources there are, for methods that have to be told.",
)
@click.option(
    "--min-probability", type=float, metavar="NUMBER", help="Drop rarer sources; the method decides if not given."
)
@click.option(
    "--significance",
    callback=_significance,
    metavar="NUMBER|none",
    help="Level of the test that lets two columns share a source; none leaves the test out.",
)
@click.option(
    "--noise",
    default="estimate",
    show_default=True,
    callback=_noise,
    metavar="estimate|per-sensor|RATE",
    help="How often sensors show the opposite: found, as one rate or one a sensor, or known.",
)
@click.option("--temporal", is_flag=True, help="Rows are consecutive slots; learn from their order, too.")
@binarize_option
@weights_option
@click.option(
    "--bootstrap",
    "n_resamples",
    type=click.IntRange(min=1),
    metavar="N",
    help="Learn again from N resamples of the rows, and tell how often each source returns.",
)
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
    seed: int,
    force: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Learn the sources behind TABLE, a file of zeros and ones.

    TABLE has a line a sample and a named column a sensor: CSV, TSV, Parquet, JSON lines, .npy, .npz or .mtx. A
    single dash reads CSV from standard input.
    """
    refuse_two_answers(as_json, output)

    import numpy as np

    from bica.cli.options import check_outputs
    from bica.cli.screen import note, waiting
    from bica.cli.screens.model import give_model
    from bica.estimate.bootstrap import bootstrap
    from bica.methods import method_named
    from bica.pipeline import learn, read

    check_outputs(force, output)
    learner = method_named(method, n_jobs=-1, **_given(settings))
    with waiting("learning the sources"):
        learned = learn(
            read(table, sample_weight=weights, binarize=binarize, temporal=temporal),
            learner,
            np.random.default_rng(seed),
        )
        found = learned.fit
        if n_resamples is not None and "interrupted" not in found.diagnostics:
            again = bootstrap(learner, learned.counts, found, n_resamples, np.random.default_rng(seed), n_jobs=-1)
            found = again.added_to(found)
            if again.n_resamples < n_resamples:
                note(f"interrupted: {again.n_resamples} of {n_resamples} resamples were done")
    give_model(found.document(), output, as_json=as_json, force=force)
    if learned.diagnosis.verdict in ("doubtful", "misfit"):
        note(f"warning: {learned.diagnosis.sentences()[0]}")
    if "interrupted" in found.diagnostics:
        raise click.exceptions.Exit(INTERRUPTED)


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """What the user asked for; the rest is the method's own choice."""
    from bica.model.noise import Noise

    given: dict[str, Any] = {
        name: None if value == "none" else value for name, value in settings.items() if value is not None
    }
    if isinstance(given["noise"], float):
        given["noise"] = Noise.flips(given["noise"])
    return given
