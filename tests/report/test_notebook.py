"""What a notebook shows of models, fits, estimators, explanations and bootstraps."""

import numpy as np
import pytest

from bica import BICA, OrMixture
from bica.model.fit import Fit
from bica.text import Nouns
from tests.report.test_content import HOSTILE, Tags
from tests.report.test_figures import drawn, spec

ROWS = [[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50
MODEL = OrMixture([[1, 1], [0, 1]], [0.2, 0.5], sensors=["door", "yard"], names=["a<b", None])


def shown() -> dict[str, object]:
    bica = BICA(random_state=0).fit(ROWS)
    return {
        "model": MODEL,
        "fit": Fit(MODEL, probability_error=[0.1, np.nan], nouns=Nouns(sources="links")),
        "estimator": bica,
        "bootstrap": bica.bootstrap(5),
        "explanations": MODEL.explain([1, 1]),
        "empty": OrMixture.without_sources(["a"]),
    }


@pytest.mark.parametrize("name", ["model", "fit", "estimator", "bootstrap", "explanations", "empty"])
def test_a_small_table_with_bars(name):
    value = shown()[name]
    page = value._repr_html_()
    tags = [tag for tag, _ in Tags(page).found]
    assert tags.count("table") == 1
    assert "script" not in tags
    assert len(page) < 10_000
    if name != "empty":
        assert "span" in tags  # a bar
    assert len(repr(value)) < 120


def test_names_are_text():
    assert "a&lt;b" in MODEL._repr_html_()
    assert "a&lt;b" in MODEL.explain([1, 0])._repr_html_()
    n = len(HOSTILE)
    hostile = OrMixture(np.eye(n, dtype=bool), np.full(n, 0.1), sensors=HOSTILE, names=[f"{h}x" for h in HOSTILE])
    assert {tag for tag, _ in Tags(hostile._repr_html_()).found} <= {
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "span",
    }


def test_what_is_left_out_is_counted():
    page = OrMixture(np.eye(40, dtype=bool), np.full(40, 0.1))._repr_html_()
    assert "25 more" in page
    assert page.count("<tr>") == 16


def test_an_estimator_that_is_not_fitted_is_shown_as_scikit_learn_does():
    assert "sk-" in BICA()._repr_html_()
    assert BICA()._repr_mimebundle_()["text/plain"] == "BICA()"


def test_the_words_of_the_user_are_used():
    assert "2 links behind 2 sensors" in shown()["fit"]._repr_html_()


def test_reports_of_estimators_use_the_rows_they_learned_from():
    bica = BICA().fit(ROWS)
    assert "The model fits" in bica.report().html
    assert "has not been compared" in BICA.from_model(MODEL).report().html
    assert bica.report(ROWS, rows_are="nights").html.count("nights") > 1


class TestPlots:
    def test_every_picture_is_one_call(self):
        bica = BICA().fit(ROWS)
        for model in (bica, bica.model_):
            charts = [model.plot_matrix(), model.plot_network(), model.plot_patterns(ROWS), model.plot_activity(ROWS)]
            for chart in charts:
                assert chart.to_dict()["config"]
        assert bica.plot_patterns().to_dict() == bica.plot_patterns(ROWS).to_dict()

    def test_patterns_have_both_numbers(self):
        chart = spec(MODEL.plot_patterns(ROWS))
        found = sorted(set(drawn(chart["hconcat"][1], "observed", "expected")))
        assert found == [pytest.approx(pair) for pair in ((10, 10), (40, 40), (50, 50))]
        assert "all others: 0, expected 0" in chart["hconcat"][1]["title"]["subtitle"]

    def test_activity_follows_the_times(self):
        times = np.datetime64("2026-01-01") + np.arange(100)
        found = drawn(spec(MODEL.plot_activity(ROWS, times)), "line", "bin", "start", "share")
        assert found[0][2].startswith("2026-01-01")
        assert {line for line, *_ in found} == {"a<b", "source2"}
        assert sum(share for line, *_, share in found if line == "source2") == pytest.approx(50)

    def test_many_sources_are_cut_to_those_that_change(self):
        model = OrMixture(np.eye(50, dtype=bool), np.full(50, 0.1))
        rows = np.zeros((100, 50), bool)
        rows[50:, 49] = True
        chart = spec(model.plot_activity(rows))
        assert drawn(chart, "line", "share")[0][0] == "source50"
        assert "10 steadier sources are left out" in chart["title"]["subtitle"]
