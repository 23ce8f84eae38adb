import numpy as np
import pytest

from bica.compare import run_plan
from bica.errors import SettingError
from bica.experiments.spectrum import CONTENDERS, SpectrumJob, means_by, spectrum_plan, with_best_findbica


def job(contender="truth", **settings):
    return SpectrumJob(**{"contender": contender, "n_users": 6, "flip_rate": 0.0, "seed": 1000} | settings)


def test_all_contenders_get_the_same_reports_and_all_noise_levels_the_same_activity():
    quiet, noisy = job().survey(), job("likelihood", flip_rate=0.05).survey()
    np.testing.assert_array_equal(quiet.problem.activity, noisy.problem.activity)
    assert (quiet.problem.rows != noisy.problem.rows).mean() == pytest.approx(0.05, abs=0.005)
    assert (quiet.field.users != job(seed=1001).survey().field.users).any()


@pytest.mark.slow
def test_the_order_of_the_slots_makes_the_answer_exact():
    without, within = (job(name, seed=1007, n_users=10) for name in ("likelihood", "likelihood in time"))
    assert without.perform()["exact"] == 0
    assert within.perform()["exact"] == 1


def test_a_job_measures_both_ways_to_decode(tmp_path):
    plan = [job(name, flip_rate=0.05, n_samples=2000) for name in ("findbica 0.005", "findbica 0.02", "truth")]
    first, second, truth = run_plan(plan, tmp_path / "results.jsonl", n_jobs=1)
    assert truth["hamming_distance"] == 0
    assert truth["activity_error_in_time"] < truth["activity_error"]
    assert first["activity_error_in_time"] is not None
    assert second["activity_error_in_time"] is None


def test_the_whole_experiment_is_planned():
    plan = spectrum_plan()
    assert len(plan) == len({tuple(task.key().values()) for task in plan}) == 11 * 3 * 50 * len(CONTENDERS)
    with pytest.raises(SettingError, match="no contender"):
        spectrum_plan(["magic"])


def record(contender, distance, seed=0, in_time=None):
    return {
        "contender": contender, "reading": "rare", "n_users": 5, "flip_rate": 0.0, "seed": seed, "n_true": 4,
        "hamming_distance": distance, "exact": 0.0, "activity_error": distance, "activity_error_in_time": in_time,
        "n_found": 4, "f1": 1.0, "cpu_seconds": 1.0,
    }  # fmt: skip


def test_the_best_findbica_is_chosen_by_its_mean():
    records = [record("findbica 0.005", d, seed, 0.5) for seed, d in enumerate((0.2, 0.2))]
    records += [record("findbica 0.02", d, seed) for seed, d in enumerate((0.0, 0.3))]
    lines = with_best_findbica([*records, record("likelihood", 0.1)])
    assert [(line["contender"], line.get("variant")) for line in lines] == [
        ("FindBICA", "findbica 0.02"),
        ("FindBICA", "findbica 0.02"),
        ("Likelihood", None),
    ]
    assert lines[0]["activity_error_in_time"] == 0.5  # of the setting that was decoded in time
    means = {row["measure"]: row for row in means_by(lines, "n_true") if row["contender"] == "FindBICA"}
    assert means["hamming_distance"]["mean"] == pytest.approx(0.15)
    assert means["hamming_distance"]["n_runs"] == 2
    likelihood = {row["measure"] for row in means_by(lines, "n_users") if row["contender"] == "Likelihood"}
    assert "activity_error_in_time" not in likelihood
