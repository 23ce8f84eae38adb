"""A real browser for pages that the package writes; skipped with a reason where there is none."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Headless Chromium, that of the system."""
    playwright = pytest.importorskip("playwright.sync_api", reason='there is no playwright: pip install "bica[test]"')
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


class Visit:
    """One page in one window without a network, with everything that it complained about or asked for."""

    def __init__(self, browser, path: Path, *, width: int = 1200, dark: bool = False) -> None:
        scheme = "dark" if dark else "light"
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda told: self.complaints.append(told.text) if told.type != "log" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=20_000)


@pytest.fixture
def visit(browser) -> Iterator:
    """Open a page; at the end it must have complained about nothing and asked for nothing."""
    visits: list[Visit] = []

    def opened(path: Path, **settings: object) -> Visit:
        visits.append(Visit(browser, path, **settings))
        return visits[-1]

    yield opened
    for made in visits:
        made.context.close()
        assert made.complaints == []
        assert len(made.requests) == 1
