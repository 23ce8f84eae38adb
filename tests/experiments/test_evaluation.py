from bica.compare import MEASURES
from bica.compare.summary import summarise
from bica.experiments.evaluation import (
    EVALUATED,
    FINDBICA,
    evaluation_plan,
    markdown_of_means,
    markdown_of_times,
    mean_times,
    with_best_findbica,
)


def record(contender, distance, network="topology one", flip_rate=0.0, seconds=1.0):
    cell = {"contender": contender, "network": network, "n_samples": 50, "flip_rate": flip_rate, "failure": None}
    return cell | dict.fromkeys(MEASURES) | {"hamming_distance": distance, "cpu_seconds": seconds}


def test_the_plan_holds_every_contender_and_cell():
    plan = evaluation_plan(3)
    assert len(plan) == len(EVALUATED) * 40 * 3
    assert {task.seed for task in plan} == {0, 1, 2}
    assert len(evaluation_plan(2, ["mac"], quick=True)) == 4 * 3 * 2 * 2


def test_findbica_is_the_best_variant_of_each_network_and_noise_level():
    first, second = FINDBICA[:2]
    records = [record(first, 0.3), record(second, 0.1), record("mac", 0.2)]
    records += [record(first, 0.1, flip_rate=0.1), record(second, 0.2, flip_rate=0.1)]
    lines = with_best_findbica(records)
    assert [(line["contender"], line["hamming_distance"]) for line in lines] == [
        ("FindBICA", 0.1),
        ("MAC", 0.2),
        ("FindBICA", 0.1),
    ]
    assert [line.get("variant") for line in lines] == [second, None, first]


def test_times_are_means_over_everything_but_network_and_method():
    times = mean_times([record("mac", 0.0, seconds=1.0), record("mac", 0.0, flip_rate=0.1, seconds=3.0)])
    assert [(time["contender"], time["network"], time["mean"], time["n_runs"]) for time in times] == [
        ("mac", "topology one", 2.0, 2)
    ]
    text = markdown_of_times([*times, {"contender": "other", "network": "topology two", "mean": 0.5}])
    assert text.splitlines()[2:] == ["| mac | 2.000 | - |", "| other | - | 0.500 |"]


def test_means_are_told_with_their_intervals():
    text = markdown_of_means(summarise([record("mac", 0.2), record("mac", 0.4)]))
    line = next(line for line in text.splitlines() if "hamming_distance" in line)
    assert "0.3000" in line
    assert "0.0000 to" in line  # a share is never below 0


def test_the_true_model_counts_for_decoding_only():
    true = record("truth", 0.0) | {"activity_error": 0.2, "precision": 1.0}
    (line,) = with_best_findbica([true])
    assert line["contender"] == "exact model"
    assert {measure: line[measure] for measure in MEASURES if line[measure] is not None} == {"activity_error": 0.2}
