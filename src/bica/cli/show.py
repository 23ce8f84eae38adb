"""``bica show``: a model for people."""

import click

from bica.cli.options import json_option


@click.command()
@click.argument("model")
@click.option("--full", is_flag=True, help="List every sensor, however many there are.")
@json_option
def show(model: str, full: bool, as_json: bool) -> None:
    """Show the sources of MODEL: their sensors and how often each is on.

    MODEL is a file written by `bica fit` or `bica simulate --truth`; a single dash reads standard input.
    """
    from bica.cli.files import read_fit, write_file
    from bica.cli.model_table import show_fit
    from bica.cli.screen import screen_for
    from bica.model.files import document_text

    fit = read_fit(model)
    if as_json:
        write_file("-", document_text(fit.document()), force=False)
    else:
        show_fit(screen_for(), fit, full=full)
