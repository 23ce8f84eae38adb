"""``bica fit``: from a table to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bica.cli.failures import INTERRUPTED
from bica.cli.options import (
    between_commas,
    binarize_option,
    force_option,
    json_option,
    output_option,
    rate,
    refuse_two_answers,
    seed_option,
    weights_option,
)

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


def _noise(_: click.Context, __: click.Parameter, text: str) -> str | tuple[float, ...]:
    rates = text.split(",")
    if text in ("auto", "estimate", "two-rates", "per-sensor"):
        return text
    if len(rates) > 2:
        raise click.BadParameter("give one flip rate, or the rates of false alarms and misses as in 0.01,0.1.")
    return tuple(rate(part) for part in rates)


def _significance(_: click.Context, __: click.Parameter, text: str | None) -> float | str | None:
    return text if text in (None, "none") else rate(text)


def _known(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[tuple[tuple[str, ...], float | None]]:
    """Sources from ``a,b`` or ``a,b=0.1``; an equals sign that no number follows is part of a name."""
    known: list[tuple[tuple[str, ...], float | None]] = []
    for text in given:
        names, sign, number = text.rpartition("=")
        try:
            known.append((between_commas(names), float(number)) if sign else (between_commas(text), None))
        except ValueError:
            known.append((between_commas(text), None))
    return known


def _forbidden(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [between_commas(text) for text in given]


def _prior(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    try:
        return None if text is None else tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter("give the two numbers of a Beta prior, as in 1.5,20.") from None


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
    callback=_significance,
    metavar="NUMBER|none",
    help="Level of the test for columns that may share a source; none leaves it out.",
)
@click.option(
    "--noise",
    default="auto",
    show_default=True,
    callback=_noise,
    metavar="auto|estimate|two-rates|per-sensor|RATE[,RATE]",
    help="How often sensors err: one flip rate, false alarms and misses, or these of every sensor, as the rows suggest "
    "(auto) or as told; or given rates: flips, or false alarms, misses.",
)
@click.option(
    "--known",
    multiple=True,
    callback=_known,
    metavar="COLUMNS[=NUMBER]",
    help="Columns of a known source, separated by commas, and its probability if known. May be repeated.",
)
@click.option(
    "--forbidden",
    multiple=True,
    callback=_forbidden,
    metavar="COLUMNS",
    help="Columns that no unknown source drives all at once. May be repeated.",
)
@click.option("--prior", callback=_prior, metavar="A,B", help="A Beta prior on every probability.")
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
    refuse_two_answers(as_json, output)

    import numpy as np

    from bica.cli.options import check_outputs
    from bica.cli.screen import note, waiting
    from bica.cli.screens.model import give_model
    from bica.pipeline import learn, read
    from bica.threads import ALL_CORES

    check_outputs(force, output)
    learner = _method(method, settings, n_jobs or ALL_CORES)
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


def _method(name: str, settings: dict[str, Any], n_jobs: int) -> Method:
    """The method with the settings that the user gave; the others keep its defaults."""
    from bica.methods import method_named
    from bica.model.noise import Noise

    given: dict[str, Any] = {
        key: None if value == "none" else value for key, value in settings.items() if value not in (None, [])
    }
    if given["noise"] == "auto":
        del given["noise"]  # every method has its own idea of that
    elif isinstance(given["noise"], tuple):
        false_alarm, miss = given["noise"][0], given["noise"][-1]
        given["noise"] = Noise(false_alarm, miss)
    return method_named(name, spelled=lambda setting: SPELLED[setting], n_jobs=n_jobs, **given)


def _resampled(learned: Learned, learner: Method, n_resamples: int, rng: np.random.Generator, n_jobs: int) -> Learned:
    """The same with the results of a bootstrap in its fit; Ctrl-C keeps the resamples so far."""
    from dataclasses import replace

    from bica.cli.screen import note
    from bica.estimate.bootstrap import bootstrap

    again = bootstrap(learner, learned.counts, learned.fit, n_resamples, rng, n_jobs=n_jobs)
    if again.n_resamples < n_resamples:
        note(f"interrupted: {again.n_resamples} of {n_resamples} resamples were done")
    return replace(learned, fit=again.added_to(learned.fit))
