"""A model as a table on the terminal."""

from collections.abc import Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bica.model.fit import Fit
from bica.model.noise import Noise, Rate
from bica.model.or_mixture import OrMixture
from bica.report.names import harmless

SENSORS_SHOWN = 24


def show_fit(screen: Console, fit: Fit, *, full: bool = False) -> None:
    """Sources with their sensors, then the noise and how the model was found."""
    screen.print(headline(fit.model), style="bold")
    if fit.model.n_sources:
        screen.print(source_table(fit, full=full))
    screen.print(Text(f"noise: {noise_words(fit.model.noise)}"))
    screen.print(Text(harmless(fitted_words(fit))))


def headline(model: OrMixture) -> Text:
    """How many sources and sensors there are."""
    sources, sensors = counted(model.n_sources, "source"), counted(model.n_sensors, "sensor")
    return Text(f"{sources} behind {sensors}")


def source_table(fit: Fit, *, full: bool) -> Table:
    """One line a source; the error is there if the method gave one."""
    table = plain_table("source")
    errors = fit.probability_error
    table.add_column("probability", justify="right", no_wrap=True)
    if errors is not None:
        table.add_column("error", justify="right", no_wrap=True)
    table.add_column("sensors", overflow="fold")
    for j, name in enumerate(fit.model.source_names()):
        numbers = [number(fit.model.probability[j])] + ([] if errors is None else [f"± {number(errors[j])}"])
        table.add_row(Text(harmless(name)), *numbers, sensor_list(fit.model, j, full=full))
    return table


def plain_table(first_column: str) -> Table:
    """The look of all our tables; the first column holds names."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first_column, overflow="fold", max_width=24)
    return table


def sensor_list(model: OrMixture, source: int, *, full: bool = False) -> Text:
    """The sensors of one source, the first of them if there are many."""
    names = [model.sensors[i] for i in np.flatnonzero(model.mixing[:, source])]
    return Text(folded([harmless(name) for name in names], len(names) if full else SENSORS_SHOWN))


def folded(names: Sequence[str], at_most: int) -> str:
    """The names in a row, ending in how many were left out.

    >>> folded(["a", "b", "c", "d"], 2)
    'a, b, and 2 more'
    """
    if len(names) <= at_most + 1:  # leaving out a single name saves nothing
        return ", ".join(names)
    return ", ".join([*names[:at_most], f"and {len(names) - at_most} more"])


def number(value: float) -> str:
    """A probability with three digits that matter, however small it is.

    >>> number(0.07512), number(0.0000213), number(0.0)
    ('0.0751', '2.13e-05', '0')
    """
    return f"{value:.3g}" if value < 0.001 else f"{value:.4f}"


def counted(n: float, thing: str) -> str:
    """A number with its noun.

    >>> counted(1, "source"), counted(12000, "row")
    ('1 source', '12000 rows')
    """
    return f"{n:.15g} {thing}" if n == 1 else f"{n:.15g} {thing}s"


def noise_words(noise: Noise) -> str:
    """The noise in words.

    >>> noise_words(Noise([0.0, 0.1], 0.2))
    'false alarms at rates from 0 to 0.1000, misses at rate 0.2000'
    """
    if noise.is_absent:
        return "none"
    if noise.false_alarm == noise.miss:
        return f"cells flipped {_rate_words(noise.miss)}"
    return f"false alarms {_rate_words(noise.false_alarm)}, misses {_rate_words(noise.miss)}"


def _rate_words(rate: Rate) -> str:
    if isinstance(rate, tuple):
        return f"at rates from {number(min(rate))} to {number(max(rate))}"
    return f"at rate {number(rate)}"


def fitted_words(fit: Fit) -> str:
    """How the model was found, as far as it tells."""
    if fit.n_samples is None and fit.log_likelihood is None:
        return "not learned from data" if fit.method == "given" else f"learned by {fit.method}"
    words = f"learned by {fit.method}"
    if fit.n_samples is not None:
        words += f" from {counted(fit.n_samples, 'row')}"
    if fit.log_likelihood is not None:
        words += f", log-likelihood {fit.log_likelihood:.6g}"
    return words if fit.converged else f"{words}; it had not settled when it stopped"
