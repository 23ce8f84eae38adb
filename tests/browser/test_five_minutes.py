"""From a CSV file with an index column to a report that a colleague can read, typed as a newcomer would."""

import subprocess
import sys
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from bica import Noise, OrMixture

pytestmark = pytest.mark.browser
FIVE_MINUTES = 300.0  # seconds, on the clock: a newcomer looks at nothing else
MODEL = OrMixture(
    [[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]],
    [0.12, 0.25, 0.08],
    Noise.flips(0.01),
    sensors=["cough", "fever", "sneeze", "sore throat", "rash", "itch"],
)
WORDS = ("--sensors-are", "symptoms", "--sources-are", "diseases", "--rows-are", "patients")
TYPED = (
    ("fit", "patients.csv", "-o", "model.json", *WORDS),
    ("show", "model.json"),
    ("name", "model.json", "source1=a cold", "source2=flu"),
    ("report", "model.json", "patients.csv", "-o", "report.html"),
)


def write_table(folder: Path) -> None:
    """A table as pandas writes it, with its index, which nobody asked for."""
    pandas = pytest.importorskip("pandas")
    rows = MODEL.sample(3000, np.random.default_rng(5)).astype(int)
    pandas.DataFrame(rows, columns=list(MODEL.sensors)).to_csv(folder / "patients.csv")


def typed(folder: Path, *words: str, **settings: object) -> str:
    """What a command prints; it must succeed."""
    command = [sys.executable, "-m", "bica", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_newcomer_has_a_report_to_send_within_five_minutes(tmp_path, visit):
    begin = monotonic()
    write_table(tmp_path)
    fitted, shown, named, reported = (typed(tmp_path, *words) for words in TYPED)
    assert "the row index that pandas writes" in fitted
    for screen in (fitted, shown):
        assert "3 diseases behind 6 symptoms" in screen
        assert "fits: the patients look as the model expects" in screen
    assert "a cold" in named
    assert "report: report.html; open it in any browser" in reported
    page = visit(tmp_path / "report.html").page
    assert page.locator("h1").inner_text() == "3 diseases behind 6 symptoms"
    assert "The model fits: the patients look as it expects." in page.locator("main").inner_text()
    lines = page.locator("#sources tbody tr").all_inner_texts()
    assert [line.split("\n")[0].split("\t")[0].strip("▸ ") for line in lines[:2]] == ["a cold", "flu"]
    known = (["cough", "sneeze", "sore throat"], ["cough", "fever"], ["rash", "itch"])
    for words, symptoms in zip(lines, known, strict=True):
        assert all(symptom in words for symptom in symptoms)
    page.fill("#search", "flu")
    assert page.locator("#source-count").inner_text() == "1 of 3 diseases"
    assert monotonic() - begin < FIVE_MINUTES
