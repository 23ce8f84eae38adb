"""The acceptance runs of rivals that are too long for the test suite, which runs one or a few seeds of each.

PYTHONPATH=. python benchmarks/bench_acceptance.py > benchmarks/results/acceptance.md
"""

from time import process_time

import numpy as np

from bica.methods import method_named
from bica.metrics import column_score, hamming_distance
from bica.model.or_mixture import OrMixture
from tests.rivals.planted import factors
from tests.rivals.test_noca import causes, n_near


def noca():
    """Sources of eight with a found column within three sensors, and the mean probability, for five tables."""
    found = [(fitted("noca", data, n_sources=8), mixing) for mixing, data in map(causes, range(5))]
    near = [n_near(fit, mixing) for fit, mixing in found]
    off = max(abs(fit.model.probability.mean() - 0.2) for fit, _ in found)
    return f"{near} of 8 near, mean probability off by at most {off:.3f}", min(near) >= 6 and near.count(8) >= 2


def ten_factors(name, most, **settings):
    """Wrong links, as a share, for three tables of ten sparse factors."""
    errors = []
    for seed in range(3):
        mixing, data, _ = factors(seed, 10, 500, 200, 0.3, 0.05)
        errors.append(hamming_distance(fitted(name, data, n_sources=10, **settings).model.mixing, mixing))
    return f"wrong links {[f'{error:.4f}' for error in errors]}", max(errors) <= most


def fifteen_factors():
    """Factors found exactly, of 15, for six tables."""
    exact = []
    for seed in range(6):
        mixing, data, chance = factors(seed, 15, 100, 50, 0.25, 0.0)
        fit = fitted("message-passing", data, n_sources=15, prior=(chance, chance))
        exact.append(round(15 * column_score(fit.model, OrMixture(mixing, np.full(15, chance))).recall))
    return f"{exact} of 15 exact", min(exact) == 15


def fitted(name, data, **settings):
    return method_named(name, **settings).fit(data, np.random.default_rng(0))


CASES = [
    ("NOCA, 8 sources, 64 sensors, 500 rows, 10 starts: at least 6 near on each of 5, 8 on two", noca),
    ("message passing, 10 factors, 500 x 200, 5 % flips: exact on 3", lambda: ten_factors("message-passing", 0.0)),
    ("message passing, 15 factors, 100 x 50, priors given: exact on 6", fifteen_factors),
    (
        "ELBMF, 10 factors, 500 x 200, best of 5: wrong links at most .005",
        lambda: ten_factors("elbmf", 0.005, n_init=5),
    ),
]


COVERED = {  # what each rival must reach, and the test of it in tests/rivals
    "XOR: 20 of 20 by America, 18 by Mexico, 8 sources": "test_xor::test_eight_sources_are_found",
    "XOR: 15 of 15 by America, 12 sources": "test_xor::test_twelve_sources_are_found",
    "XOR: a uniform source is warned of": "test_xor::test_a_uniform_source_is_warned_of_and_the_others_are_found",
    "XOR: least sum of entropies, by brute force": "test_xor::test_the_sum_of_entropies_is_the_least_of_all",
    "beta: bound, correlation .9, 95 % of rows, noise factor": (
        "test_beta::test_graded_sources_and_false_absence_are_told_apart"
    ),
    "NOCA: 6 of 8 near on every seed, 8 on two": "test_noca::test_the_bound_finds_the_sources, one seed; all below",
    "NOCA: bound below the exact likelihood": (
        "test_noca::test_the_bound_is_below_the_likelihood_of_the_same_parameters"
    ),
    "NOCA: steps at the top of the bound": (
        "tests/kernels/rivals/test_noisy_or::test_probabilities_and_rates_are_where_the_bound_is_highest"
    ),
    "buffet: 4 causes on 4 of 6, structure error 1": "test_buffet::test_the_best_of_six_chains_finds_the_causes",
    "buffet: prior without rows": "test_buffet::test_without_rows_the_number_of_sources_follows_its_prior",
    "buffet: Geweke": "test_buffet::test_drawing_data_and_state_in_turn_leaves_the_prior_as_it_is",
    "MAC: median error 0, at most .02": "test_mac::test_it_recovers_five_clusters_under_a_fifth_of_noise",
    "MAC: slope by finite differences": (
        "tests/kernels/rivals/test_assignment::test_every_quiet_chance_stands_where_the_slope_is_zero_or_at_an_end"
    ),
    "MAC: free energy never rises": "test_mac::test_the_free_energy_falls_at_every_temperature",
    "attractor: 16 of 16 bars on 5 seeds": "test_attractor::test_all_bars_are_found_and_nothing_else",
    "attractor: 12 of 16 unequal bars": "test_attractor::test_of_bars_as_rare_or_frequent_as_they_come_most_are_found",
    "information gain: .05 for a bar, less with a random factor": "tests/metrics/test_gain",
    "concepts: counts of four tables to the digit": (
        "test_grecond::test_known_tables_take_as_many_concepts_as_measured_before"
    ),
    "concepts: exact, all of them concepts": (
        "test_grecond::test_every_source_is_a_concept_and_all_together_rebuild_the_table"
    ),
    "concepts: at least the Boolean rank": "test_grecond::test_no_cover_is_smaller_than_the_boolean_rank",
    "linear: exact amplitudes and bits, 6 sources": "test_linear::test_six_sources_in_one_channel_without_noise",
    "linear: four sources at 20 dB": (
        "test_linear::test_four_sources_with_noise_are_decoded_about_as_well_as_can_be; less than 1 % wrong is asked, "
        "but two sums lie .02 apart and collide at that noise, so the bound is what any decoder can reach"
    ),
    "linear: deconvolution at 25 dB": "test_linear::test_one_source_over_three_delays",
    "OrMachine: exact on 4 of 4, rate within .05": (
        "test_or_machine::test_five_planted_factors_and_their_flip_rate_are_found"
    ),
    "OrMachine: posterior means of a toy": "test_or_machine::test_posterior_means_are_those_of_enumeration",
    "message passing: 5 factors exact": "test_message_passing::test_five_planted_factors_are_found_exactly",
    "message passing: 10 and 15 factors exact": "test_message_passing, one and three seeds; all below",
    "message passing: zoo at most 271": (
        "test_message_passing::test_two_factors_leave_at_most_271_wrong_cells_in_the_zoo"
    ),
    "Asso: exact where factors own a column": "test_asso::test_factors_that_own_a_sensor_are_found_exactly",
    "Asso, ELBMF: zoo": "test_asso, test_elbmf::test_no_more_cells_of_the_zoo_are_wrong_than_measured_before",
    "ELBMF: error at most .005": (
        "test_elbmf::test_ten_sparse_factors_are_found_but_for_one_cell_in_two_hundred, one table; three below"
    ),
    "ELBMF: binary before rounding": "test_elbmf::test_factors_are_binary_before_they_are_rounded",
    "quartets: twice the bounds on 5 seeds": (
        "test_quartets::test_three_sources_of_fourteen_sensors_are_found_with_their_links"
    ),
    "quartets: exact moments": "test_quartets::test_exact_moments_give_exact_parameters",
    "quartets: three children are not learnable": (
        "test_quartets::test_a_source_of_three_sensors_is_reported_as_not_learnable"
    ),
}


def main():
    print("# Acceptance of rivals\n\n    PYTHONPATH=. python benchmarks/bench_acceptance.py\n")
    print("## Covered by tests (`pytest tests/rivals`)\n\n| what | test |\n| --- | --- |")
    for what, test in COVERED.items():
        print(f"| {what} | {test.replace('::', ': ')} |")
    print("\n## Runs that are too long for the suite\n")
    print("| asked | found | reached | CPU s |\n| --- | --- | --- | --- |")
    for asked, case in CASES:
        begin = process_time()
        found, reached = case()
        print(f"| {asked} | {found} | {'yes' if reached else 'no'} | {process_time() - begin:.0f} |", flush=True)


if __name__ == "__main__":
    main()
