"""The page of ``bica serve`` in a real browser: a table is dropped, learned, stopped, named, explained, compared."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from bica import Noise, OrMixture
from bica.data.writers import csv_bytes
from bica.model.fit import Fit
from bica.report.content import parts_of
from bica.web.store import Store
from tests.browser.test_report import fit_of, names
from tests.report.test_content import HOSTILE

pytest.importorskip("uvicorn", reason='the page needs two more packages: pip install "bica[web]"')
pytestmark = pytest.mark.browser
LEARNING = "^(Sources|Blocks|Growing|Joining|Sweeps)"  # what the page says while it learns
PATIENCE = 120_000  # milliseconds; a busy machine compiles for a while
MODEL = OrMixture(
    [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]],
    [0.3, 0.2, 0.1],
    Noise.flips(0.01),
    sensors=["door", "hall", "yard", "roof", "gate"],
)


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[str, str, Store]]:
    """The page as a program of its own: its origin, its token, and what it keeps."""
    folder = tmp_path_factory.mktemp("served")
    command = [sys.executable, "-m", "bica", "serve", "--json", "--folder", str(folder / "kept"), "--largest", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = json.loads("".join(process.stdout.readline() for _ in range(4)))
    origin, _, token = told["address"].partition("/?token=")
    yield origin, token, Store(folder / "kept")
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors


@pytest.fixture
def window(browser, served) -> Iterator:
    """A way to open a page; at the end none has complained, and none has asked anybody but the server."""
    origin, token, _ = served
    contexts, complaints, strangers = [], [], []

    def opened(path: str = "/", *, width: int = 1200, dark: bool = False, context=None, token: str = token):
        scheme = "dark" if dark else "light"
        own = context or browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(own)
        page = own.new_page()
        page.on("console", lambda told: complaints.append(told.text) if told.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on(
            "request", lambda asked: None if asked.url.startswith((origin, "data:")) else strangers.append(asked.url)
        )
        page.goto(f"{origin}{path}?token={token}")
        page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
        return page

    opened.complaints = complaints
    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert strangers == []


@pytest.fixture(scope="module")
def table_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "nights.csv"
    path.write_bytes(csv_bytes(MODEL.sample(1500, np.random.default_rng(5)), MODEL.sensors))
    return path


@pytest.fixture(scope="module")
def slow_file(tmp_path_factory):
    """A table that takes half a minute of an idle core: sixty sensors and sources, some of them wide, much noise."""
    rng = np.random.default_rng(1)
    mixing = np.zeros((60, 60), bool)
    for j in range(60):
        mixing[rng.choice(60, 2 + j % 8, replace=False), j] = True
    model = OrMixture(mixing, np.full(60, 0.15), Noise.flips(0.1))
    path = tmp_path_factory.mktemp("tables") / "slow.csv"
    path.write_bytes(csv_bytes(model.sample(10_000, rng), model.sensors))
    return path


def kept_fit(served, n: int) -> str:
    """A fit of n sources, kept with its report; made once."""
    store = served[2]
    for entry in store.fits():
        if entry.title == f"{n} sources":
            return entry.id
    fit, rows = fit_of(n)
    entry = store.keep_fit(fit, title=f"{n} sources")
    store.write_report(entry.id, parts_of(fit, rows, times=np.arange(1500), with_rows=True))
    return entry.id


def reads(place, pattern: str) -> None:
    """Wait until a place of the page shows some text."""
    from playwright.sync_api import expect

    expect(place).to_have_text(re.compile(pattern), timeout=PATIENCE)


def learned(page) -> None:
    page.wait_for_url("**/fit/*", timeout=PATIENCE)
    page.wait_for_selector("html[data-ready]", timeout=PATIENCE)


def test_from_a_dropped_file_to_named_explained_and_compared_fits(window, table_file):
    page = window()
    page.set_input_files("#file", table_file)
    page.wait_for_selector("#learn-now", timeout=PATIENCE)
    assert page.inner_text("#headline") == "nights.csv"
    assert "1,500 rows of 5 sensors" in page.inner_text(".lead.intro")
    assert page.locator(".columns tbody tr").count() == 5
    page.click("#learn summary")
    page.fill("#sources-are", "visitors")
    page.click("#learn-now")
    learned(page)
    assert page.inner_text("#headline") == "3 visitors behind 5 sensors"
    assert "token" not in page.url

    page.locator("#sources .name button").nth(1).click()
    page.get_by_label("Name of visitor2").fill("cat")
    page.get_by_role("button", name="Save the name").click()
    page.wait_for_selector("#sources .name bdi:text-is('cat')")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert names(page) == ["visitor1", "cat", "visitor3"]

    page.wait_for_selector("#answer .share")
    for sensor in ("roof", "gate"):
        page.get_by_role("button", name=f"{sensor}: off").click()
    reads(page.locator("#answer .share").first, "^visitor3")
    page.locator("#rows tbody .link").first.click()
    assert page.evaluate("document.activeElement.className") == "toggles"

    page.locator("#sources .name button").nth(0).click()
    page.get_by_role("button", name="Keep as known").click()
    page.locator("#sources .name button").nth(1).click()
    page.get_by_label("Forbid an edge of cat").select_option(label="yard")
    assert page.locator("#wishes li").all_inner_texts() == [
        "Visitor1 is known\nTake back",
        "Cat does not reach yard\nTake back",
    ]
    first = page.url
    page.click("#learn-again")
    page.wait_for_url(lambda url: "/fit/" in url and url != first, timeout=PATIENCE)
    page.wait_for_selector("html[data-ready]")
    assert "cat" in names(page)
    sensors_of_cat = page.locator("#sources tr", has_text="cat").locator(".chip").all_inner_texts()
    assert sensors_of_cat == ["hall"]

    page.wait_for_selector("#compare-with option:nth-child(2)", state="attached")
    page.select_option("#compare-with", index=1)
    page.wait_for_selector("#comparison table")
    assert "here have exactly the same sensors in the other fit" in page.inner_text("#comparison")
    assert page.locator("#comparison tbody tr").count() >= 3

    with page.expect_download() as model:
        page.click("#get-model")
    assert json.loads(model.value.path().read_text())["schema"] == "bica-model"
    with page.expect_download(timeout=PATIENCE) as report:
        page.click("#get-report")
    assert "<style>" in report.value.path().read_text()
    with page.expect_download(timeout=PATIENCE) as activity:
        page.click("#activity-job")
    assert len(activity.value.path().read_text().splitlines()) == 1501


def test_stop_keeps_the_best_so_far(window, served, slow_file):
    page = window()
    page.fill("#path", str(slow_file))
    page.click("#open")
    page.wait_for_selector("#learn-now", timeout=PATIENCE)
    page.click("#learn-now")
    reads(page.locator("#job-what"), LEARNING)
    page.click("#stop")
    learned(page)
    entry = served[2].fit_entry(page.url.rpartition("/")[2])
    assert entry.interrupted
    assert "had not settled when it stopped" in page.inner_text("#verdict")
    assert "stopped early" in window("/", context=page.context).inner_text("#fits")


def test_a_job_goes_on_when_the_tab_is_closed(window, served, slow_file):
    page = window()
    page.fill("#path", str(slow_file))
    page.click("#open")
    page.wait_for_selector("#learn-now", timeout=PATIENCE)
    page.click("#learn-now")
    page.wait_for_selector("#job:not([hidden])", timeout=PATIENCE)
    context = page.context
    page.close()
    again = window("/", context=context)
    again.wait_for_selector("#job:not([hidden])", timeout=PATIENCE)
    assert again.inner_text("#job h2") == "Learning the sources"
    reads(again.locator("#job-what"), LEARNING)
    again.click("#stop")
    learned(again)


def test_columns_are_left_out_and_thresholds_set(window, tmp_path):
    rng = np.random.default_rng(2)
    lines = [f"P{i},{rng.integers(2)},{rng.integers(-90, -40)},{rng.integers(2)}" for i in range(300)]
    (tmp_path / "mixed.csv").write_text("\n".join(["patient,a,dBm,b", *lines]) + "\n")
    page = window()
    page.set_input_files("#file", tmp_path / "mixed.csv")
    page.wait_for_selector(".trouble:not([hidden])", timeout=PATIENCE)
    assert "dBm" in page.inner_text(".trouble")
    assert page.get_by_label("What patient is").input_value() == "id"
    page.get_by_label("Threshold of dBm").fill("-65")
    page.get_by_label("What b is").select_option("drop")
    page.click("#read-again")
    page.wait_for_selector("#learn-now", timeout=PATIENCE)
    assert "300 rows of 2 sensors" in page.inner_text(".lead.intro")
    assert page.get_by_label("What b is").input_value() == "drop"


@pytest.mark.parametrize(
    ("name", "content"), [("x.csv", b"\x00\xff\x00\xfe"), ("x.exe", b"MZ"), ("x.npz", b"PK\x03\x04")]
)
def test_files_that_are_no_tables_are_one_sentence(window, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    page = window()
    page.set_input_files("#file", tmp_path / name)
    page.wait_for_selector(".trouble:not([hidden])", timeout=PATIENCE)
    assert page.inner_text(".trouble").count("\n") == 0
    assert "Traceback" not in page.content()


def test_files_beyond_the_limit_are_refused_with_a_sentence(window, tmp_path):
    (tmp_path / "big.csv").write_bytes(b"a\n" + b"1\n" * 600_000)
    page = window()
    page.set_input_files("#file", tmp_path / "big.csv")
    page.wait_for_selector(".trouble:not([hidden])")
    assert "files of up to 1 MB can be dropped here; give its path instead" in page.inner_text(".trouble")


def test_a_fit_is_forgotten_after_two_clicks(window, served):
    entry = served[2].keep_fit(Fit(MODEL), title="to forget")
    page = window()
    page.get_by_role("button", name="Forget to forget").click()
    assert (served[2].folder / "fits" / entry.id).exists()
    page.get_by_role("button", name="Really forget to forget?").click()
    page.get_by_role("link", name="to forget", exact=True).wait_for(state="detached")
    assert not (served[2].folder / "fits" / entry.id).exists()


def test_without_the_token_there_is_nothing(browser, served):
    page = browser.new_context().new_page()
    assert page.goto(served[0]).status == 403
    assert "token" in page.content()
    assert page.locator("script").count() == 0


def test_what_is_gone_is_said(window):
    page = window("/table/0123456789ab")
    assert "not here any more" in page.inner_text("#top")
    window.complaints.clear()  # the browser itself reports the refusal


@pytest.mark.parametrize("n", [3, 30, 200, 1000])
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (1200, True), (360, False)], ids=["wide", "dark", "narrow"])
def test_every_size_is_drawn_on_every_screen(window, served, n, width, dark):
    page = window(f"/fit/{kept_fit(served, n)}", width=width, dark=dark)
    page.wait_for_selector("#answer .share", timeout=PATIENCE)
    headings = page.locator("h2").all_inner_texts()
    for title in ("Sources", "Learn again", "Matrix", "Network", "Explain", "Patterns", "Noise", "Rows", "Compare"):
        assert title in headings
    page.locator("#sources .name button").first.click()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert 0 < page.locator(".toggle").count() <= 120


def test_hostile_names_are_shown_as_text(window, served):
    n = len(HOSTILE)
    model = OrMixture(np.tri(n, dtype=bool), np.full(n, 0.1), sensors=HOSTILE, names=[f"{name}x" for name in HOSTILE])
    entry = served[2].keep_fit(Fit(model), title="</title><script>alert(1)</script>")
    page = window(f"/fit/{entry.id}", width=360)
    assert "</script><script>alert(1)</script>x" in names(page)
    for j in range(n):
        page.locator("#sources .name button").nth(j).click()
        page.locator("#sources .name button").nth(j).click()
    page.locator("#sources .name button").nth(0).click()
    page.locator("#sources .edit input").first.fill("<img src=x onerror=alert(1)>")
    page.get_by_role("button", name="Save the name").click()
    page.wait_for_selector("#sources .name bdi:has-text('onerror')")
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert "<script>alert(1)</script>" in window("/").inner_text("#fits")


class TestKeyboard:
    def test_a_table_is_learned_without_a_mouse(self, window, table_file):
        page = window()
        page.focus("#path")
        page.keyboard.type(str(table_file))
        page.keyboard.press("Enter")
        page.wait_for_selector("#learn-now", timeout=PATIENCE)
        page.focus("#learn-now")
        page.keyboard.press("Enter")
        learned(page)
        page.focus(".toggle")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.dataset.cell") == "1"
        page.keyboard.press(" ")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "door: not observed"

    def test_every_control_of_the_start_page_is_reached(self, window):
        page, reached = window(), set()
        for _ in range(25):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        assert {"theme", "file", "path", "open"} <= reached


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("what", ["start", "table", "3", "200"])
def test_it_is_accessible(window, served, table_file, what, dark):
    axe = pytest.importorskip("axe_playwright_python.base", reason='there is no axe-core: pip install "bica[test]"')
    if what == "table":
        page = window("/", dark=dark)
        page.fill("#path", str(table_file))
        page.click("#open")
        page.wait_for_selector("#learn-now", timeout=PATIENCE)
        page.click("#learn summary")
    else:
        page = window("/" if what == "start" else f"/fit/{kept_fit(served, int(what))}", dark=dark)
    if what.isdigit():
        page.wait_for_selector("#answer .share", timeout=PATIENCE)
        page.locator("#sources .name button").first.click()
        page.get_by_role("button", name="Keep as known").click()
        page.locator(".toggle").first.click()
    page.evaluate(axe.AXE_FILE_PATH.read_text())
    found = page.evaluate("axe.run()")["violations"]
    assert [(rule["id"], rule["help"], [node["target"] for node in rule["nodes"]][:3]) for rule in found] == []


def test_a_file_that_is_dragged_and_dropped_is_read_like_a_chosen_one(window, table_file):
    page = window()
    dropped = page.evaluate_handle(
        """text => { const t = new DataTransfer(); t.items.add(new File([text], "dropped.csv")); return t; }""",
        table_file.read_text(),
    )
    page.dispatch_event(".drop", "dragover", {"dataTransfer": dropped})
    assert page.locator(".drop.over").count() == 1
    page.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
    page.wait_for_selector("#learn-now", timeout=PATIENCE)
    assert page.inner_text("#headline") == "dropped.csv"
    assert "1,500 rows of 5 sensors" in page.inner_text(".lead.intro")
