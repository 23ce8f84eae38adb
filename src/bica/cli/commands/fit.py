"""``bica fit``: from a table to a model; ``bica unmix``: from measurements to the levels that add up in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bica.cli.app import INTERRUPTED
from bica.cli.options import (
    beta_prior,
    flip_rates,
    force_option,
    json_option,
    known_columns,
    level_or_none,
    n_bytes,
    names_between_commas,
    note,
    output_option,
    print_json,
    screen_for,
    seed_option,
    sets_of_names,
    table_options,
    waiting,
    words_options,
)
from bica.output import check_outputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from bica.model.fit import Fit, Method
    from bica.pipeline import Learned
    from bica.rivals.linear import LinearMixture

SPELLED = {  # options whose names differ from Python's settings
    "n_sources": "--sources",
    "min_probability": "--min-probability",
    "significance": "--significance",
    "noise": "--noise",
    "known": "--known",
    "forbidden": "--forbidden",
    "prior": "--prior",
    "edges": "--edges",
    "n_jobs": "--jobs",
    "time_limit": "--time-limit",
    "start": "--start",
}


# those of `bica.methods`, once more: completion must not wait for NumPy
METHOD_NAMES = (
    "likelihood",
    "findbica",
    "mac",
    "grecond",
    "grecond-essential",
    "grecond-plus",
    "message-passing",
    "ormachine",
    "asso",
    "elbmf",
    "attractor",
    "buffet",
    "noca",
    "beta",
    "aspect",
    "quartets",
    "xor",
    "linear",
    "fastica",
)


def method_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """The methods whose names begin so, for completion."""
    return [name for name in METHOD_NAMES if name.startswith(incomplete)]


@click.command()
@click.argument("table")
@output_option("Write the model here; - is standard output.")
@click.option(
    "--method",
    metavar="NAME",
    default="likelihood",
    show_default=True,
    shell_complete=method_names,
    help="How to learn.",
)
@click.option(
    "--sources",
    "n_sources",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of sources, if it is known; some methods need it.",
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
@click.option(
    "--edges",
    type=click.Choice(["auto", "sure", "lossy"]),
    default="auto",
    show_default=True,
    help="Whether sources always switch on all their columns (sure), or each with a probability of its own (lossy), as "
    "the rows suggest (auto) or as told.",
)
@click.option(
    "--engine",
    type=click.Choice(["dask", "spark"]),
    help="Leave the rows on a cluster: TABLE is a folder or a pattern of Parquet files that all its workers see.",
)
@click.option("--temporal", is_flag=True, help="Rows are consecutive slots; learn from their order, too.")
@table_options()
@click.option(
    "--bootstrap",
    "n_resamples",
    type=click.IntRange(min=1),
    metavar="N",
    help="Learn again from N resamples of the rows, and report how often each source returns.",
)
@click.option(
    "--names-from", metavar="MODEL", help="Keep the names in MODEL.  [default: those in FILE, where it is replaced]"
)
@click.option(
    "--start",
    "warm_start",
    metavar="MODEL",
    help="Begin with the sources of MODEL, and keep their names: where little has changed, that is quicker.",
)
@words_options
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End with the best model so far after so long, marked as unfinished.  [default: none]",
)
@click.option(
    "--memory",
    callback=n_bytes,
    metavar="SIZE",
    help="Keep to so much memory, as in 2GB: put more on disk, or end before it takes more.  [default: no limit]",
)
@click.option("--jobs", "n_jobs", type=click.IntRange(min=1), metavar="N", help="Threads to use.  [default: all cores]")
@seed_option
@force_option
@json_option
def fit(
    table: str,
    output: str | None,
    method: str,
    reading: dict[str, Any],
    engine: str | None,
    temporal: bool,
    n_resamples: int | None,
    names_from: str | None,
    warm_start: str | None,
    sensors_are: str | None,
    sources_are: str | None,
    rows_are: str | None,
    memory: float | None,
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
    for choice in ("noise", "edges"):
        if given[choice] == "auto":
            del given[choice]  # every method has its own idea of that
    check_outputs(force, output, read=[table], as_json=as_json)

    from dataclasses import replace

    import numpy as np

    from bica.data.engines import frame_of_files
    from bica.methods import method_named
    from bica.model.fit import Fit
    from bica.pipeline import learn
    from bica.progress import ALL_CORES, memory_limited

    if warm_start is not None:
        given["start"] = Fit.load(warm_start).model
    learner = method_named(method, spelled=SPELLED.__getitem__, n_jobs=n_jobs or ALL_CORES, **given)
    with waiting("learning the sources", on_ctrl_c="stopping, keeping the best so far"), memory_limited(memory):
        rows = table if engine is None else frame_of_files(table, engine)
        learned = learn(rows, learner, np.random.default_rng(seed), temporal=temporal, **reading)
        if n_resamples is not None and "interrupted" not in learned.fit.diagnostics:
            learned = _resampled(learned, learner, n_resamples, np.random.default_rng(seed), n_jobs or ALL_CORES)
    named = _named(learned.fit, output, names_from or warm_start)
    named = replace(named, diagnostics={**named.diagnostics, "settings": _typed(click.get_current_context())})
    words = {"sensors": sensors_are, "sources": sources_are, "rows": rows_are}
    if any(word is not None for word in words.values()):
        named = replace(named, nouns=named.nouns.with_changes(words))
    give_model(named, output, as_json=as_json, force=force)
    alike = learned.order.persistence
    if alike is not None:
        note(f"{alike.words()}; if they are consecutive slots, learn from their order with --temporal")
    if learned.diagnosis.verdict not in ("fits", "open"):
        note(f"warning: {learned.diagnosis.sentences()[0]}")
    if "interrupted" in learned.fit.diagnostics and "time_limit" not in learned.fit.diagnostics:
        raise click.exceptions.Exit(INTERRUPTED)


def give_model(fit: Fit, output: str | None, *, as_json: bool, force: bool) -> None:
    """Write the model that a command learned to a file if asked, and print it as JSON or as a table.

    A model whose learning was interrupted never replaces a file: it is written beside it. One that a time limit ended
    is what was asked for.
    """
    from pathlib import Path

    from bica.cli.screens.model import show_model
    from bica.model.files import document_text
    from bica.output import free_name, write_output

    document = fit.document()
    text = document_text(document)
    if output is not None:
        noted = document.fitted.get("diagnostics", {})
        keeps = noted.get("interrupted") and "time_limit" not in noted and Path(output).is_file()
        place = str(free_name(output, "unfinished")) if keeps else output
        write_output(place, text, force)
        if place != output:
            note(f"{output} is as it was; the unfinished model is in {place}")
    if as_json:
        write_output("-", text, force)
    else:
        show_model(screen_for(output), document)


NOT_SETTINGS = {
    "engine",
    "table",
    "output",
    "method",
    "names_from",
    "warm_start",
    "sensors_are",
    "sources_are",
    "rows_are",
    "memory",
    "n_jobs",
    "force",
}


def _typed(context: click.Context) -> dict[str, Any]:
    """The settings that the user gave, and the seed: what it takes to learn the same model again."""
    from click.core import ParameterSource

    from bica.model.noise import Noise

    given = {
        name: [value.false_alarm, value.miss] if isinstance(value, Noise) else value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT and name not in {*NOT_SETTINGS, "as_json"}
    }
    return given | {"seed": context.params["seed"]}


def _named(fit: Fit, output: str | None, names_from: str | None) -> Fit:
    """The fit with the names that the user gave to sources of an earlier model with nearly the same sensors."""
    from pathlib import Path

    from bica.errors import ModelFileError
    from bica.model.fit import Fit

    if names_from is not None:
        return fit.with_names_of(Fit.load(names_from))
    if output in (None, "-") or not Path(output).is_file():
        return fit
    try:
        earlier = Fit.load(output)
    except ModelFileError:  # some other file, which is replaced as the user asked
        return fit
    named = fit.with_names_of(earlier)
    n_kept = sum(name is not None for name in named.model.names) - sum(name is not None for name in fit.model.names)
    if any(earlier.model.names):
        n_named = sum(name is not None for name in earlier.model.names)
        note(f"{n_kept} of {n_named} names kept from the earlier {output}")
    return named


def _resampled(learned: Learned, learner: Method, n_resamples: int, rng: np.random.Generator, n_jobs: int) -> Learned:
    """The same with the results of a bootstrap in its fit; Ctrl-C keeps the resamples so far."""
    from dataclasses import replace

    from bica.errors import LimitError
    from bica.estimate.bootstrap import bootstrap

    try:
        again = bootstrap(learner, learned.counts.counts(), learned.fit, n_resamples, rng, n_jobs=n_jobs)
    except LimitError as error:
        note(f"no resamples: {error}")
        return learned
    if again.n_resamples < n_resamples:
        note(f"interrupted: {again.n_resamples} of {n_resamples} resamples were done")
    return replace(learned, fit=again.added_to(learned.fit))


@click.command()
@click.argument("table")
@click.option(
    "--sources", "n_sources", required=True, type=click.IntRange(min=1), metavar="N", help="How many there are."
)
@click.option("--columns", callback=names_between_commas, metavar="A,B,...", help="Columns to use.  [default: all]")
@output_option("Write which sources were on, row by row, here: .csv or .parquet, or - for CSV on standard output.")
@seed_option
@force_option
@json_option
def unmix(
    table: str,
    n_sources: int,
    columns: tuple[str, ...] | None,
    output: str | None,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Unmix measurements: what each source adds to the columns of TABLE while it is on, and when it was on.

    TABLE is CSV with a header; its cells are numbers, in which the levels of on/off sources add up, such as the power
    of appliances on one meter. There may be more sources than columns. For zeros and ones use `bica fit`.
    """
    check_outputs(force, output, as_json=as_json)

    import numpy as np

    from bica.data.tables import measurements_in
    from bica.data.writers import check_table_names, table_bytes
    from bica.output import write_output
    from bica.rivals.linear import LinearSums

    check_table_names(output)
    names, values = measurements_in(table, columns)
    with waiting("unmixing the measurements"):
        found = LinearSums(n_sources=n_sources).unmix(values, np.random.default_rng(seed))
    sources = [f"source{number}" for number in range(1, n_sources + 1)]
    if output is not None:
        write_output(output, table_bytes(found.activity, sources, output), force)
    if as_json:
        print_json(_as_numbers(found, names))
        return
    _show_levels(found, names, sources, output)


def _as_numbers(found: LinearMixture, names: Sequence[str]) -> dict[str, Any]:
    return {
        "columns": list(names),
        "sources": [
            {"probability": float(share), "adds": list(map(float, adds))}
            for share, adds in zip(found.probability, found.amplitude.T, strict=True)
        ],
        "offset": list(map(float, found.offset)),
        "deviation": float(found.deviation),
        "converged": found.converged,
    }


def _show_levels(found: LinearMixture, names: Sequence[str], sources: Sequence[str], output: str | None) -> None:
    from bica.cli.screens.model import number, plain_table
    from bica.text import harmless

    screen, table = screen_for(output), plain_table("source")
    table.add_column("probability", justify="right", no_wrap=True)
    table.add_column("adds")
    for name, share, adds in zip(sources, found.probability, found.amplitude.T, strict=True):
        levels = ", ".join(f"{harmless(column)} {level:.4g}" for column, level in zip(names, adds, strict=True))
        table.add_row(name, number(share), levels)
    screen.print(table)
    quiet = ", ".join(f"{harmless(column)} {level:.4g}" for column, level in zip(names, found.offset, strict=True))
    screen.print(f"without any source: {quiet}\nnoise: standard deviation {found.deviation:.3g}")
    if not found.converged:
        note("warning: the best start did not settle; try another --seed")
