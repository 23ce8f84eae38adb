"""A model and its diagnosis as a table on the terminal, straight from the plain values of the model file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bica.errors import SettingError
from bica.model.files import HARDLY_IN_DOUBT, ModelDocument, Rate
from bica.model.identified import (
    LEAKS_NAMED,
    determined_by,
    leak_words,
    rates_of,
    reach_words,
    share_words,
    shares_of,
    source_note,
)
from bica.text import (
    BEFORE_A_FIT,
    USUAL_NOUNS,
    VERDICTS,
    Nouns,
    counted,
    harmless,
    in_words_of,
    listed,
    percent,
)

STYLES = {"misfit": "bold red", "doubtful": "bold yellow", "too few rows": "bold yellow", "fits": "bold green"}


def show_findings(screen: Console, findings: Sequence[str]) -> None:
    """Print one finding after the other, those longer than a line indented."""
    table = Table.grid(padding=(0, 1))
    for finding in findings:
        table.add_row("-", Text(harmless(finding)))
    if findings:
        screen.print(table)


def show_verdict(
    screen: Console, diagnosis: Mapping[str, Any], nouns: Nouns = USUAL_NOUNS, names: Sequence[str] = ()
) -> None:
    """Print the verdict and what speaks against the model, from the plain values of a diagnosis, in their words."""
    verdict = str(diagnosis.get("verdict"))
    no_model = diagnosis.get("fit", "unknown") is None and not diagnosis.get("mixed_by")
    sentence = in_words_of(nouns, (BEFORE_A_FIT if no_model else VERDICTS).get(verdict, verdict))
    screen.print(Text(harmless(sentence), style=STYLES.get(verdict, "bold")))
    reasons = diagnosis.get("reasons")
    findings = [str(reason) for reason in reasons] if isinstance(reasons, list) else []
    worst, steps = diagnosis.get("worst"), diagnosis.get("next")
    if isinstance(worst, str) and not any(reason.startswith(worst) for reason in findings):
        findings.append(f"most wrong: {worst}")
    findings += [f"next: {step}" for step in steps] if isinstance(steps, list) else []
    show_findings(screen, [in_words_of(nouns, finding, names) for finding in findings])


def saved_diagnosis(fitted: Mapping[str, Any]) -> Mapping[str, Any]:
    """The diagnosis in a model file; empty if there is none, or if the file holds something else there."""
    diagnostics = fitted.get("diagnostics")
    diagnosis = diagnostics.get("diagnosis") if isinstance(diagnostics, Mapping) else None
    return diagnosis if isinstance(diagnosis, Mapping) and isinstance(diagnosis.get("verdict"), str) else {}


TOP = 20  # sources: a screenful
Sort = Literal["probability", "size", "support"]
SENSORS_SHOWN = 24  # of a source
FEW, SENSORS_OF_MANY = 8, 8  # beyond so many sources, each shows fewer of its sensors
NAME_WIDTH = 24  # characters
SOURCES_SHOWN = 5  # of those that the order of the rows added or dropped


@dataclass(frozen=True, slots=True)
class Choice:
    """Which sources are shown, and in which order."""

    top: int | None = TOP  # at most so many; None: all
    sort: Sort = "probability"
    sensor: str | None = None  # those that drive this one
    min_size: int = 1  # sensors, at least
    search: str = ""  # a part of the name of the source or of one of its sensors

    def places(self, document: ModelDocument) -> list[int]:
        """The places of all sources that meet the choice, in its order; ``top`` is not applied yet."""
        if self.sensor is not None and self.sensor not in document.sensors:
            raise SettingError(f"there is no {document.nouns.sensor[0]} {self.sensor!r} in the model")
        support = saved_support(document)
        if self.sort == "support" and support is None:
            raise SettingError("the model has no support to sort by; `bica fit --bootstrap 100` finds it")
        by_sort: dict[str, list[float]] = {
            "probability": [source.probability for source in document.sources],
            "size": [len(source.sensors) for source in document.sources],
            "support": support or [],
        }
        values = by_sort[self.sort]
        if self == Choice():  # without a wish, a model file need not be in order of probability
            return [place for place, source in enumerate(document.sources) if source.sensors]
        found = [place for place, name in enumerate(document.source_names()) if self._meets(document, place, name)]
        return sorted(found, key=lambda place: (-values[place], place))

    def _meets(self, document: ModelDocument, place: int, name: str) -> bool:
        sensors = [document.sensors[i] for i in document.sources[place].sensors]
        texts = [name, *sensors]
        return (
            len(sensors) >= self.min_size
            and (self.sensor is None or self.sensor in sensors)
            and any(self.search.casefold() in text.casefold() for text in texts)
        )


def show_model(screen: Console, document: ModelDocument, *, full: bool = False, choice: Choice | None = None) -> None:
    """Print the sources with their sensors, then the noise, how the model was found and whether it fits."""
    nouns, choice = document.nouns, choice or Choice()
    places = choice.places(document)
    shown = places if full else places[: choice.top]
    table = source_table(document, shown, full=full) if shown and screen.width >= NARROW else None
    size = f"{counted(len(document.sources), 'source')} behind {counted(len(document.sensors), 'sensor')}"
    screen.print(Text(in_words_of(nouns, size), style="bold"))
    if table is not None:
        screen.print(table)
    elif shown:
        show_stacked(screen, document, shown, full=full)
    if len(shown) < len(document.sources):
        screen.print(Text(left_out_words(document, len(shown), len(places))))
    if document.has_lossy_edges:
        show_lossy_edges(screen, document, shown, full=full)
    else:
        noise = noise_words(document.false_alarm, document.miss)
        screen.print(Text(f"noise: {noise}{noise_interval(document.fitted)}"))
    screen.print(Text(harmless(in_words_of(nouns, fitted_words(document.fitted)))))
    for sentence in edge_words(document.fitted):
        screen.print(Text(harmless(in_words_of(nouns, sentence, document.sensors))))
    order = order_words(document.fitted)
    if order:
        screen.print(Text(harmless(in_words_of(nouns, order, document.sensors))))
    if any(support_words(document)):
        screen.print(Text(f"support: {in_words_of(nouns, WHAT_SUPPORT_IS[_is_resampled(document)])}"))
    diagnosis = saved_diagnosis(document.fitted)
    if diagnosis:
        show_verdict(screen, diagnosis, nouns, document.sensors)


NARROW = 60  # characters; the columns of a table need that many


def show_stacked(screen: Console, document: ModelDocument, places: Sequence[int], *, full: bool) -> None:
    """Print the sources below each other: name, numbers, sensors, for screens on which a table has no room."""
    names, intervals, support = document.source_names(), interval_words(document), support_words(document)
    identified = _reaches(document)
    for place in places:
        words = [number(document.sources[place].probability), intervals[place] and f"({intervals[place]})"]
        words += [f"support {support[place]}"] if support else []
        screen.print(Text(harmless(names[place]), style="bold"))
        drives = _driven(document, place, identified, full=full, at_most=SENSORS_SHOWN)
        for line in (Text(" ".join(filter(None, words))), Text(drives)):
            screen.print(Padding(line, (0, 0, 0, 2)))


def show_lossy_edges(screen: Console, document: ModelDocument, places: Sequence[int], *, full: bool) -> None:
    """Print what rows leave open about the sources shown, how often sensors are on by themselves, and why."""
    determined, nouns = determined_by(document), document.nouns
    names = document.source_names()
    notes = [(names[j], source_note(document, j, determined)) for j in places]
    show_findings(screen, [f"{name}: {note}" for name, note in notes if note])
    screen.print(Text(harmless(leak_words(document, len(document.sensors) if full else LEAKS_NAMED))))
    if document.miss != 0 and any(rates_of(document.miss, document.sensors)):
        screen.print(Text(f"misses {_rate_words(document.miss)}"))
    if len(document.sensors) > SENSORS_SHOWN and not full:
        return
    table = plain_table(nouns.sensor[0])
    table.add_column("on in", justify="right", no_wrap=True)
    table.add_column(f"of these {nouns.row[1]}, on by (several may coincide)", overflow="fold")
    for name, shares in zip(document.sensors, shares_of(document), strict=True):
        at_most = len(document.sources) if full else SENSORS_OF_MANY
        table.add_row(Text(harmless(name)), percent(shares.on), Text(harmless(share_words(document, shares, at_most))))
    screen.print(table)


def left_out_words(document: ModelDocument, n_shown: int, n_found: int) -> str:
    """What is not on the screen, and how to see it."""
    total, sources = len(document.sources), document.nouns.source[1]
    if n_shown == n_found:
        return f"{n_shown} of {total} {sources} chosen"
    chosen = "" if n_found == total else f", chosen from {total}"
    return f"{n_shown} of {n_found} {sources} shown{chosen}; --top {n_found} shows all, --full also every sensor"


def source_table(document: ModelDocument, places: Sequence[int], *, full: bool) -> Table:
    """One line per source; with the interval if there is an error, and the support if there was a bootstrap."""
    columns = {
        "probability": [number(source.probability) for source in document.sources],
        "95 % interval": interval_words(document),
        "support": support_words(document),
    }
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    table = plain_table(document.nouns.source[0])
    for title in shown:
        table.add_column(title, justify="right", no_wrap=True)
    heading = ", and how often each is reached" if document.has_lossy_edges else ""
    table.add_column(f"{document.nouns.sensor[1]}{heading}", overflow="fold")
    at_most = SENSORS_SHOWN if len(places) <= FEW else SENSORS_OF_MANY
    identified = _reaches(document)
    drives = [_driven(document, place, identified, full=full, at_most=at_most) for place in places]
    names, numbers = document.source_names(), list(zip(*shown.values(), strict=True))
    for place, sensors in zip(places, drives, strict=True):
        table.add_row(Text(harmless(names[place])), *numbers[place], Text(sensors))
    return table


def _reaches(document: ModelDocument) -> Sequence[Any]:
    """What is identified of each source with lossy edges; empty for sure ones."""
    return determined_by(document).is_identified if document.has_lossy_edges else ()


def _driven(document: ModelDocument, place: int, identified: Sequence[Any], *, full: bool, at_most: int) -> str:
    """The sensors of a source; with lossy edges also how often each is reached."""
    source = document.sources[place]
    reach = reach_words(source, is_identified=identified[place]) if identified else ()
    return listed([document.sensors[i] for i in source.sensors], len(source.sensors) if full else at_most, reach)


def interval_words(document: ModelDocument) -> list[str]:
    """The interval of every probability; of a pair with lossy edges, all that its rows leave open."""
    pairs = determined_by(document).pairs if document.has_lossy_edges else (None,) * len(document.sources)
    ends = [
        source.interval if pair is None else (pair.least, pair.most)
        for source, pair in zip(document.sources, pairs, strict=True)
    ]
    return ["" if pair is None else between(pair) for pair in ends]


WHAT_SUPPORT_IS = {
    True: "how often exactly this source returned when the rows were drawn again",
    False: "how probable exactly this source is, given the rows",
}


def _is_resampled(document: ModelDocument) -> bool:
    return _entry(document.fitted, "diagnostics", "bootstrap", "support") is not None


def saved_support(document: ModelDocument) -> list[float] | None:
    """The share of the resamples in which each source returned or, without a bootstrap, how probable each source is."""
    name = "bootstrap" if _is_resampled(document) else "averaging"
    support = _entry(document.fitted, "diagnostics", name, "support")
    known = isinstance(support, list) and len(support) == len(document.sources) and all(map(_is_rate, support))
    return support if known else None


def support_words(document: ModelDocument) -> list[str]:
    """The support of every source; empty if the file has none, or if no source is in doubt without a bootstrap."""
    support = saved_support(document)
    if support is None or not (_is_resampled(document) or min(support, default=1.0) < HARDLY_IN_DOUBT):
        return []
    return [f"{share:.0%}" for share in support]


def noise_interval(fitted: Mapping[str, Any]) -> str:
    """The interval of an estimated flip rate; empty if the file has none.

    >>> noise_interval({"diagnostics": {"noise": {"interval": [0.0964, 0.1032]}}})
    ' (95 % interval 0.0964 to 0.1032)'
    """
    ends = _entry(fitted, "diagnostics", "noise", "interval")
    if not isinstance(ends, list) or len(ends) != 2 or not all(_is_rate(end) for end in ends):
        return ""
    return f" (95 % interval {between(ends)})"


def _entry(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _is_rate(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def between(ends: Sequence[float]) -> str:
    """An interval in words.

    >>> between([0.0512, 0.0689])
    '0.0512 to 0.0689'
    """
    return " to ".join(map(number, ends))


def plain_table(first_column: str) -> Table:
    """An empty table in the look of all our tables; the first column holds names."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first_column, overflow="fold", max_width=NAME_WIDTH)
    return table


def number(value: float) -> str:
    """A probability with four decimals, or with three significant digits if it is small.

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


def edge_words(fitted: Mapping[str, Any]) -> list[str]:
    """What is to be said of families of sources, and what the other kind of edges would have said.

    >>> edge_words({"diagnostics": {"other_edges": {"sentence": "with lossy edges: 2 sources"}}})
    ['with lossy edges: 2 sources']
    """
    families = _entry(fitted, "diagnostics", "families")
    entries = [*(families if isinstance(families, list) else []), _entry(fitted, "diagnostics", "other_edges")]
    found = [_entry(entry, "sentence") for entry in entries]
    return [sentence for sentence in found if isinstance(sentence, str)]


def order_words(fitted: Mapping[str, Any]) -> str:
    """What the order of the rows changed, as far as the file says; empty where they were learned without it.

    >>> order_words({"diagnostics": {"in_time": {"added": [["a"]], "dropped": [["a", "b"], ["b", "c"]]}}})
    'the order of the rows added 1 source (a) and dropped 2 sources (a + b; b + c)'
    """
    found = [(word, _entry(fitted, "diagnostics", "in_time", word)) for word in ("added", "dropped")]
    if not all(isinstance(sources, list) for _, sources in found):
        return ""
    parts = [
        f"{word} {counted(len(sources), 'source')} ({_source_list(sources)})" for word, sources in found if sources
    ]
    return f"the order of the rows {' and '.join(parts) if parts else 'changed no source'}"


def _source_list(sources: Sequence[Any]) -> str:
    names = [" + ".join(map(str, source)) if isinstance(source, list) else str(source) for source in sources]
    return "; ".join([*names[:SOURCES_SHOWN], *(["..."] if len(names) > SOURCES_SHOWN else [])])


def fitted_words(fitted: Mapping[str, Any]) -> str:
    """How the model was found, as far as the file says.

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
