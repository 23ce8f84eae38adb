"""``bica score``: a model against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bica.cli.options import json_option

if TYPE_CHECKING:
    from bica.metrics import Match
    from bica.model.or_mixture import OrMixture


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
    from bica.cli.options import read_model
    from bica.cli.screens import Screen, print_json, waiting
    from bica.cli.screens.comparison import comparison_values, show_comparison, show_score
    from bica.metrics import compare_models
    from bica.model.fit import Fit
    from bica.model.or_mixture import OrMixture

    found, true = Fit.of_document(read_model(model)), OrMixture.of_document(read_model(truth))
    with waiting("comparing"):
        comparison = compare_models(found.model, true, found.n_samples)
        measures = comparison.as_dict()
        if activity is not None:
            measures["activity_error_ratio"] = _activity_error(found.model, true, comparison.match, *activity)
    if as_json:
        print_json(measures | ({"sources": comparison_values(found.model, true)} if sources else {}))
        return
    if sources:
        show_comparison(Screen(), found.model, true)
    show_score(Screen(), measures)


def _activity_error(model: OrMixture, truth: OrMixture, match: Match, table: str, activity: str) -> float:
    """The share of wrong cells in the activity decoded from ``table``, compared with the true ``activity``."""
    from bica.cli.screens import note
    from bica.data.rows import read_complete
    from bica.invert.decode import decode
    from bica.kernels.bits import packed
    from bica.metrics import activity_error_ratio

    found = decode(model, packed(read_complete(table, model.sensors)))
    if not found.feasible.all():
        impossible = int((~found.feasible).sum())
        note(f"{impossible} rows of {table} are impossible under MODEL and count as silent; fit it with noise")
    return activity_error_ratio(found.activity, read_complete(activity, truth.source_names()), match)
