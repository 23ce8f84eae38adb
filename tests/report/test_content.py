"""The report: what it tells, in whose words, and what it never tells."""

import base64
import html
import json
import re
import time
from html.parser import HTMLParser
from urllib.parse import quote

import numpy as np
import pytest

from bica import BICA, Noise, OrMixture
from bica.errors import ModelError, SettingError
from bica.metrics.matching import matrix_order
from bica.model.fit import Fit
from bica.report import report_of
from bica.report.page import Report
from bica.text import Nouns

MODEL = OrMixture([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], [0.2, 0.3, 0.1], Noise.flips(0.01), sensors=[*"abcd"])
ROWS = MODEL.sample(2000, np.random.default_rng(1))
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"quotes' & <b>bold</b>",
    "back\u202ewards\u2066",
    "a" * 100_000,
    "two\nlines\x00\x1b[31m",
    "${title} $data",
    "日本 ‮ ﷽",
    "",
    "\u2028\u2029",
]


def data_of(page: Report) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="bica-data">(.*?)</script>', page.html, re.S)[1])


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


class TestStory:
    def test_the_sections_have_their_data(self):
        data = data_of(report_of(MODEL, ROWS))
        assert [source["on"] for source in data["sources"]] == [[0, 1], [1, 2], [3]]
        assert [source["id"] for source in data["sources"]] == list(MODEL.source_ids())
        assert data["patterns"]["n_rows"] == 2000
        assert len(data["observed"]["on"]) == 4
        assert data["verdict"]["kind"] == "fits"
        assert sorted(data["order"]["sensors"]) == [0, 1, 2, 3]
        assert data["activity"] is data["rows"] is None

    def test_without_a_table_it_tells_of_the_model_alone(self):
        page = report_of(MODEL)
        data = data_of(page)
        assert data["verdict"]["kind"] == "unjudged"
        assert "has not been compared" in page.html
        assert data["patterns"] is data["pairs"] is data["observed"] is None

    def test_the_saved_verdict_is_told_where_there_is_no_table(self):
        bica = BICA().fit(ROWS)
        assert data_of(bica.fit_.report())["verdict"]["kind"] == bica.diagnostics_["diagnosis"]["verdict"]

    def test_an_unfinished_search_never_fits(self):
        fit = BICA().fit(ROWS).fit_
        assert data_of(fit.report(ROWS))["verdict"]["kind"] == "fits"
        unfinished = Fit(fit.model, method="likelihood", n_samples=2000.0, converged=False)
        page = unfinished.report(ROWS)
        assert data_of(page)["verdict"]["kind"] == "doubtful"
        assert "The model fits" not in page.html

    def test_rows_that_contradict_the_model_are_told(self):
        rows = np.array([[1, 0], [0, 1]] * 500, bool)
        page = report_of(OrMixture([[1, 0], [0, 1]], [0.5, 0.5]), rows)
        data = data_of(page)
        assert data["verdict"]["kind"] == "misfit"
        assert "contradict the model" in page.html
        assert data["verdict"]["reasons"]
        assert data["pairs"]["list"][0]["observed"] == 0
        assert data["pairs"]["list"][0]["odd"]

    def test_a_model_without_sources_and_one_without_noise_are_reported(self):
        assert data_of(report_of(OrMixture.without_sources(["a", "b"]), [[0, 0], [0, 1]]))["sources"] == []
        assert data_of(report_of(OrMixture([[1]], [1.0]), [[1]] * 20))["noise"]["miss"] == 0

    def test_errors_support_and_stay_are_told_where_known(self):
        diagnostics = {"bootstrap": {"support": [1.0, 0.5, 0.25], "n_resamples": 8}, "persistence": [3.0, None, 2.0]}
        fit = Fit(MODEL, method="likelihood", probability_error=[0.01, np.nan, 0.02], diagnostics=diagnostics)
        sources = data_of(fit.report())["sources"]
        assert [source["support"] for source in sources] == [1, 0.5, 0.25]
        assert [source["lo"] is None for source in sources] == [False, True, False]
        assert [source["stay"] for source in sources] == [3, None, 2]

    def test_missing_cells_and_weights_are_welcome(self):
        table = [[1, None, 0, 0], [0, 0, 0, 0]] * 30
        assert data_of(report_of(MODEL, table))["patterns"]["n_rows"] == 30
        assert data_of(report_of(MODEL, ROWS[:100], sample_weight=np.full(100, 2.0)))["patterns"]["n_rows"] == 200

    def test_the_same_input_gives_the_same_bytes(self):
        assert report_of(MODEL, ROWS).html == report_of(MODEL, ROWS[::-1]).html


class TestTime:
    def test_activity_needs_times_or_a_model_that_knows_the_order(self):
        times = np.datetime64("2026-01-01") + np.arange(2000)
        assert data_of(report_of(MODEL, ROWS, times=times))["activity"]["labels"][0] == "2026-01-01"
        fit = Fit(MODEL, diagnostics={"persistence": [2.0, 2.0, 2.0]})
        assert data_of(fit.report(ROWS))["activity"]["labels"][0] == "row 1"

    def test_the_shares_are_those_of_the_decoded_rows(self):
        data = data_of(report_of(MODEL, ROWS, times=np.arange(2000)))["activity"]
        shares = np.frombuffer(base64.b64decode(data["shares"]), np.uint8).reshape(3, data["n_bins"]) / 255
        mean = shares @ np.array(data["n_rows"]) / 2000
        np.testing.assert_allclose(mean, MODEL.decode(ROWS).activity.mean(axis=0), atol=1 / 500)

    @pytest.mark.parametrize("settings", [{"times": [1]}, {"with_rows": True}])
    def test_times_and_rows_need_a_table(self, settings):
        with pytest.raises(SettingError, match="table"):
            report_of(MODEL, **settings)

    def test_counted_rows_have_no_times(self):
        with pytest.raises(SettingError, match="order"):
            report_of(MODEL, ROWS, sample_weight=np.ones(2000), times=np.arange(2000))


class TestPrivacy:
    def test_rows_are_in_the_page_only_if_asked_for(self):
        rare = np.vstack([ROWS[:500] & np.array([1, 1, 0, 0], bool), np.ones((3, 4), bool)])
        counts = data_of(report_of(MODEL, rare))
        assert all(pattern["on"] != [0, 1, 2, 3] for pattern in counts["patterns"]["list"] + counts["odd_patterns"])
        assert counts["rows"] is None
        told = data_of(report_of(MODEL, rare, with_rows=True))
        assert told["rows"]["n_rows"] == 503
        assert any(pattern["on"] == [0, 1, 2, 3] for pattern in told["patterns"]["list"])

    def test_a_pair_of_a_few_rows_is_told_without_their_number(self):
        rows = np.array([[1, 0]] * 300 + [[0, 1]] * 300 + [[1, 1]] * 3, bool)
        model = OrMixture([[1, 0], [0, 1]], [0.5, 0.5])
        assert data_of(report_of(model, rows))["pairs"]["list"][0]["observed"] is None
        assert data_of(report_of(model, rows, with_rows=True))["pairs"]["list"][0]["observed"] == 3

    def test_listed_rows_have_the_sources_behind_them(self):
        rows = data_of(report_of(MODEL, ROWS, with_rows=True))["rows"]["list"]
        activity = MODEL.decode(ROWS[: len(rows)]).activity
        for row, cells, active in zip(rows, ROWS, activity, strict=False):
            assert row["on"] == np.flatnonzero(cells).tolist()
            assert row["sources"] == np.flatnonzero(active).tolist()

    @pytest.mark.parametrize("table", [True, False])
    @pytest.mark.parametrize("more", [{}, {"with_rows": True}, {"title": "a report"}])
    def test_no_name_is_in_any_byte_of_an_anonymous_report(self, table, more):
        secrets = ["Frau Müller", "HIV+ Zürich", "<Ward 7>", "naïve & co"]
        model = OrMixture(
            MODEL.mixing, MODEL.probability, MODEL.noise, sensors=secrets, names=["Dr. Geheim", None, "Q"]
        )
        learned = BICA().fit(rows_of(secrets)).name_sources({"source1": "Dr. Geheim"})
        skewed = {
            "diagnosis": {"verdict": "misfit", "reasons": [f"{secrets[0]}: on too often"]},
            **learned.diagnostics_,
        }
        skewed |= {"in_time": {"added": [[secrets[1]]], "dropped": []}, "settings": {"known": str(secrets)}}
        fit = Fit(model, method="likelihood", n_samples=2000, diagnostics=skewed, probability_error=[0.1, 0.1, 0.1])
        if more.get("with_rows") and not table:
            pytest.skip("rows need a table")
        page = fit.report(rows_of(secrets) if table else None, anonymise=True, origin="Frau Müller.json", **more).html
        for name in [*secrets, "Dr. Geheim", "Müller", "Zürich", "Geheim"]:
            for form in forms(name):
                assert form not in page.encode(), (name, form)
        for secret_id in OrMixture(MODEL.mixing, MODEL.probability, sensors=secrets).source_ids():
            assert secret_id not in page  # an id is made of names: who guesses them could check
        assert "sensor 1" in page

    def test_the_names_of_nameless_columns_are_no_words_of_the_page(self):
        assert not re.search(r"x\d", report_of(MODEL, anonymise=True).html.partition("<style>")[2])

    def test_numbers_do_not_repeat_a_real_name(self):
        model = OrMixture([[1], [1]], [0.5], sensors=["sensor 1", "sensor 2"])
        assert data_of(report_of(model, anonymise=True))["sensors"] == ["column 1", "column 2"]


def rows_of(names: list[str]):
    import pandas

    return pandas.DataFrame(ROWS.astype(int), columns=names)


def forms(name: str) -> list[bytes]:
    """The ways in which a name could be written into a page."""
    texts = {name, html.escape(name), json.dumps(name)[1:-1], name.lower(), name.upper(), quote(name), repr(name)[1:-1]}
    texts |= {json.dumps(name)[1:-1].replace("<", "\\u003c").replace("&", "\\u0026")}
    found = [text.encode(code) for text in texts for code in ("utf-8", "utf-16-le", "latin-1")]
    middle = [base64.b64encode(name.encode()[start:])[:-4] for start in range(3)]
    return found + [part for part in middle if len(part) > 6]


@pytest.fixture(scope="module")
def page() -> str:
    """A report in which every name is hostile."""
    n = len(HOSTILE)
    names = [f"{name}x" for name in HOSTILE]
    model = OrMixture(np.eye(n, dtype=bool), np.full(n, 0.1), sensors=HOSTILE, names=names)
    return model.report(model.sample(200, np.random.default_rng(0)), title=HOSTILE[0]).html


class TestHostileNames:
    def test_the_page_has_our_elements_only(self, page):
        tags = Tags(page).found
        assert [attributes.get("type") for tag, attributes in tags if tag == "script"] == ["application/json", None]
        assert not any(tag in ("b", "iframe", "img", "object", "link", "base", "form") for tag, _ in tags)
        assert not any(key.startswith("on") for _, attributes in tags for key in attributes)

    def test_the_data_are_plain_and_bounded(self, page):
        block = re.search(r'id="bica-data">(.*?)</script>', page, re.S)[1]
        assert block.isascii()
        assert not set("<>&") & set(block)
        names = json.loads(block)["sensors"]
        assert len(set(names)) == len(HOSTILE)
        assert all(name.isprintable() and 0 < len(name) <= 130 for name in names)
        assert len(page) < 150_000


class TestOneFile:
    def test_it_loads_nothing(self):
        page = report_of(MODEL, ROWS).html
        assert not re.search(r"""(src|href)=["'](?!#)""", page)
        assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(", page)
        assert set(re.findall(r"https?://[\w./]+", page)) == {"http://www.w3.org/2000/svg"}

    def test_the_policy_allows_this_script_and_style_alone(self):
        page = report_of(MODEL).html
        policy = next(attributes["content"] for _, attributes in Tags(page).found if "http-equiv" in attributes)
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert policy.count("sha256-") == 2

    def test_the_templates_are_in_the_package(self):
        from importlib.resources import files

        names = {path.name for path in files("bica.report").joinpath("templates").iterdir()}
        assert {"report.html", "report.css", "report.js"} <= names

    def test_it_is_saved_whole_and_never_over_another_file(self, tmp_path):
        page = report_of(MODEL)
        page.save(tmp_path / "r.html")
        assert (tmp_path / "r.html").read_text() == page.html
        with pytest.raises(OSError, match="exists already"):
            page.save(tmp_path / "r.html")

    def test_a_notebook_shows_it_in_a_frame(self):
        shown = report_of(MODEL)._repr_html_()
        (tag, attributes), *_ = Tags(shown).found
        assert tag == "iframe"
        assert attributes["srcdoc"].startswith("<!doctype html>")
        assert attributes["sandbox"] == "allow-scripts"


class TestWords:
    def test_the_words_are_those_of_the_user(self):
        page = report_of(MODEL, ROWS, sensors_are="symptoms", sources_are="diseases", rows_are="patients")
        assert "3 diseases behind 4 symptoms" in page.html
        assert "the patients look as it expects" in page.html
        assert data_of(page)["words"] == {
            "sensor": ["symptom", "symptoms"],
            "source": ["disease", "diseases"],
            "row": ["patient", "patients"],
        }
        assert [source["name"] for source in data_of(page)["sources"]] == ["disease1", "disease2", "disease3"]

    def test_reasons_and_settings_too(self):
        wrong = OrMixture(MODEL.mixing, MODEL.probability / 4, MODEL.noise, sensors=MODEL.sensors)
        data = data_of(report_of(wrong, ROWS, rows_are="patients"))
        assert data["verdict"]["kind"] == "misfit"
        assert "patients" in " ".join(data["verdict"]["reasons"])
        assert not any("rows" in reason for reason in data["verdict"]["reasons"])
        assert "Patients in this page" in dict(data["settings"])

    def test_the_words_of_the_model_file_are_used(self):
        fit = Fit(MODEL, nouns=Nouns(sensors="alarms"))
        assert "3 sources behind 4 alarms" in fit.report().html
        assert "3 sources behind 4 gates" in fit.report(sensors_are="gates").html

    @pytest.mark.parametrize("word", ["", "a/b/c", "mouse/", "x" * 100, "two\nlines"])
    def test_what_is_no_word_is_refused(self, word):
        with pytest.raises(ModelError, match="no word"):
            report_of(MODEL, rows_are=word)


class TestOrder:
    def test_every_source_and_sensor_has_one_place(self):
        mixing = np.random.default_rng(0).random((150, 120)) < 0.03
        sources, sensors = matrix_order(mixing)
        assert sorted(sources) == list(range(120))
        assert sorted(sensors) == list(range(150))

    @pytest.mark.parametrize("n", [40, 90])
    def test_a_hidden_band_is_found_again(self, n):
        band = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 1
        rng = np.random.default_rng(1)
        shuffled = band[rng.permutation(n)][:, rng.permutation(n)]
        sources, sensors = matrix_order(shuffled)
        ordered = shuffled[np.ix_(sensors, sources)]
        distance = np.abs(np.subtract(*np.nonzero(ordered)))
        assert distance.max() <= 2

    def test_groups_stay_together(self):
        mixing = np.kron(np.eye(3), np.ones((2, 2))).astype(bool)
        shuffled = mixing[[0, 2, 4, 1, 3, 5]]
        _, sensors = matrix_order(shuffled)
        assert {frozenset(sensors[k : k + 2]) for k in (0, 2, 4)} == {
            frozenset(pair) for pair in ((0, 3), (1, 4), (2, 5))
        }


@pytest.mark.slow
@pytest.mark.parametrize(("n", "most_bytes", "most_seconds"), [(200, 1_000_000, 5), (1000, 5_000_000, 30)])
def test_size_and_time_are_bounded(n, most_bytes, most_seconds):
    rng = np.random.default_rng(0)
    model = OrMixture(rng.random((n, n)) < min(0.5, 10 / n + 0.05), rng.beta(1, 40, n) * 0.1, Noise.flips(0.01))
    rows = model.sample(1000, rng)
    model.report(rows[:2])  # compiled
    start = time.perf_counter()
    page = model.report(rows)
    assert time.perf_counter() - start < most_seconds
    assert len(page.html.encode()) < most_bytes


class TestLossyEdges:
    FIT = Fit(
        OrMixture(
            [[1, 0], [1, 0], [1, 1], [1, 1]],
            [0.2, 0.05],
            Noise([0.004, 0.01, 0.0, 0.0]),
            [[0.87, 0], [0.41, 0], [0.95, 0.5], [1, 0.4]],
        ),
        reach_error=[[0.015, np.nan], [0.02, np.nan], [0.01, np.nan], [np.nan, np.nan]],
    )

    def test_the_page_has_reach_notes_and_leaks(self):
        rows = self.FIT.model.sample(500, np.random.default_rng(0))
        data = data_of(report_of(self.FIT, rows, rows_are="days"))
        first, pair = data["sources"]
        assert first["reach"] == [0.87, 0.41, 0.95, 1]
        assert first["reach_words"][0] == "87 % (84–90)"
        assert first["note"] == ""
        assert pair["reach_words"] == ["", ""]
        assert "of the days beyond chance" in pair["note"]
        assert data["noise"]["words"].startswith("Also on by itself: x1 in 1 % of the days")

    def test_names_are_anonymised_with_the_rest(self):
        named = Fit(self.FIT.model.with_labels(["secret1", "secret2", "secret3", "secret4"], [None, None]))
        assert "secret" not in report_of(named, anonymise=True).html

    def test_pages_of_sure_edges_know_nothing_of_it(self):
        data = data_of(report_of(OrMixture([[1], [1]], [0.5])))
        assert "reach" not in data["sources"][0]

    def test_a_notebook_shows_it(self):
        assert "x0 87 % (84–90)" in self.FIT._repr_html_()
