"""``bica score``: a model against the truth."""

import click

from bica.cli.options import json_option


@click.command()
@click.argument("model")
@click.argument("truth")
@json_option
def score(model: str, truth: str, as_json: bool) -> None:
    """Measure how far MODEL is from TRUTH, another model file."""
    from bica.cli.files import read_model
    from bica.cli.score_table import show_score
    from bica.cli.screen import print_json, screen_for
    from bica.metrics import compare_models
    from bica.model.fit import Fit
    from bica.model.or_mixture import OrMixture

    found = Fit.of_document(read_model(model))
    comparison = compare_models(found.model, OrMixture.of_document(read_model(truth)), found.n_samples)
    if as_json:
        print_json(comparison.as_dict())
    else:
        show_score(screen_for(), comparison)
