"""``bica show``: a model on the screen."""

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
    from bica.cli.options import read_model
    from bica.cli.screens import Screen
    from bica.cli.screens.model import show_model
    from bica.model.files import document_text
    from bica.output import write_output

    document = read_model(model)
    if as_json:
        write_output("-", document_text(document), force=False)
    else:
        show_model(Screen(), document, full=full)
