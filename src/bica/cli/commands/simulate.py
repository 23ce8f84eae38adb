"""``bica simulate``: a table with a known answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bica.cli.options import (
    force_option,
    json_option,
    output_option,
    print_json,
    read_model,
    screen_for,
    seed_option,
    waiting,
)
from bica.output import check_outputs

if TYPE_CHECKING:
    import numpy as np

    from bica.model.noise import Noise
    from bica.model.or_mixture import OrMixture


N_SENSORS, N_SOURCES, COLUMN_WEIGHT, PROBABILITY = 10, 10, (2, 4), (0.05, 0.3)  # of a random network
N_POOLS, N_TESTED, CARRIERS = 48, 384, (0.01, 0.01)  # of a pooling design


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkOptions:
    """A model file, a fixed topology, a pooling design or a random network; None where the user gave nothing."""

    model: str | None = None
    topology: str | None = None
    sensors: int | None = None
    sources: int | None = None
    column_weight: tuple[int, int] | None = None
    probability: tuple[float, float] | None = None
    pooling: int | None = None
    reach: tuple[float, float] | None = None
    flip_rate: float | None = None
    false_alarm: float | None = None
    miss: float | None = None

    def __post_init__(self) -> None:
        random = any(
            setting is not None for setting in (self.sensors, self.sources, self.column_weight, self.probability)
        )
        if (self.model is not None) + (self.topology is not None) + random > 1:
            raise click.UsageError("Give one network: --model, --topology, or the settings of a random one.")
        if self.pooling is not None and (self.column_weight, self.model, self.topology) != (None, None, None):
            raise click.UsageError("--pooling goes with --sensors, --sources and --probability only.")
        if self.flip_rate is not None and (self.false_alarm is not None or self.miss is not None):
            raise click.UsageError("Give --flip-rate, or --false-alarm (--leak) and --miss, not both.")

    def build(self, rng: np.random.Generator) -> OrMixture:
        """The network with its noise."""
        import bica.simulate

        given, noise = self._without_noise(rng), self._noise()
        if self.reach is not None:
            given = bica.simulate.with_lossy_edges(given, self.reach, rng=rng)
        return given if noise is None else given.with_noise(noise)

    def _without_noise(self, rng: np.random.Generator) -> OrMixture:
        import bica.simulate
        from bica.model.or_mixture import OrMixture

        if self.model is not None:
            return OrMixture.of_document(read_model(self.model))
        if self.topology is not None:
            return bica.simulate.topology(self.topology)
        if self.pooling is not None:
            return bica.simulate.pooling_design(
                self.sensors or N_POOLS,
                self.sources or N_TESTED,
                self.pooling,
                probability=self.probability or CARRIERS,
                rng=rng,
            )
        return bica.simulate.random_network(
            self.sensors or N_SENSORS,
            self.sources or N_SOURCES,
            column_weight=self.column_weight or COLUMN_WEIGHT,
            probability=self.probability or PROBABILITY,
            rng=rng,
        )

    def _noise(self) -> Noise | None:
        from bica.model.noise import Noise

        if self.flip_rate is not None:
            return Noise.flips(self.flip_rate)
        if self.false_alarm is None and self.miss is None:
            return None
        return Noise(self.false_alarm or 0.0, self.miss or 0.0)


error_rate = click.FloatRange(0, 1, max_open=True)


def reach_range(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[float, float] | None:
    """The range in ``LOW,HIGH``; one number is both ends."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(",") if "," in text else (text, text))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a range such as 0.5,1") from None
    return low, high


@click.command()
@output_option("Write the table here: .csv or .parquet, or - for CSV on standard output.", required=True)
@click.option("--truth", metavar="FILE", help="Write the true model here.")
@click.option("--activity", metavar="FILE", help="Write here which sources were on, row by row.")
@click.option(
    "--samples", type=click.IntRange(min=1), metavar="N", default=1000, show_default=True, help="How many rows."
)
@click.option("--sensors", type=click.IntRange(min=1), metavar="N", help="Columns of a random network.  [default: 10]")
@click.option("--sources", type=click.IntRange(min=1), metavar="N", help="Sources of a random network.  [default: 10]")
@click.option("--column-weight", type=(int, int), metavar="LOW HIGH", help="Sensors of each source.  [default: 2 4]")
@click.option("--probability", type=(float, float), metavar="LOW HIGH", help="Of each source.  [default: 0.05 0.3]")
@click.option(
    "--reach",
    callback=reach_range,
    metavar="LOW,HIGH",
    help="Lossy edges: how often an active source switches on each of its sensors.  [default: always]",
)
@click.option(
    "--pooling",
    type=click.IntRange(min=1),
    metavar="N",
    help="A pooling design: --sources samples, each in N of --sensors pools.  [default: 384, 48, probability 0.01]",
)
@click.option("--topology", metavar="NAME", help="A fixed network, not a random one: one, two, three or four.")
@click.option("--model", metavar="MODEL", help="The network and the noise of a model file.")
@click.option("--flip-rate", type=error_rate, metavar="RATE", help="How often a sensor shows the opposite.")
@click.option(
    "--false-alarm",
    "--leak",
    "false_alarm",
    type=error_rate,
    metavar="RATE",
    help="How often a sensor shows 1 in place of 0.",
)
@click.option("--miss", type=error_rate, metavar="RATE", help="How often a sensor shows 0 in place of 1.")
@click.option(
    "--persistence", type=click.FloatRange(min=1), metavar="L", help="Mean number of rows for which a source stays on."
)
@seed_option
@force_option
@json_option
def simulate(
    output: str,
    truth: str | None,
    activity: str | None,
    samples: int,
    persistence: float | None,
    seed: int,
    force: bool,
    as_json: bool,
    **network: Any,
) -> None:
    """Make a table of zeros and ones whose sources are known.

    The network is random unless --topology or --model names one, or --pooling asks for a design.
    """
    check_outputs(force, output, truth, activity, as_json=as_json)

    import numpy as np

    import bica.simulate
    from bica.data.writers import check_table_names, table_bytes
    from bica.model.files import document_text
    from bica.output import write_output

    wanted = NetworkOptions(**network)
    check_table_names(output, activity)
    rng = np.random.default_rng(seed)
    with waiting("drawing rows"):
        problem = bica.simulate.simulate(wanted.build(rng), samples, rng, persistence)
        model = problem.model
        files = {output: table_bytes(problem.rows, model.sensors, output)}
        if activity is not None:
            files[activity] = table_bytes(problem.activity, model.source_names(), activity)
        if truth is not None:
            files[truth] = document_text(model.document()).encode()
    for path, content in files.items():
        write_output(path, content, force)
    _show(model, samples, {"table": output, "truth": truth, "activity": activity}, as_json=as_json)


def _show(model: OrMixture, n_samples: int, files: dict[str, str | None], *, as_json: bool) -> None:
    """Print what was made, and where it is."""
    from bica.text import harmless

    if as_json:
        print_json({"n_samples": n_samples, "n_sensors": model.n_sensors, "n_sources": model.n_sources, **files})
        return
    screen = screen_for("-" if "-" in files.values() else None)
    screen.print(f"{n_samples} rows of {model.n_sensors} sensors, {model.n_sources} sources behind them")
    for what, path in files.items():
        if path not in (None, "-"):
            screen.print(harmless(f"{what}: {path}"), soft_wrap=True)
