"""The great comparison: every method on planted and on real tables, under one contract.

    python benchmarks/bench_great.py FOLDER [--runs 5] [--jobs 1] [--time-limit 60] [--only PART]

Every run is one line of FOLDER/results.jsonl; a second call does only what is missing. Real tables are found through
``BICA_DATA``. At the end, and with ``--summary`` alone, it prints the tables of all that is there and writes them as
FOLDER/great.html, with every record in FOLDER/great.parquet and the planted problems as a picture in FOLDER/great.png.
"""

import argparse
import csv
import os
from pathlib import Path

import numpy as np
import scipy.sparse

from bica import OrMixture
from bica.compare import OwnTable, Setting, SimulatedRows, matches, run_plan, standings, write_table
from bica.compare.run import read_records
from bica.compare.summary import paired_difference
from bica.data.writers import csv_bytes
from bica.output import write_whole
from bica.report.pictures import save_picture
from bica.report.standings import ENOUGH_RUNS, by_problem, standings_markdown, standings_page

METHODS = (
    "likelihood", "likelihood sure", "findbica", "mac", "grecond", "grecond-essential", "grecond-plus",
    "message-passing tuned", "ormachine tuned", "asso", "elbmf", "attractor", "buffet", "noca", "beta", "aspect",
    "quartets tuned", "xor", "linear", "fastica",
)  # fmt: skip
MOST_OF_LINEAR = 8  # sources; each doubles the work of linear sums
N_TOLD = 10  # factors, on real tables without a truth
# (table, truth, rows and columns as they are stored); truths give columns only
REAL = {
    **{name: (f"topology_paths/{name}_X.csv", f"topology_paths/{name}_G.csv")
       for name in ("abilene", "geant2009", "btnorthamerica")},
    "bell_labs_traffic": ("bell_labs_traffic/X.csv", "bell_labs_traffic/G.csv"),
    "lora_gateways": ("lora_gateways/X.csv", "lora_gateways/G.csv"),
    "acute_inflammations": ("acute_inflammations/X.csv", None),
    "fraction_subtraction": ("fraction_subtraction/X.csv", "fraction_subtraction/G.csv"),
    "healthcare": ("hp_roles/healthcare_X.csv", "hp_roles/healthcare_G_reference.csv"),
    "domino": ("hp_roles/domino_X.csv", "hp_roles/domino_G_reference.csv"),
    "zoo": ("zoo/X.csv", None),
    "diseases": ("disease_symptom_kb/X_sim_exact.npz", "disease_symptom_kb/G.csv"),
    "diseases, noisy-OR": ("disease_symptom_kb/X_sim_noisy_or.npz", "disease_symptom_kb/G.csv"),
    "telecom_alarms": ("telecom_alarms/X.npz", None),
    "groceries": ("groceries/X.npz", None),
}  # fmt: skip


def planted():
    """The simulated problems: networks of the paper, larger ones, bars, lossy edges, and XOR, where OR is wrong."""
    four = ("topology one", "topology two", "topology three", "topology four")
    networks = [(name, rows, flips) for name in four for rows in (200, 1000) for flips in (0.0, 0.1)]
    networks += [(f"random {m} x {m}", 2000, 0.02) for m in (20, 50, 200)]
    networks += [
        ("bars 4", 500, 0.02),
        ("lossy 10 x 6", 2000, 0.005),
        ("lossy 20 x 11", 5000, 0.005),
        ("xor 8", 2000, 0.0),
    ]
    return [SimulatedRows(setting=Setting(network=n, n_samples=t, flip_rate=e)) for n, t, e in networks]


def real(folder, beginnings):
    """The real tables, with the names of their files and truths as models beside the results."""
    data = Path(os.environ.get("BICA_DATA", "../shared/data"))
    return [
        own_table(name, data / table, truth and data / truth, folder)
        for name, (table, truth) in REAL.items()
        if name.startswith(beginnings)
    ]


def own_table(name, table, truth, folder):
    sensors, rows = read_table(table)
    path, model = folder / f"{name}.csv", None
    if not path.exists():
        path.write_bytes(csv_bytes(rows, sensors))
    if truth:
        model = folder / f"{name}.truth.json"
        model.unlink(missing_ok=True)
        true_model(truth, sensors, rows).save(model)
    return OwnTable(path=str(path), truth=model and str(model), n_sources=None if truth else N_TOLD)


def read_table(path):
    if path.suffix == ".npz":
        lines = Path(str(path).replace(".npz", "_columns.csv")).read_text().split()
        rows = scipy.sparse.load_npz(path).toarray()
        return lines[-rows.shape[1] :], rows.astype(bool)
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    return header, np.array(lines, dtype=int).astype(bool)


def true_model(path, sensors, rows):
    """The columns of the truth; probabilities are those of a row whose sensors are all on, a mere placeholder."""
    with path.open(newline="") as file:
        _, *lines = csv.reader(file)
    links = {line[0]: [int(cell) for cell in line[1:]] for line in lines}
    mixing = np.array([links[name] for name in sensors], dtype=bool)
    probability = [np.clip(rows[:, column].all(axis=1).mean(), 0.001, 0.999) for column in mixing.T]
    return OrMixture(mixing, probability, sensors=sensors)


def plan(folder, runs, time_limit, only, beginnings):
    beginnings = tuple(beginnings or ("",))
    problems = [] if only == "real" else [problem for problem in planted() if problem.title.startswith(beginnings)]
    problems += [] if only == "planted" else real(folder, beginnings)
    jobs = matches([m for m in METHODS if m != "linear"], problems, range(runs), time_limit)
    few = [p for p in problems if (p.draw(0).n_sources or 99) <= MOST_OF_LINEAR]
    return jobs + matches(["linear"], few, range(runs), time_limit)


def in_order(records):
    """By problem and method as above, whatever was run first; other records come last."""
    titles = [problem.title for problem in planted()] + [f"{name}.csv" for name in REAL]
    places = {title: place for place, title in enumerate(titles)}
    names = {name: place for place, name in enumerate(METHODS)}
    return sorted(
        records, key=lambda r: (places.get(r["problem"], len(places)), names.get(r["contender"], len(names)), r["seed"])
    )


def overview(found):
    """F1 of every method on every problem with a truth: one line per problem, the best in bold."""
    names = [name for name in METHODS if any(standing.contender == name for standing in found)]
    lines = ["| problem | seeds | " + " | ".join(names) + " |", "|" + " --- |" * (len(names) + 2)]
    for problem, members in by_problem(found).items():
        scores = {member.contender: member.means["f1"] for member in members if "f1" in member.means}
        if scores:
            best, most = max(mean.mean for mean in scores.values()), max(mean.n_runs for mean in scores.values())
            cells = [f1_text(scores.get(name), best, most) for name in names]
            lines.append(f"| {problem.removesuffix('.csv')} | {most} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def f1_text(mean, best, most):
    """The mean, with the number of seeds in brackets where others have more."""
    if mean is None:
        return "-"
    text = f"**{mean.mean:.2f}**" if round(mean.mean, 2) == round(best, 2) else f"{mean.mean:.2f}"
    return text if mean.n_runs == most else f"{text} ({mean.n_runs})"


def duels(found):
    """The default beside the best of the others in every planted OR problem, by differences on the same rows."""
    lines = ["| problem | default | best other | its F1 | difference | seeds | |", "|" + " --- |" * 7]
    for problem, members in by_problem(found).items():
        default = next((m for m in members if m.contender == "likelihood" and "f1" in m.means), None)
        others = [m for m in members if not m.contender.startswith("likelihood") and "f1" in m.means]
        if default is None or not others or problem.endswith(".csv") or problem.startswith("xor"):
            continue
        best = max(others, key=lambda other: other.means["f1"].mean)
        less = paired_difference(default, best, "f1")
        known = less.n_runs >= ENOUGH_RUNS
        interval = f" \u00b1 {less.half_width:.3f}" if known else ""
        sure = known and abs(less.mean) > less.half_width
        word = "first" if less.mean > 0 else "equal" if less.mean == 0 else "**behind**"
        word += "" if sure or less.mean == 0 else ", within noise" if known else ", few seeds"
        ours, theirs = default.means["f1"].mean, best.means["f1"].mean
        lines.append(
            f"| {problem} | {ours:.3f} | {best.contender} | {theirs:.3f} | {less.mean:+.3f}{interval} | "
            f"{less.n_runs} | {word} |"
        )
    return "\n".join(lines)


def picture(found):
    """F1 of every method with its interval: one panel per planted problem."""
    import altair as alt

    from bica.report import look

    drawn = [m for m in found if "f1" in m.means and not m.problem.endswith(".csv") and m.contender in METHODS]
    values = [
        {"problem": m.problem, "method": m.contender}
        | {end: min(max(value, 0.0), 1.0) for end, value in m.means["f1"].ends().items()}
        | {"known": m.means["f1"].n_runs >= ENOUGH_RUNS, "ours": m.contender.startswith("likelihood")}
        for m in drawn
    ]
    y = alt.Y("method:N", sort=list(METHODS), title=None)
    x = alt.X("mean:Q", title="F1", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=3, gridColor=look.FAINT))
    color = alt.condition("datum.ours", alt.value(look.BLUE), alt.value(look.GREY))
    dots = alt.Chart().mark_point(filled=True, size=40, opacity=1).encode(x=x, y=y, color=color)
    rules = alt.Chart().mark_rule().encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=color)
    panels = alt.layer(rules.transform_filter("datum.known"), dots, data=alt.InlineData(values=values))
    facet = alt.Facet("problem:N", title=None, sort=list(by_problem(drawn)))
    return look.styled(panels.properties(width=170, height=alt.Step(11)).facet(facet, columns=4))


HEAD = """# The great comparison

    python benchmarks/bench_great.py FOLDER --runs N

{count} fits, on one thread. Settings are the defaults, but for those that `benchmarks/tune_rivals.py` chose by other
seeds (results/tuning.md). Methods with a star are told the true number of sources, on real tables without a truth
{told}. `likelihood` is what `bica fit` does, `likelihood sure` has sure edges only. A method that took too long, 12 to
60 s of CPU time, was given up, and so was each score. Slow methods ran on fewer seeds; with fewer than five there is no
interval, and a difference is no more than a hint.

## F1 of exact columns, where the truth is known

In brackets: the number of seeds, where other methods had more.
"""
DUELS = """
## The default beside the best of the others, planted ORs

Differences are means over the seeds that both have, which share their rows, with 99 % intervals from five seeds on.
Within noise: the interval holds 0.
"""


def summarised(records):
    """The committed result: what was run, an overview, and one table per problem."""
    found = standings(records)
    print(HEAD.format(count=len(records), told=N_TOLD))
    print(overview(found))
    print(DUELS)
    print(duels(found) + "\n")
    print(standings_markdown(found))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--only", choices=["planted", "real"])
    parser.add_argument("--methods", type=lambda text: text.split(","))
    parser.add_argument("--problems", type=lambda text: text.split(","), help="beginnings of their titles")
    parser.add_argument("--summary", action="store_true", help="run nothing")
    parser.add_argument("--quiet", action="store_true", help="only run")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    results = asked.folder / "results.jsonl"
    if not asked.summary:
        jobs = plan(asked.folder, asked.runs, asked.time_limit, asked.only, asked.problems)
        if asked.methods:
            jobs = [job for job in jobs if job.contender in asked.methods]
        run_plan(jobs, results, n_jobs=asked.jobs)
    if asked.quiet:
        return
    records = read_records(results)
    found = summarised(in_order(records))
    write_whole(asked.folder / "great.html", standings_page(found, "The great comparison"), overwrite=True)
    save_picture(picture(found), asked.folder / "great.png", overwrite=True)
    write_table(records, asked.folder / "great.parquet", overwrite=True)


if __name__ == "__main__":
    main()
