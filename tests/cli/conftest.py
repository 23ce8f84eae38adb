"""What the tests of the command line share: a way to type a command, and a model to type it on."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bica.cli.app import app
from bica.model.files import probability_interval

Run = Callable[..., Result]

MODEL = {
    "schema": "bica-model",
    "version": 1,
    "sensors": ["hall", "door", "yard"],
    "sources": [
        {
            "sensors": ["hall", "door"],
            "probability": 0.25,
            "error": 0.011,
            "interval": list(probability_interval(0.25, 0.011)),
        },
        {
            "sensors": ["yard"],
            "probability": 0.00002,
            "error": 0.00001,
            "interval": list(probability_interval(0.00002, 0.00001)),
            "name": "cat",
        },
    ],
    "noise": {"false_alarm": 0.0, "miss": 0.0},
    "fitted": {"by": "bica 0", "method": "findbica", "n_samples": 5000, "log_likelihood": -1234.5, "converged": True},
}


@pytest.fixture
def run() -> Run:
    """Type a command, inside this process."""

    def typed(*words: str | Path, **more: object) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words], prog_name="bica", **more)

    return typed


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    """A small model as `bica fit` would write it."""
    return write_model(tmp_path / "model.json")


def write_model(path: Path, **changes: object) -> Path:
    path.write_text(json.dumps(MODEL | changes))
    return path


def shell(*words: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    """Type a command in a process of its own."""
    environment = os.environ | {"COLUMNS": "80"} | dict(more.pop("env", {}))
    command = [sys.executable, "-m", "bica", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, **more)
