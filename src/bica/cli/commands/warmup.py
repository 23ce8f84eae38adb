"""``bica warmup``: compile ahead."""

import click

from bica.cli.options import json_option, print_json, screen_for, waiting


@click.command()
@json_option
def warmup(as_json: bool) -> None:
    """Compile ahead what fits, decodes and reports need, once on each machine.

    For images of containers and nodes of clusters; elsewhere the first fit compiles what it needs.
    """
    from bica.warmup import warmup as warm_up

    with waiting("warming up"):
        done = warm_up()
    if as_json:
        print_json({"compiled": done.n_compiled, "ready": done.n_ready})
    elif done.n_compiled:
        screen_for().print(f"{done.n_compiled} kernels compiled; {done.n_ready} are ready")
    else:
        screen_for().print(f"all {done.n_ready} kernels were ready already")
