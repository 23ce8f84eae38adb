"""``bica export``: a model for other programs."""

from pathlib import Path

import click

from bica.cli.options import force_option, output_option

ENDINGS = {".graphml": "graphml", ".dot": "dot", ".gv": "dot", ".csv": "csv", ".json": "json"}


@click.command()
@click.argument("model")
@click.option(
    "--format",
    "form",
    type=click.Choice(["graphml", "dot", "csv", "json"]),
    help="GraphML, DOT for Graphviz, a CSV list of edges, or the model file itself.  [default: by the ending of FILE]",
)
@output_option("Write here; standard output if left out.")
@force_option
def export(model: str, form: str | None, output: str | None, force: bool) -> None:
    """Write MODEL as a graph or a list for other programs."""
    form = form or ENDINGS.get(Path(output or "").suffix.lower())
    if form is None:
        raise click.UsageError(f"Say which --format to write, or give -o a FILE that ends in {', '.join(ENDINGS)}.")

    from bica.cli.options import read_model
    from bica.model.export import export_text
    from bica.model.files import document_text
    from bica.model.or_mixture import OrMixture
    from bica.output import check_outputs, write_output

    check_outputs(force, output)
    document = read_model(model)
    text = document_text(document) if form == "json" else export_text(OrMixture.of_document(document), form)
    write_output(output or "-", text, force)
