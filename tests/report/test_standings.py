from html.parser import HTMLParser

from bica.compare.summary import Standing, mean_of
from bica.report.standings import standings_chart, standings_markdown, standings_page, winners


def standing(contender, values, problem="a | <table>", failure=None):
    runs = {"f1": dict(enumerate(values))}
    means = {"f1": mean_of(values)} if values else {}
    return Standing(problem, contender, None, means, runs, {"fits": len(values)}, failure, int(failure is not None))


def test_who_is_level_with_the_best_is_decided_by_paired_differences():
    noise = [0.01, -0.02, 0.03, 0.0, -0.01, 0.02]
    best = standing("best", [0.9 + 5 * n for n in noise])
    level = standing("level", [0.89 + 5 * n + m for n, m in zip(noise, reversed(noise), strict=True)])
    worse = standing("worse", [0.8 + 5 * n for n in noise])  # by the same 0.1 on every seed
    assert winners([worse, level, best], "f1") == {"best", "level"}


def test_few_runs_share_the_first_place_only_when_equal():
    assert winners([standing("a", [1.0, 0.5]), standing("b", [0.9, 0.5]), standing("c", [0.5, 1.0])], "f1") == {
        "a",
        "c",
    }


def test_markdown_keeps_hostile_names_inside_their_cells():
    text = standings_markdown([standing("a", [0.5]), standing("b", [], failure="no | way\x1b[31m")])
    assert "## a \\| <table>" in text
    assert "| b | - | refused 1: no \\| way\\x1b[31m |" in text


def test_the_page_has_one_row_per_method_and_names_are_text():
    page = standings_page([standing("a", [0.5]), standing("b", [0.25])])
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append(tag)
    parser.feed(page)
    assert tags.count("table") == 1
    assert tags.count("tr") == 3
    assert "a | &lt;table&gt;" in page
    assert "script" not in tags


def test_the_chart_shows_means_and_intervals_from_five_runs_on():
    few, many = ([standing("a", [0.5] * n + [0.6]), standing("b", [0.2] * n + [0.3])] for n in (2, 5))
    assert len(layers(standings_chart(few))) == 1
    rules, dots = layers(standings_chart(many))
    shown = standings_chart(many).to_dict()["datasets"][dots["data"]["name"]]
    assert [(value["method"], round(value["mean"], 3)) for value in shown] == [("a", 0.517), ("b", 0.217)]
    assert rules["mark"]["type"] == "rule"


def layers(chart):
    return chart.to_dict()["vconcat"][0]["hconcat"][0]["layer"]
