"""The report in a real browser: it is read, searched, sorted and filtered as a person would."""

import numpy as np
import pytest

from bica import Noise, OrMixture
from bica.model.fit import Fit
from tests.report.test_content import HOSTILE

pytestmark = pytest.mark.browser
SIZES = (3, 30, 200, 1000)
MOST_MILLISECONDS = 100  # until a filter has answered


def fit_of(n: int) -> tuple[Fit, np.ndarray]:
    """A model of n sources whose sensors are neighbours, and rows of it."""
    rng = np.random.default_rng(n)
    n_sensors = n + 2
    mixing = np.zeros((n_sensors, n), bool)
    for j in range(n):
        mixing[j : j + 1 + j % 3, j] = True
    model = OrMixture(mixing, rng.beta(1, 30, n) * min(1, 30 / n), Noise.flips(0.01)).in_order()
    support = rng.random(model.n_sources).round(2).tolist()
    error = np.full(model.n_sources, 0.002)
    fit = Fit(model, method="likelihood", probability_error=error, diagnostics={"bootstrap": {"support": support}})
    return fit, model.sample(1500, rng)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report of every size, made when it is first asked for."""
    folder, made = tmp_path_factory.mktemp("reports"), {}

    def of_size(n: int):
        if n not in made:
            fit, rows = fit_of(n)
            fit.report(rows, times=np.arange(1500), with_rows=n == 30).save(folder / f"{n}.html")
            made[n] = folder / f"{n}.html", fit
        return made[n]

    return of_size


def names(page) -> list[str]:
    return page.locator("#sources tbody .name bdi").all_inner_texts()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (1200, True), (360, False)], ids=["wide", "dark", "narrow"])
def test_every_size_is_drawn_on_every_screen(visit, reports, n, width, dark):
    page = visit(reports(n)[0], width=width, dark=dark).page
    headings = page.locator("h2").all_inner_texts()
    for title in ("Sources", "Matrix", "Network", "Patterns", "Fit", "Noise", "Activity", "Settings"):
        assert title in headings
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    for canvas in page.locator("#matrix canvas").all():
        assert canvas.evaluate("c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v)")


def test_a_narrow_screen_names_the_sensors_of_each_pattern(visit, reports):
    """The dots of a wide screen stand under names that a narrow one has no room for."""
    page = visit(reports(3)[0], width=390).page
    labels = page.locator("#patterns tbody td:first-child")
    shown = [text for text in labels.all_inner_texts() if text]
    assert any("every sensor is quiet" in text for text in shown)
    assert any("x0" in text or "x1" in text for text in shown)
    assert page.locator("#patterns .dots i:visible").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_story_is_told_in_order(visit, reports):
    page = visit(reports(30)[0]).page
    sections = page.evaluate("[...document.querySelectorAll('section')].map((part) => part.id)")
    assert sections == [
        "verdict",
        *["sources", "matrix", "network", "patterns", "fit", "noise", "activity", "rows", "settings"],
    ]


class TestSources:
    def test_search_finds_names_sensors_and_ids(self, visit, reports):
        path, fit = reports(200)
        page = visit(path).page
        page.fill("#search", "x17")
        reached = [
            j for j, s in enumerate(fit.document().sources) if any("x17" in fit.model.sensors[i] for i in s.sensors)
        ]
        assert sorted(names(page)) == sorted(f"source{j + 1}" for j in reached)
        page.fill("#search", fit.model.source_ids()[41])
        assert names(page) == ["source42"]
        page.fill("#search", "no such thing")
        assert names(page) == []
        assert page.inner_text("#source-count") == "0 of 200 sources"
        page.click("#clear")
        assert len(names(page)) == 20
        assert page.evaluate("document.activeElement.id") == "search"

    def test_sorting_by_size_support_and_name(self, visit, reports):
        path, fit = reports(30)
        page = visit(path).page
        sizes, support = fit.model.mixing.sum(axis=0), np.array(fit.diagnostics["bootstrap"]["support"])
        for key, value in (("size", sizes), ("support", support), ("probability", fit.model.probability)):
            page.select_option("#sort", key)
            order = np.lexsort([np.arange(30), -value])[:20]
            assert names(page) == [f"source{j + 1}" for j in order]
        page.select_option("#sort", "name")
        assert names(page)[:3] == ["source1", "source2", "source3"]  # not source10

    def test_filters_by_sensor_and_size(self, visit, reports):
        path, fit = reports(30)
        page = visit(path).page
        page.fill("#filter-sensor", "x10")
        assert sorted(names(page)) == sorted(f"source{j + 1}" for j in np.flatnonzero(fit.model.mixing[10]))
        page.fill("#filter-sensor", "")
        page.fill("#least", "3")
        assert len(names(page)) == (fit.model.mixing.sum(axis=0) >= 3).sum()

    def test_more_are_shown_when_asked_for(self, visit, reports):
        page = visit(reports(200)[0]).page
        assert len(names(page)) == 20
        page.get_by_role("button", name="Show 80 more").first.click()
        assert len(names(page)) == 100

    def test_a_source_opens_and_shows_its_neighbours(self, visit, reports):
        path, fit = reports(30)
        page = visit(path).page
        page.get_by_role("button", name="source5", exact=True).first.click()
        detail = page.locator("#sources tr.detail")
        assert fit.model.source_ids()[4] in detail.inner_text()
        detail.get_by_role("button", name="Show its neighbours").click()
        assert page.inner_text("#network-words").startswith("source5 switches on")

    def test_a_filter_answers_at_once_among_a_thousand(self, visit, reports):
        page = visit(reports(1000)[0]).page
        took = page.evaluate(
            """() => { const field = document.getElementById('search'); const took = [];
            for (const text of ['x1', 'x12', 'x123', 'source', '']) { const start = performance.now();
              field.value = text; field.dispatchEvent(new Event('input')); document.body.offsetHeight;
              took.push(performance.now() - start); } return took; }"""
        )
        assert sorted(took)[len(took) // 2] < MOST_MILLISECONDS


class TestNetwork:
    def test_a_small_model_is_drawn_whole(self, visit, reports):
        path, fit = reports(3)
        page = visit(path).page
        assert page.locator("#network .node").count() == 3 + fit.model.n_sensors
        assert page.locator("#network .edge").count() == fit.model.mixing.sum()

    @pytest.mark.parametrize("n", [200, 1000])
    def test_a_large_one_is_never_a_hairball(self, visit, reports, n):
        page = visit(reports(n)[0]).page
        assert 1 < page.locator("#network .node").count() <= 45

    def test_one_walks_from_neighbour_to_neighbour(self, visit, reports):
        path, fit = reports(200)
        page = visit(path).page
        page.fill("#network-focus", "x7")
        n_sources = fit.model.mixing[7].sum()
        assert page.inner_text("#network-words").startswith(f"x7 is switched on by {n_sources} source")
        page.locator("#network .node:not(.focus)").first.press("Enter")
        assert page.inner_text("#network-words").startswith("source")
        assert page.evaluate("document.activeElement.classList.contains('focus')")

    def test_an_unknown_name_changes_nothing_and_is_marked(self, visit, reports):
        page = visit(reports(200)[0]).page
        before = page.inner_text("#network-words")
        page.fill("#network-focus", "nobody")
        assert page.inner_text("#network-words") == before
        assert page.get_attribute("#network-focus", "aria-invalid") == "true"


class TestKeyboard:
    def test_a_slash_leads_to_the_search(self, visit, reports):
        page = visit(reports(3)[0]).page
        page.keyboard.press("/")
        page.keyboard.type("source2")
        assert names(page) == ["source2"]

    def test_the_matrix_is_read_cell_by_cell(self, visit, reports):
        page = visit(reports(3)[0]).page
        page.focus("#matrix canvas")
        told = []
        for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
            page.keyboard.press(key)
            told.append(page.inner_text("#live"))
        assert all("switches on" in text or "does not reach" in text for text in told)
        page.keyboard.press("Enter")
        assert page.inner_text("#network-words").startswith("source")

    def test_every_control_can_be_reached(self, visit, reports):
        page = visit(reports(3)[0]).page
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        assert {"theme", "search", "sort", "filter-sensor", "least", "clear", "CANVAS", "network-focus"} <= reached


def test_light_and_dark_are_switched(visit, reports):
    page = visit(reports(3)[0]).page
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.click("#theme")
    assert page.evaluate(background) != light


def test_it_prints(visit, reports):
    page = visit(reports(30)[0]).page
    assert page.pdf(format="A4")[:5] == b"%PDF-"


def test_hostile_names_are_shown_as_text(visit, tmp_path):
    n = len(HOSTILE)
    model = OrMixture(np.tri(n, dtype=bool), np.full(n, 0.1), sensors=HOSTILE, names=[f"{name}x" for name in HOSTILE])
    model.report(model.sample(300, np.random.default_rng(0)), with_rows=True).save(tmp_path / "hostile.html")
    page = visit(tmp_path / "hostile.html", width=360).page
    assert "</script><script>alert(1)</script>x" in names(page)
    assert page.locator("script").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    for j in range(n):
        page.locator("#sources .name button").nth(j).click()
        page.locator("#sources .name button").nth(j).click()


@pytest.mark.parametrize("n", [3, 200])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_is_accessible(visit, reports, n, dark):
    axe = pytest.importorskip("axe_playwright_python.base", reason='there is no axe-core: pip install "bica[test]"')
    page = visit(reports(n)[0], dark=dark).page
    page.evaluate(axe.AXE_FILE_PATH.read_text())
    found = page.evaluate("axe.run()")["violations"]
    assert [(rule["id"], rule["help"], [node["target"] for node in rule["nodes"]][:3]) for rule in found] == []
