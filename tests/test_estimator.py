from dataclasses import dataclass, field

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import bica
from bica import BICA, Noise, OrMixture, PatternCounts
from bica.errors import BicaWarning, DataError, InfeasibleError, MisfitWarning, ModelFileError, SettingError
from bica.estimate.findbica import FindBICA
from bica.invert.decode import Decoded
from bica.methods import METHODS
from bica.model.fit import Fit
from bica.simulate import random_network, simulate

TRUTH = OrMixture([[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 0, 1]], [0.4, 0.3, 0.2], sensors=["a", "b", "c", "d"])
ROWS = TRUTH.sample(3000, np.random.default_rng(1))
ACTIVITY = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 1]])


@pytest.fixture
def fitted():
    return BICA().fit(ROWS)


def same(left, right):
    """Whether two estimators learned the same model to the last bit."""
    return left.model_ == right.model_ and left.fit_.document() == right.fit_.document()


@dataclass(frozen=True)
class Given:
    """A method that finds what it was told, and shows that it was handed the data and the chance."""

    model: OrMixture
    asked: list = field(default_factory=list)

    def fit(self, data, rng):
        self.asked.append((data, rng.random()))
        error = np.arange(self.model.n_sources, dtype=float) / 10
        return Fit(self.model, method="given", probability_error=error, n_iter=7, diagnostics={"note": "told"})


class GivenInOrder(Given):
    """The same, from rows in order; sources stay on for ten times their probability."""

    def fit_in_order(self, rows, rng):
        return Fit(self.model, diagnostics={"persistence": [round(10 * p) for p in self.model.probability]})


# What scikit-learn's own checks demand. They feed real numbers, which need a threshold.


def unavoidable(estimator):
    """NaN is a missing cell: FindBICA cannot learn from it, but whatever was learned can decode it."""
    return {} if estimator.method == "likelihood" else {"check_estimators_nan_inf": "transform takes missing cells"}


@parametrize_with_checks(
    [BICA(binarize=0.0), BICA("findbica", binarize=0.0), BICA("findbica", binarize=0.5, noise=0.05)],
    expected_failed_checks=unavoidable,
)
def test_scikit_learn_is_content(estimator, check):
    check(estimator)


FED_REAL_NUMBERS = "fits on real numbers, and BICA without `binarize` reads only 0 and 1"
OTHER_COMPLAINT = "fits on real numbers and waits for another error than that only 0 and 1 can be read"
EXPECTED_FAILURES = {
    "check_all_zero_sample_weights_error": OTHER_COMPLAINT,
    "check_dict_unchanged": FED_REAL_NUMBERS,
    "check_dont_overwrite_parameters": FED_REAL_NUMBERS,
    "check_dtype_object": FED_REAL_NUMBERS,
    "check_estimator_sparse_array": FED_REAL_NUMBERS,
    "check_estimator_sparse_matrix": FED_REAL_NUMBERS,
    "check_estimator_sparse_tag": FED_REAL_NUMBERS,
    "check_estimators_dtypes": FED_REAL_NUMBERS,
    "check_estimators_fit_returns_self": FED_REAL_NUMBERS,
    "check_estimators_nan_inf": FED_REAL_NUMBERS,
    "check_estimators_overwrite_params": FED_REAL_NUMBERS,
    "check_estimators_pickle": FED_REAL_NUMBERS,
    "check_f_contiguous_array_estimator": FED_REAL_NUMBERS,
    "check_fit2d_1feature": OTHER_COMPLAINT,
    "check_fit2d_1sample": OTHER_COMPLAINT,
    "check_fit2d_predict1d": FED_REAL_NUMBERS,
    "check_fit_check_is_fitted": FED_REAL_NUMBERS,
    "check_fit_idempotent": FED_REAL_NUMBERS,
    "check_fit_score_takes_y": FED_REAL_NUMBERS,
    "check_methods_sample_order_invariance": FED_REAL_NUMBERS,
    "check_methods_subset_invariance": FED_REAL_NUMBERS,
    "check_n_features_in": FED_REAL_NUMBERS,
    "check_n_features_in_after_fitting": FED_REAL_NUMBERS,
    "check_pipeline_consistency": FED_REAL_NUMBERS,
    "check_positive_only_tag_during_fit": FED_REAL_NUMBERS,
    "check_readonly_memmap_input": FED_REAL_NUMBERS,
    "check_sample_weight_equivalence_on_dense_data": FED_REAL_NUMBERS,
    "check_sample_weight_equivalence_on_sparse_data": FED_REAL_NUMBERS,
    "check_sample_weights_list": FED_REAL_NUMBERS,
    "check_sample_weights_not_an_array": FED_REAL_NUMBERS,
    "check_sample_weights_not_overwritten": FED_REAL_NUMBERS,
    "check_sample_weights_pandas_series": FED_REAL_NUMBERS,
    "check_sample_weights_shape": FED_REAL_NUMBERS,
    "check_transformer_data_not_an_array": FED_REAL_NUMBERS,
    "check_transformer_general": FED_REAL_NUMBERS,
}


def causes(error):
    """What is said of the error, and of the errors behind it."""
    return "" if error is None else f"{error} {causes(error.__cause__)} {causes(error.__context__)}"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_without_a_threshold_only_real_numbers_are_in_the_way():
    results = check_estimator(BICA(), on_fail=None, expected_failed_checks=EXPECTED_FAILURES)
    failed = [result for result in results if result["status"] in ("failed", "xfail")]
    assert {result["check_name"] for result in failed} <= EXPECTED_FAILURES.keys()
    assert all("only 0 and 1 can be read" in causes(result["exception"]) for result in failed)


# What was learned.


def test_the_sources_are_found_in_the_order_of_their_probability(fitted):
    assert fitted.components_.tolist() == TRUTH.mixing.T.tolist()
    assert fitted.components_.dtype == bool
    # four standard errors: each probability is a share of the rows without the other two, at least 0.6 x 0.7 of all
    np.testing.assert_allclose(fitted.probabilities_, TRUTH.probability, atol=4 * np.sqrt(0.25 / (3000 * 0.42)))
    assert fitted.n_sources_ == 3
    assert fitted.n_features_in_ == 4
    assert fitted.n_iter_ >= 1
    assert ((fitted.probability_errors_ > 0) & (fitted.probability_errors_ < 0.05)).all()
    assert fitted.noise_ == fitted.model_.noise
    assert fitted.log_likelihood_ == pytest.approx(fitted.model_.log_likelihood(ROWS))


def test_sources_of_equal_probability_are_ordered_by_their_columns():
    given = OrMixture([[0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1]], [0.3, 0.3, 0.3, 0.4])
    found = BICA(method=Given(given)).fit(np.zeros((2, 3), dtype=bool))
    assert found.components_.astype(int).tolist() == [[0, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert found.probability_errors_.tolist() == [0.3, 0.2, 0.1, 0.0]
    assert (found.n_iter_, found.diagnostics_["note"]) == (7, "told")
    assert found.diagnostics_["diagnosis"]["verdict"] in ("too few rows", "doubtful")  # two rows vouch for nothing


def test_the_order_of_the_rows_changes_not_a_byte(fitted):
    assert same(fitted, BICA().fit(ROWS[np.random.default_rng(2).permutation(len(ROWS))]))


def test_a_weight_is_a_repeated_row(fitted):
    weights = np.random.default_rng(3).integers(0, 4, len(ROWS))
    assert same(BICA().fit(ROWS, sample_weight=weights), BICA().fit(ROWS.repeat(weights, axis=0)))


@pytest.mark.parametrize("kind", [list, pd.DataFrame, csr_array, PatternCounts.of, np.asfortranarray])
def test_every_kind_of_table_gives_the_same_model(fitted, kind):
    assert BICA().fit(kind(ROWS.astype(np.int8))).components_.tolist() == fitted.components_.tolist()


def test_the_seed_reaches_the_method():
    drawn = []
    for seed in (5, 5, np.random.RandomState(5), np.random.default_rng(5)):
        method = Given(TRUTH)
        BICA(method=method, random_state=seed).fit(ROWS)
        drawn.append(method.asked[0][1])
    assert drawn[0] == drawn[1] == drawn[3] == np.random.default_rng(5).random() != drawn[2]


# Batches.


def test_partial_fits_equal_one_fit(fitted):
    learner = BICA()
    for part in np.array_split(ROWS, 3):
        learner.partial_fit(part)
    assert same(learner, fitted)


def test_partial_fit_goes_on_after_fit_and_fit_starts_anew(fitted):
    learner = BICA().fit(ROWS[:2000]).partial_fit(ROWS[2000:])
    assert same(learner, fitted)
    assert same(learner.fit(ROWS[:1000]), BICA().fit(ROWS[:1000]))


def test_batches_must_have_the_same_columns():
    learner = BICA().partial_fit(ROWS)
    with pytest.raises(ValueError, match="X has 3 features, but BICA is expecting 4"):
        learner.partial_fit(ROWS[:, :3])


# Decoding.


def test_activities_without_overlap_come_back():
    apart = BICA(method=Given(OrMixture(np.eye(3), [0.5, 0.3, 0.2]))).fit(np.zeros((1, 3), dtype=bool))
    assert apart.transform(apart.inverse_transform(ACTIVITY)).tolist() == ACTIVITY.tolist()


def test_transform_explains_what_was_shown(fitted):
    active = fitted.transform(ROWS)
    assert active.dtype == np.int8
    assert active.shape == (3000, 3)
    np.testing.assert_array_equal(fitted.inverse_transform(active), ROWS)


def test_missing_cells_are_decoded_from_the_others(fitted):
    row = np.ma.masked_array([[1, 1, 0, 0]], mask=[[False, True, False, False]])
    assert fitted.transform(row).tolist() == [[1, 0, 0]]


def test_nan_is_a_missing_cell(fitted):
    gap = np.array([[1.0, np.nan, 0.0, 0.0]])
    assert fitted.transform(gap).tolist() == [[1, 0, 0]]
    either = np.exp(fitted.score_samples([[1, 0, 0, 0], [1, 1, 0, 0]])).sum()
    assert fitted.score_samples(gap)[0] == pytest.approx(np.log(either))
    assert fitted.score(gap) == pytest.approx(np.log(either))


def test_findbica_refuses_to_learn_from_gaps_in_one_sentence():
    with pytest.raises(DataError, match=r"1 of 2 rows have missing cells, which FindBICA cannot use; drop"):
        BICA("findbica").fit([[1.0, np.nan], [0.0, 1.0]])


def test_rows_that_no_sources_produce_are_refused_by_number():
    silent = BICA(noise=0).fit(ROWS)
    with pytest.raises(InfeasibleError, match=r"no set of sources produces rows 1, 3 .*noise='estimate'"):
        silent.transform([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]])
    assert silent.transform(ROWS[:5]).shape == (5, 3)


def test_a_refusal_tells_how_far_off_the_rows_are():
    with pytest.raises(InfeasibleError, match=r"at least 1 of the cells must be wrong"):
        BICA(noise=0).fit(ROWS).transform([[1, 0, 0, 0]])


def test_a_search_that_was_cut_short_is_told(monkeypatch):
    cut = Decoded(np.zeros((5, 1), np.uint64), np.ones(5), np.full(5, 0.25), np.zeros(5, np.int32), 3)
    monkeypatch.setattr(OrMixture, "decode", lambda *_: cut)
    with pytest.warns(BicaWarning, match=r"cut short in 5 rows: .* at most 0\.25"):
        BICA(noise=0).fit(ROWS).transform(ROWS[:5])


def test_many_impossible_rows_are_not_all_named():
    with pytest.raises(InfeasibleError, match=r"rows 0, 1, 2, 3, 4, \.\.\. when"):
        BICA(noise=0).fit(ROWS).transform([[1, 0, 0, 0]] * 9)


def test_with_noise_every_row_is_decoded():
    noisy = BICA(noise=Noise(0.01, 0.1)).fit(ROWS)
    assert noisy.noise_ == Noise(0.01, 0.1)
    assert noisy.transform([[1, 0, 0, 0]]).tolist() == [[1, 0, 0]]  # one miss is likelier than a false alarm


def test_inverse_transform_refuses_what_is_no_activity(fitted):
    with pytest.raises(DataError, match="Y has 2 columns, but the model has 3 sources"):
        fitted.inverse_transform([[0, 1]])
    with pytest.raises(DataError, match="0 and 1 only"):
        fitted.inverse_transform([[0, 1, 0.5]])


def test_counts_have_no_rows_to_transform(fitted):
    with pytest.raises(DataError, match="order of their rows"):
        fitted.transform(PatternCounts.of(ROWS))


# Scores and samples.


def test_scores_are_log_likelihoods(fitted):
    by_row = fitted.score_samples(ROWS)
    chances = fitted.model_.pattern_probability()
    np.testing.assert_allclose(by_row, np.log(chances[ROWS @ [1, 2, 4, 8]]))
    assert fitted.score(ROWS) == pytest.approx(by_row.mean())
    assert fitted.score(PatternCounts.of(ROWS)) == fitted.score(ROWS)


def test_samples_follow_the_model_and_the_seed(fitted):
    rows = fitted.set_params(random_state=4).sample(20_000)
    assert rows.shape == (20_000, 4)
    assert (rows == fitted.sample(20_000)).all()
    expected = 1 - np.prod(1 - fitted.model_.mixing * fitted.probabilities_, axis=1)  # noise is below 1e-3 here
    np.testing.assert_allclose(rows.mean(axis=0), expected, atol=4 * np.sqrt(0.25 / 20_000) + 1e-3)
    assert fitted.noise_.miss < 1e-3


# Names.


def frame(rows=ROWS, names="abcd", kind=pd.DataFrame):
    return kind({name: rows[:, i].astype(int) for i, name in enumerate(names)})


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_names_of_columns_are_kept(kind):
    named = BICA().fit(frame(kind=kind))
    assert named.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert named.model_.sensors == ("a", "b", "c", "d")
    assert named.transform(frame(kind=kind)).shape == (3000, 3)


def tables(folder):
    """The same rows with the same names, kept in different ways."""
    frame(kind=pl.DataFrame).write_csv(folder / "rows.csv")
    frame(kind=pl.DataFrame).write_parquet(folder / "rows.parquet")
    yield folder / "rows.csv"
    yield str(folder / "rows.parquet")
    yield frame(kind=pl.LazyFrame)
    yield duckdb.read_parquet(str(folder / "rows.parquet"))


def test_files_relations_and_lazy_frames_are_read_like_frames(tmp_path):
    expected = BICA().fit(frame())
    for table in tables(tmp_path):
        found = BICA().fit(table)
        assert same(found, expected)
        assert found.feature_names_in_.tolist() == ["a", "b", "c", "d"]
        np.testing.assert_array_equal(found.transform(table), expected.transform(frame()))
        np.testing.assert_array_equal(found.score_samples(table), expected.score_samples(frame()))


def test_an_array_has_no_names(fitted):
    assert not hasattr(fitted, "feature_names_in_")
    assert not hasattr(BICA().fit(frame()).fit(ROWS), "feature_names_in_")
    assert not hasattr(BICA().fit(pd.DataFrame(ROWS)), "feature_names_in_")


def test_other_columns_are_refused():
    named = BICA().fit(frame())
    with pytest.raises(DataError, match="column 0 is 'b', but it was 'a' in fit"):
        named.transform(frame(names="bacd"))
    with pytest.raises(DataError, match="X has 3 features, but BICA is expecting 4"):
        named.transform(frame(names="abc"))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.transform(ROWS)


def test_columns_of_the_output_are_named_after_the_sources(fitted):
    assert fitted.get_feature_names_out().tolist() == ["source1", "source2", "source3"]
    table = fitted.set_output(transform="pandas").transform(pd.DataFrame(ROWS, index=range(7, 3007)))
    assert table.columns.tolist() == ["source1", "source2", "source3"]
    assert table.index[0] == 7
    assert fitted.set_output(transform="polars").transform(ROWS).columns == ["source1", "source2", "source3"]


# Living with scikit-learn.


def test_it_works_inside_a_pipeline():
    target = TRUTH.draw_activity(3000, np.random.default_rng(1))[:, 0]  # the draws behind ROWS
    pipeline = make_pipeline(MaxAbsScaler(), BICA(binarize=0.5), LogisticRegression())
    assert pipeline.fit(ROWS, target).score(ROWS, target) > 0.9
    assert pipeline[:-1].get_feature_names_out().tolist() == ["source1", "source2", "source3"]


def test_clones_and_parameters():
    learner = BICA(FindBICA(split=False), binarize={"a": 0.5}, random_state=3, verbose=True)
    copy = clone(learner)
    assert copy.get_params() == learner.get_params()
    assert copy.set_params(noise=0.1).noise == 0.1
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(nonsense=1)


@pytest.mark.parametrize("use", ["transform", "score", "score_samples", "inverse_transform", "save", "sample"])
def test_nothing_works_before_fit(use):
    with pytest.raises(NotFittedError):
        getattr(BICA(), use)(ROWS)


def test_a_saved_model_comes_back(fitted, tmp_path):
    fitted.save(tmp_path / "model.json")
    assert bica.load(tmp_path / "model.json") == fitted.model_
    assert Fit.load(tmp_path / "model.json").document() == fitted.fit_.document()
    with pytest.raises(OSError, match="exists already"):
        fitted.save(tmp_path / "model.json")
    fitted.save(tmp_path / "model.json", overwrite=True)


# Estimators of models that are there already.


def origins(fitted, folder):
    """The same model in every shape that is taken."""
    fitted.save(folder / "model.json")
    return fitted.fit_, fitted.model_, folder / "model.json", str(folder / "model.json")


def test_an_estimator_of_a_model_does_what_the_fitted_one_does(tmp_path):
    fitted = BICA(random_state=0).fit(frame())
    for origin in origins(fitted, tmp_path):
        again = BICA.from_model(origin, random_state=0)
        assert again.model_ == fitted.model_
        assert again.feature_names_in_.tolist() == list("abcd")
        for use in ("transform", "posterior", "score_samples", "score"):
            np.testing.assert_array_equal(getattr(again, use)(frame()), getattr(fitted, use)(frame()))
        np.testing.assert_array_equal(again.inverse_transform(ACTIVITY), fitted.inverse_transform(ACTIVITY))
        np.testing.assert_array_equal(again.sample(9), fitted.sample(9))
        assert again.explain([1, 1, 0, 0]).probability.tolist() == fitted.explain([1, 1, 0, 0]).probability.tolist()
        assert again.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
        again.save(tmp_path / "again.json", overwrite=True)
        assert bica.load(tmp_path / "again.json") == fitted.model_
        with pytest.raises(DataError, match="column 0 is 'b', but it was 'a'"):
            again.transform(frame(names="bacd"))


def test_an_estimator_of_a_fit_has_every_fitted_attribute(fitted, tmp_path):
    for origin in origins(fitted, tmp_path):
        again = BICA.from_model(origin)
        public = {name for name in vars(fitted) if name.endswith("_")}
        assert {name for name in vars(again) if name.endswith("_")} == public
    assert BICA.from_model(fitted.fit_).diagnostics_ == fitted.diagnostics_
    again = BICA.from_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.probability_errors_, fitted.probability_errors_)
    assert again.log_likelihood_ == fitted.log_likelihood_


def test_an_estimator_of_a_model_keeps_the_order_of_its_sources():
    model = OrMixture(np.eye(3), [0.1, 0.3, 0.2], names=["rare", None, None])
    estimator = BICA.from_model(model)
    assert estimator.model_ is model
    assert estimator.transform([[1, 0, 0]]).tolist() == [[1, 0, 0]]
    assert estimator.get_feature_names_out().tolist() == ["rare", "source2", "source3"]


def test_what_needs_the_rows_is_refused_without_them(fitted):
    estimator = BICA.from_model(fitted.model_)
    for use in (lambda: estimator.partial_fit(ROWS), estimator.bootstrap):
        with pytest.raises(DataError, match=r"^(partial_fit|bootstrap) needs the rows that the model was learned from"):
            use()
    assert same(estimator.fit(ROWS), fitted)
    assert same(estimator.fit(ROWS[:1000]).partial_fit(ROWS[1000:]), fitted)
    with pytest.raises(NotFittedError):
        clone(estimator).transform(ROWS)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(SettingError, match="3 is no model; give an OrMixture, a Fit or the path of a model file"):
        BICA.from_model(3)
    with pytest.raises(ModelFileError, match="there is no file"):
        BICA.from_model(tmp_path / "nothing.json")


def test_a_model_decodes_in_time_with_what_is_known_of_it():
    rows = frame(TestTemporal.problem.rows)
    assert BICA.from_model(TRUTH, temporal=10).persistence_.tolist() == [10, 10, 10]
    open_model = BICA.from_model(TRUTH.with_noise(Noise.flips(0.1)), temporal=True)
    assert not hasattr(open_model, "persistence_")
    assert (open_model.transform(rows) != TestTemporal.problem.activity).mean() < 0.1
    with pytest.raises(SettingError, match="mean number of slots"):
        BICA.from_model(TRUTH, temporal=0.5)


# Rows that contradict the model.

EXCLUSIVE = np.repeat([[1, 0], [0, 1]], 50, axis=0)


def test_a_misfit_warns_once_and_says_why():
    with pytest.warns(BicaWarning) as told:
        found = BICA().fit(EXCLUSIVE)
    (warning,) = told
    assert warning.category is MisfitWarning
    assert warning.filename == __file__
    assert str(warning.message).startswith(found.diagnostics_["diagnosis"]["reasons"][0])
    assert "diagnostics_['diagnosis']" in str(warning.message)
    assert "bica check" in str(warning.message)
    with pytest.warns(MisfitWarning) as told:
        found.partial_fit(EXCLUSIVE)
    assert len(told) == 1
    assert told[0].filename == __file__


def test_what_fits_does_not_warn(fitted, recwarn):
    assert fitted.diagnostics_["diagnosis"]["verdict"] == "fits"
    BICA().fit(ROWS)
    assert not recwarn.list


# Settings.


def test_settings_go_to_the_method():
    rare = BICA(min_probability=0.35).fit(ROWS)
    assert (rare.probabilities_ >= 0.35).all()
    assert rare.n_sources_ < 3
    assert BICA(noise=0.03).fit(ROWS).noise_ == Noise.flips(0.03)


def test_a_method_object_knows_its_own_settings(fitted):
    assert same(BICA(FindBICA()).fit(ROWS), BICA("findbica").fit(ROWS))
    with pytest.raises(SettingError, match="min_probability has to be set on the object"):
        BICA(FindBICA(), min_probability=0.1).fit(ROWS)


@pytest.mark.parametrize("method", [FindBICA, 3])
def test_what_is_no_method_is_refused(method):
    with pytest.raises(SettingError, match="give a name or an object"):
        BICA(method).fit(ROWS)


@pytest.mark.parametrize("noise", ["guess", None, np.array([0.1, 0.2])])
def test_what_is_no_noise_is_refused(noise):
    with pytest.raises(SettingError, match=r"noise is .*; it can be 'auto', 'estimate', .*, a flip rate or a Noise"):
        BICA(noise=noise).fit(ROWS)


@dataclass(frozen=True)
class Blind:
    """A method that has no settings and finds nothing."""

    def fit(self, data, rng):
        return Fit(OrMixture(np.zeros((data.n_sensors, 0)), [], sensors=data.sensors))


def test_a_method_gets_only_settings_that_it_has_and_a_changed_one_is_refused(monkeypatch):
    monkeypatch.setitem(METHODS, "blind", f"{__name__}:Blind")
    assert BICA("blind").fit(ROWS).n_sources_ == 0
    with pytest.raises(SettingError, match="'blind' has no setting 'significance', which is for 'findbica'"):
        BICA("blind", significance=0.01).fit(ROWS)


def test_a_model_without_sources_has_no_columns_to_show():
    nothing = BICA(Blind()).fit(ROWS)
    assert nothing.transform(np.zeros((5, 4))).shape == (5, 0)
    assert nothing.inverse_transform(np.zeros((5, 0))).tolist() == [[0] * 4] * 5
    assert nothing.set_output(transform="pandas").transform(np.zeros((5, 4))).shape == (5, 0)


def test_counts_carry_their_weights():
    with pytest.raises(SettingError, match="leave out sample_weight"):
        BICA().fit(PatternCounts.of(ROWS), sample_weight=np.ones(3000))


def test_a_verbose_fit_tells_on_standard_error(capsys):
    BICA(verbose=True).fit(ROWS).transform(ROWS)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "learning from" in shown.err
    BICA().fit(ROWS)
    assert capsys.readouterr().err == ""


class TestUncertainty:
    def test_intervals_are_those_of_the_fit(self):
        bica = BICA().fit(ROWS)
        np.testing.assert_array_equal(bica.probability_intervals_, bica.fit_.interval())
        assert bica.probability_intervals_.shape == (bica.n_sources_, 2)
        assert (bica.probability_intervals_[:, 0] < bica.probabilities_).all()
        assert (bica.probabilities_ < bica.probability_intervals_[:, 1]).all()

    def test_without_errors_the_intervals_are_unknown(self):
        assert np.isnan(BICA("findbica").fit(ROWS).probability_intervals_).all()

    def test_a_bootstrap_tells_support_and_leaves_the_estimator_as_it_was(self):
        bica = BICA(random_state=3).fit(ROWS)
        fit = bica.fit_
        found = bica.bootstrap(8)
        assert found.n_resamples == 8
        assert found.support.shape == bica.probabilities_.shape
        assert bica.fit_ is fit
        assert bica.bootstrap(8, n_jobs=2).summary() == found.summary()

    def test_a_bootstrap_needs_a_fit(self):
        with pytest.raises(NotFittedError):
            BICA().bootstrap()


# What is likely, and why.


def test_posteriors_are_those_of_the_rows(fitted):
    found = fitted.posterior(ROWS[:100])
    assert found.shape == (100, 3)
    agreed = (found > 0.5) == fitted.transform(ROWS[:100])
    assert agreed.mean() > 0.9
    gap = fitted.posterior(np.array([[1.0, np.nan, 0.0, 0.0]]))
    assert gap.shape == (1, 3)
    assert gap[0, 0] > 0.9


def test_a_row_is_explained(fitted):
    found = fitted.explain([1, 1, 1, 1], k=3)
    assert len(found.activity) == 3
    np.testing.assert_array_equal(found.activity[0], fitted.transform([[1, 1, 1, 1]])[0])
    table = fitted.explain(np.array([[1, 1, 1, 1]]), k=3)
    np.testing.assert_array_equal(table.probability, found.probability)
    with pytest.raises(SettingError, match="2 were given"):
        fitted.explain(ROWS[:2])


def test_the_cells_of_a_row_may_have_names_and_thresholds():
    named = BICA().fit(frame())
    by_name = {"d": 0, "c": 0, "b": 1, "a": 1}
    expected = named.explain([1, 1, 0, 0], k=2).probability
    for row in (by_name, pd.Series(by_name), pd.DataFrame([by_name])):
        np.testing.assert_array_equal(named.explain(row, k=2).probability, expected)
    loud = BICA(binarize=5).fit(frame(rows=10 * ROWS.astype(int)))
    np.testing.assert_array_equal(loud.explain([9, 8, 1, 0], k=2).activity, named.explain([1, 1, 0, 0], k=2).activity)


def test_impossible_rows_cannot_be_explained():
    silent = BICA(noise=0).fit(ROWS)
    with pytest.raises(InfeasibleError, match="no set of sources produces this row"):
        silent.explain([1, 0, 0, 0])
    with pytest.warns(BicaWarning, match="cannot produce 1 row of 1"):
        assert np.isnan(silent.posterior([[1, 0, 0, 0]])).all()


@pytest.mark.slow
def test_scores_of_a_wide_model_are_marked_lower_bounds():
    rng = np.random.default_rng(3)
    model = random_network(120, 120, column_weight=(3, 4), probability=(0.02, 0.1), noise=Noise.flips(0.02), rng=rng)
    rows = model.sample(2, rng)
    wide = BICA(method=Given(model)).fit(rows)
    with pytest.warns(BicaWarning, match="2 of 2 rows is a lower bound"):
        scores = wide.score_samples(rows)
    assert np.isfinite(scores).all()
    with pytest.warns(BicaWarning, match=r"of 240 posteriors are approximate, off by about .* at most"):
        assert np.isfinite(wide.posterior(rows)).all()


# Rows in time.


class TestTemporal:
    problem = simulate(TRUTH.with_noise(Noise.flips(0.1)), 1500, np.random.default_rng(4), persistence=10)

    def test_persistent_sources_are_decoded_better_together(self):
        alone, together = (BICA(temporal=temporal).fit(self.problem.rows) for temporal in (False, True))
        assert together.components_.tolist() == TRUTH.mixing.T.tolist()
        wrong, better = ((found.transform(self.problem.rows) != self.problem.activity).mean()
                         for found in (alone, together))  # fmt: skip
        assert better < wrong / 2
        assert together.persistence_.shape == (3,)
        assert ((together.persistence_ > 5) & (together.persistence_ < 20)).all()
        assert not hasattr(alone, "persistence_")

    def test_a_number_of_slots_is_taken_as_given(self):
        assert BICA(temporal=10).fit(self.problem.rows).persistence_.tolist() == [10, 10, 10]
        with pytest.raises(SettingError, match="persistence"):
            BICA(temporal=0.5).fit(self.problem.rows)

    def test_counts_have_no_order(self):
        with pytest.raises(DataError, match="order of their rows"):
            BICA(temporal=True).fit(PatternCounts.of(self.problem.rows))

    def test_weights_have_no_order(self):
        with pytest.raises(SettingError, match="count once each; leave out sample_weight, or temporal"):
            BICA(temporal=True).fit(self.problem.rows, sample_weight=np.ones(1500))

    @pytest.mark.parametrize("seed", [0, 5])  # two of eight in which sources happen to be on together for long
    def test_the_order_of_rows_drops_lasting_coincidences(self, seed):
        truth = OrMixture(np.eye(5, 3, dtype=bool)[[0, 0, 1, 1, 2]], [0.15, 0.12, 0.1], Noise.flips(0.02))
        rows = simulate(truth, 800, np.random.default_rng(seed), persistence=25).rows
        alone, together = BICA().fit(PatternCounts.of(rows)), BICA(temporal=True).fit(rows)
        before, after, true = (
            set(map(tuple, c.tolist())) for c in (alone.components_, together.components_, truth.mixing.T)
        )
        assert before - true  # what the coincidence looks like
        assert after == true
        names = np.array(together.model_.sensors)
        assert together.diagnostics_["in_time"] == {
            kind: sorted(names[list(column)].tolist() for column in columns)
            for kind, columns in (("added", after - before), ("dropped", before - after))
        }
        assert "in_time" not in alone.diagnostics_

    def test_a_method_without_order_still_decodes_in_time(self):
        assert not hasattr(FindBICA, "fit_in_order")
        given = simulate(TRUTH.with_noise(Noise.flips(0.02)), 1500, np.random.default_rng(4), persistence=10)
        learners = (BICA("findbica", min_probability=0.1, temporal=temporal) for temporal in (False, True))
        alone, together = (learner.fit(given.rows) for learner in learners)
        assert same(alone, together)
        assert "in_time" not in together.diagnostics_
        assert ((together.persistence_ > 5) & (together.persistence_ < 20)).all()
        wrong, better = ((found.transform(given.rows) != given.activity).mean() for found in (alone, together))
        assert better < wrong / 2

    def test_a_prior_cannot_be_used_in_time(self):
        with pytest.raises(SettingError, match="a prior cannot be used when learning in time"):
            BICA(temporal=True, prior=(1.5, 20)).fit(self.problem.rows)

    def test_forbidden_sets_hold_in_time(self):
        found = BICA(temporal=True, forbidden=[("x0", "x1")]).fit(self.problem.rows)
        assert not (found.components_[:, 0] & found.components_[:, 1]).any()

    def test_a_source_that_is_always_on_stays_for_ever(self, tmp_path):
        rows = np.hstack([self.problem.rows, np.ones((1500, 1), dtype=bool)])
        found = BICA(temporal=True).fit(rows)
        assert found.probabilities_[0] == 1
        assert np.isinf(found.persistence_).tolist() == [True, False, False, False]
        assert found.transform(rows)[:, 0].all()
        found.save(tmp_path / "model.json")
        again = BICA.from_model(tmp_path / "model.json", temporal=True)
        np.testing.assert_array_equal(again.persistence_, found.persistence_)
        np.testing.assert_array_equal(again.transform(rows), found.transform(rows))

    def test_persistence_follows_sources_that_a_method_left_unsorted(self):
        found = BICA(GivenInOrder(OrMixture(np.eye(3), [0.1, 0.3, 0.2])), temporal=True).fit(ROWS[:, :3])
        assert found.probabilities_.tolist() == [0.3, 0.2, 0.1]
        assert found.persistence_.tolist() == [3, 2, 1]

    def test_impossible_rows_are_refused(self):
        silent = BICA(noise=0, temporal=10).fit(ROWS)
        with pytest.raises(InfeasibleError, match="rows 1"):
            silent.transform([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])


@pytest.mark.parametrize("method", ["mac", "message-passing", "grecond"])
def test_rivals_are_methods_too(method):
    rows = [[0, 0, 0]] * 30 + [[1, 1, 0]] * 20 + [[0, 1, 1]] * 10 + [[1, 1, 1]] * 5
    learner = BICA(method, n_sources=None if method == "grecond" else 2, random_state=0).fit(rows)
    assert learner.components_.tolist() == [[True, True, False], [False, True, True]]
    assert learner.transform([[1, 1, 1]]).tolist() == [[1, 1]]


def test_a_method_that_cannot_be_told_the_number_of_sources_refuses_it():
    with pytest.raises(SettingError, match="'findbica' has no setting 'n_sources', which is for 'likelihood', 'mac'"):
        BICA("findbica", n_sources=2).fit([[0, 1], [1, 1]])


@pytest.mark.parametrize("n_sources", [1, 2, 3])
def test_the_number_of_sources_may_be_known(n_sources):
    rows = [[0, 0, 0]] * 30 + [[1, 1, 0]] * 20 + [[0, 1, 1]] * 10 + [[1, 1, 1]] * 5 + [[0, 0, 1]] * 3
    assert BICA(n_sources=n_sources).fit(rows).n_sources_ == n_sources


class TestLossyModels:
    MODEL = OrMixture(
        [[1, 0], [1, 1], [1, 1], [0, 1]], [0.2, 0.4], Noise(0.01), [[0.9, 0], [0.5, 1], [0.7, 0.6], [0, 0.8]]
    )
    ROWS = MODEL.sample(300, np.random.default_rng(0))

    def test_everything_that_needs_no_learning_works(self):
        bica = BICA.from_model(self.MODEL)
        assert bica.transform(self.ROWS).shape == (300, 2)
        np.testing.assert_allclose(
            bica.score_samples(self.ROWS),
            np.log(self.MODEL.pattern_probability()[self.ROWS @ [1, 2, 4, 8]]),
            atol=1e-12,
        )
        assert bica.posterior(self.ROWS).shape == (300, 2)
        assert bica.explain(self.ROWS[0]).probability.sum() == pytest.approx(1)
        assert bica.sample(5).shape == (5, 4)
        assert np.array_equal(bica.reach_, self.MODEL.reach.T)

    def test_in_time_too(self):
        found = BICA.from_model(self.MODEL, temporal=10.0).transform(self.ROWS)
        assert (found[1:] != found[:-1]).mean() < (self.ROWS[1:] != self.ROWS[:-1]).mean()


def test_earlier_rows_fade_by_as_much_as_asked():
    rng = np.random.default_rng(3)
    seldom, often = (OrMixture([[1], [1], [0]], [p]).sample(4000, rng) for p in (0.1, 0.5))
    learner = BICA(random_state=0).partial_fit(seldom).partial_fit(often, forget=0.25)
    rows, weights = np.vstack([seldom, often]), np.repeat([0.25, 1.0], 4000)
    assert same(learner, BICA(random_state=0).fit(rows, sample_weight=weights))
    assert learner.model_.probability[0] == pytest.approx(np.average(rows[:, 0], weights=weights), abs=1e-3)
    rare = np.array([[1, 1, 1]])
    faded = BICA(random_state=0).partial_fit(np.vstack([seldom, rare])).partial_fit(often, forget=0.005)
    assert faded._counts_so_far.weights.min() >= 0.01
    for wrong in (0, -1, 1.5):
        with pytest.raises(SettingError, match="forget is"):
            learner.partial_fit(often, forget=wrong)
