"""A model as a table on the terminal, straight from the plain values of its file."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bica.cli.diagnosis_lines import saved_diagnosis, show_verdict
from bica.model.files import ModelDocument, Rate
from bica.model.words import counted, folded
from bica.report.names import harmless

SENSORS_SHOWN = 24


def show_model(screen: Console, document: ModelDocument, *, full: bool = False) -> None:
    """Sources with their sensors, then the noise, how the model was found and whether it fits."""
    sources, sensors = counted(len(document.sources), "source"), counted(len(document.sensors), "sensor")
    screen.print(Text(f"{sources} behind {sensors}", style="bold"))
    if document.sources:
        screen.print(source_table(document, full=full))
    screen.print(Text(f"noise: {noise_words(document.false_alarm, document.miss)}"))
    screen.print(Text(harmless(fitted_words(document.fitted))))
    diagnosis = saved_diagnosis(document.fitted)
    if diagnosis:
        show_verdict(screen, diagnosis)


def source_table(document: ModelDocument, *, full: bool) -> Table:
    """One line a source; the error is there if the method gave one."""
    with_errors = any(source.error is not None for source in document.sources)
    table = plain_table("source")
    table.add_column("probability", justify="right", no_wrap=True)
    if with_errors:
        table.add_column("error", justify="right", no_wrap=True)
    table.add_column("sensors", overflow="fold")
    for place, source in enumerate(document.sources, 1):
        error = "" if source.error is None else f"± {number(source.error)}"
        name, sensors = source.name or f"source{place}", [document.sensors[i] for i in source.sensors]
        numbers = [number(source.probability), *([error] if with_errors else [])]
        table.add_row(Text(harmless(name)), *numbers, sensor_list(sensors, full=full))
    return table


def plain_table(first_column: str) -> Table:
    """The look of all our tables; the first column holds names."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first_column, overflow="fold", max_width=24)
    return table


def sensor_list(names: Sequence[str], *, full: bool = False) -> Text:
    """The sensors of one source, the first of them if there are many."""
    return Text(folded([harmless(name) for name in names], len(names) if full else SENSORS_SHOWN))


def number(value: float) -> str:
    """A probability with three digits that matter, however small it is.

    >>> number(0.07512), number(0.0000213), number(0.0)
    ('0.0751', '2.13e-05', '0')
    """
    return f"{value:.3g}" if value < 0.001 else f"{value:.4f}"


def noise_words(false_alarm: Rate, miss: Rate) -> str:
    """The noise in words.

    >>> noise_words((0.0, 0.1), 0.2)
    'false alarms at rates from 0 to 0.1000, misses at rate 0.2000'
    """
    if false_alarm == miss:
        silent = miss == 0 or (isinstance(miss, tuple) and not any(miss))
        return "none" if silent else f"cells flipped {_rate_words(miss)}"
    return f"false alarms {_rate_words(false_alarm)}, misses {_rate_words(miss)}"


def _rate_words(rate: Rate) -> str:
    if isinstance(rate, tuple):
        return f"at rates from {number(min(rate))} to {number(max(rate))}"
    return f"at rate {number(rate)}"


def fitted_words(fitted: Mapping[str, Any]) -> str:
    """How the model was found, as far as the file tells.

    >>> fitted_words({"method": "findbica", "n_samples": 5000, "converged": True})
    'learned by findbica from 5000 rows'
    """
    if not fitted:
        return "not learned from data"
    words = f"learned by {fitted.get('method') or 'an unnamed method'}"
    n_samples, log_likelihood = fitted.get("n_samples"), fitted.get("log_likelihood")
    if n_samples is not None:
        words += f" from {counted(n_samples, 'row')}"
    if log_likelihood is not None:  # the file writes minus infinity as text
        words += f", log-likelihood {float(log_likelihood):.7g}"
    return words if fitted.get("converged") is not False else f"{words}; it had not settled when it stopped"
