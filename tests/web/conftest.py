"""A store with a table and a fit in it, and a browser-like client that has the token."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason='the page needs two more packages: pip install "bica[web]"')
pytest.importorskip("httpx", reason='there is no httpx: pip install "bica[test]"')

from starlette.testclient import TestClient

from bica import Noise, OrMixture
from bica.data.writers import csv_bytes
from bica.model.fit import Fit
from bica.web.jobs import Jobs
from bica.web.server import make_app
from bica.web.store import Store

TOKEN, PORT = "right-token", 8000
ORIGIN = f"http://127.0.0.1:{PORT}"
MODEL = OrMixture(
    [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]],
    [0.3, 0.2, 0.1],
    Noise.flips(0.01),
    sensors=["door", "hall", "yard", "roof", "gate"],
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "kept")


@pytest.fixture
def table_file(tmp_path: Path) -> Path:
    path = tmp_path / "nights.csv"
    path.write_bytes(csv_bytes(MODEL.sample(1500, np.random.default_rng(5)), MODEL.sensors))
    return path


@pytest.fixture
def fit_id(store: Store) -> str:
    return store.keep_fit(Fit(MODEL), title="nights.csv").id


@pytest.fixture
def stranger(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A client without the token; no process waits ready, since few tests need one."""
    monkeypatch.setattr(Jobs, "warm", lambda self: None)
    with TestClient(make_app(store, token=TOKEN, port=PORT, largest=200_000), base_url=ORIGIN) as client:
        yield client


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    """A client that opened the printed address, and whose requests come from the page."""
    assert stranger.get(f"/?token={TOKEN}").status_code == 200
    stranger.headers["origin"] = ORIGIN
    return stranger
