"""A diagnosis on the terminal: the verdict, then a line a finding."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bica.model.verdicts import verdict_words
from bica.report.names import harmless

STYLES = {"misfit": "bold red", "doubtful": "bold yellow", "fits": "bold green"}


def show_findings(screen: Console, findings: Sequence[str]) -> None:
    """One finding after the other, those longer than a line indented."""
    table = Table.grid(padding=(0, 1))
    for finding in findings:
        table.add_row("-", Text(harmless(finding)))
    if findings:
        screen.print(table)


def show_verdict(screen: Console, diagnosis: Mapping[str, Any]) -> None:
    """The verdict and what speaks against the model, from the plain values of a diagnosis."""
    verdict = str(diagnosis.get("verdict"))
    screen.print(Text(harmless(verdict_words(verdict)), style=STYLES.get(verdict, "bold")))
    reasons = diagnosis.get("reasons")
    show_findings(screen, [str(reason) for reason in reasons] if isinstance(reasons, list) else [])


def saved_diagnosis(fitted: Mapping[str, Any]) -> Mapping[str, Any]:
    """The diagnosis that a model file carries; empty if there is none. Files may hold anything."""
    diagnostics = fitted.get("diagnostics")
    diagnosis = diagnostics.get("diagnosis") if isinstance(diagnostics, Mapping) else None
    return diagnosis if isinstance(diagnosis, Mapping) and isinstance(diagnosis.get("verdict"), str) else {}
