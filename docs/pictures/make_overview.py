"""Draw the picture at the top of the README from the bundled example.

Run it as: python docs/pictures/make_overview.py
"""

from pathlib import Path

import numpy as np

from bica import Likelihood, PatternCounts
from bica.data.writers import read_rows
from bica.report.figures import overview_chart
from bica.report.pictures import save_picture
from bica.simulate import example

ROWS_DRAWN = 28


def main() -> None:
    """Learn the sources behind the example and draw them beside its first rows."""
    given = example("abilene")
    found = Likelihood().fit(PatternCounts.of(given.table_path), np.random.default_rng(0))
    rows = read_rows(str(given.table_path), found.model.sensors)
    chart = overview_chart(rows[:ROWS_DRAWN], found.model, len(rows))
    for ending in (".png", ".svg"):
        save_picture(chart, Path(__file__).with_name(f"overview{ending}"), overwrite=True)


if __name__ == "__main__":
    main()
