"""Settings for all tests."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("bica", deadline=None, derandomize=True)  # the same examples on every machine
settings.load_profile("bica")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of tables that are not bundled: ``BICA_DATA`` or ``../shared/data``."""
    folder = Path(os.environ.get("BICA_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent; set BICA_DATA to the folder of example tables")
    return folder
