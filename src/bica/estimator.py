"""BICA: the scikit-learn face of it all."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from bica.data.columns import Binarize, numbered
from bica.data.patterns import PatternCounts
from bica.data.rows import Rows, are_names, refuse_other_columns
from bica.errors import BicaWarning, DataError, InfeasibleError, MisfitWarning, SettingError
from bica.methods import DEFAULTS, NoiseSetting, chosen_method, settings_of
from bica.model.fit import Fit, Method
from bica.model.or_mixture import OrMixture
from bica.progress import lines_to, listening

if TYPE_CHECKING:
    import altair

    from bica.estimate.bootstrap import Bootstrap
    from bica.invert.explain import Explanations
    from bica.invert.posterior import LogProbability
    from bica.pipeline import Data, Observed
    from bica.report.page import Report

IF_IN_ORDER = "if they are consecutive slots, learn from their order with temporal=True"
IF_IN_TIME = "if they are in order of time, learn from the earlier and the later ones apart"
AFTER_A_MISFIT = "so do not trust the model before you know why: see diagnostics_['diagnosis'], or `bica check --fit`"


class BICA(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Find the independent hidden sources behind columns of zeros and ones, each column an OR of some of them.

    Nobody has to tell the number of sources, and there may be more of them than columns. ``X`` is an array, a
    sparse matrix, a data frame, a DuckDB relation or the path of a file. A cell that is NaN, null, masked or empty
    was not observed: it is an unknown, not a zero.

    Parameters
    ----------
    method : str or object
        How to learn: "likelihood" (up to some thousand columns), "findbica" (the paper's algorithm), a published rival
        ("mac", "grecond", "message-passing", ...; see ``bica.methods``), or any object with
        ``fit(data, rng) -> Fit``.
    noise : "auto", "estimate", "two-rates", "per-sensor", float or Noise
        How often sensors err: found from the data, as one flip rate ("estimate"), as rates of false alarms and misses
        for all columns ("two-rates") or for each ("per-sensor"), or whichever of these the rows speak for ("auto",
        one flip rate beyond 16 columns); or known, one flip rate (0: never) or rates of false alarms and misses.
    min_probability : float or None
        Rarer sources are dropped; None lets the method decide (FindBICA: 0.02).
    significance : float or None
        FindBICA: the level at which two columns must depend on each other before they may share a source.
    known : sequence of KnownSource, tuple (columns, probability) or mapping
        Sources that are there, with their columns and perhaps their probability, their name and their reach.
    forbidden : sequence of sequences of str
        Columns that no unknown source drives all together; a single name keeps unknown sources away from that column.
    prior : pair of floats or None
        A Beta prior on every probability: (alpha, beta) counts as alpha - 1 rows on and beta - 1 rows off.
    edges : "auto", "sure" or "lossy"
        Whether a source always switches on all its columns ("sure"), or each of them with a probability of its own
        ("lossy", see ``reach_``), or whichever the rows speak for ("auto"; sure edges where the noise or a prior is
        given). What the other kind would have said is in ``diagnostics_["other_edges"]``.
    n_sources : int or None
        How many sources there are, if that is known; rivals such as "mac" or "message-passing" cannot find it out.
    binarize : float, mapping from column to float, or None
        Cells above this threshold are on. Without it, only 0 and 1 can be read.
    temporal : bool or float
        Whether rows are consecutive slots in which sources stay on for a while: then ``fit`` learns from their order,
        if the method can ("likelihood"; others learn without it), and ``transform`` decodes all rows together. A
        number says for how many slots sources stay on, on average, when rows are decoded; True finds that out, source
        by source. Learning from the order takes known sources without their probability, no ``prior`` and no weights.
    time_limit : float or None
        Seconds after which ``fit`` ends with the best model so far and a warning, ``bootstrap`` with the resamples so
        far ("likelihood" only); None: no limit. A fit that needs less is the same as without. ``diagnostics_`` then
        has "interrupted" and "time_limit", and its verdict is not "fits".
    warm_start : bool
        Whether a second fit begins with the sources of the first, also in ``partial_fit`` and after ``from_model``
        ("likelihood" only): where little has changed, it is quicker. Lossy edges are learned anew.
    n_jobs : int or None
        Threads that learn tables of many columns, counted as scikit-learn does: None is one, unless a joblib context
        says otherwise, and -1 is one per core. They change nothing but the time.
    random_state : int, Generator or None
        The source of random numbers, for methods that need them and for ``sample``.
    verbose : bool
        Report progress on standard error.

    Attributes
    ----------
    components_ : bool array (n_sources, n_features)
        Which columns each source switches on; sources by falling probability, then by columns.
    probabilities_, probability_errors_ : float arrays (n_sources,)
        How often each source is on, and the standard error of that; None where the method has none.
    probability_intervals_ : float array (n_sources, 2)
        Where each probability lies with 95 % certainty, symmetric in the log odds; NaN where there is no error.
    support_, edge_support_ : float arrays (n_sources,), (n_sources, n_features), or None
        How probable it is that a source is exactly right, and that it reaches each of its columns, given the rows: in
        the long run eight of ten sources with a support of 0.8 are true. None where that is not known: where there is
        doubt beyond 12 columns, with lossy edges, with a ``prior``, in time, and for other methods.
    reach_ : float array (n_sources, n_features)
        How often an active source switches each column on: 0 where it does not reach it, 1 where edges are sure.
    noise_ : Noise
        How often sensors err.
    persistence_ : float array (n_sources,)
        For how many rows each source stays on, on average, and infinity where it is always on; only with ``temporal``.
    n_sources_, n_iter_ : int
        How many sources were found, in how many steps.
    log_likelihood_ : float or None
        Of all rows under the model; None where too many columns are connected to compute it.
    model_, fit_, diagnostics_ : OrMixture, Fit, dict
        The model as a value, with how it was found, and what the method noted on the way. Under "diagnosis" there is
        a verdict ("fits", "too few rows", "doubtful" or "misfit") with its reasons and all that led to it; a misfit
        also warns. Under "in_time", if the rows were learned in their order, what the order changed: the sources
        "added" and "dropped", each as the list of its columns, in comparison with the same rows without order.
    n_features_in_, feature_names_in_ : int, array of str
        The columns of ``fit``; names only if the table had any.

    Examples
    --------
    Two sensors; one source reaches the first, another one both.

    >>> rows = [[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50
    >>> bica = BICA().fit(rows)
    >>> bica.components_.astype(int)
    array([[1, 1],
           [1, 0]])
    >>> bica.probabilities_.round(3)
    array([0.5, 0.2])
    >>> bica.transform([[1, 1], [1, 0], [0, 0]])
    array([[1, 0],
           [0, 1],
           [0, 0]], dtype=int8)
    """

    def __init__(
        self,
        method: str | Method = "likelihood",
        *,
        noise: NoiseSetting = "auto",
        min_probability: float | None = None,
        significance: float | None = 0.05,
        known: Sequence[Any] = (),
        forbidden: Sequence[str | Sequence[str]] = (),
        prior: tuple[float, float] | None = None,
        edges: Literal["auto", "sure", "lossy"] = "auto",
        n_sources: int | None = None,
        binarize: Binarize = None,
        temporal: bool | float = False,
        time_limit: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.noise = noise
        self.min_probability = min_probability
        self.significance = significance
        self.known = known
        self.forbidden = forbidden
        self.prior = prior
        self.edges = edges
        self.n_sources = n_sources
        self.binarize = binarize
        self.temporal = temporal
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the sources behind the rows of ``X``; a row of weight 2 counts as two rows.

        A ``MisfitWarning`` says if the rows contradict what was learned, or if consecutive rows are alike: then errors,
        evidence and the verdict go by the number of independent rows that tell as much. Ctrl-C ends the search early: a
        warning says so, and ``fit_.converged`` is False.
        """
        with self._reporting():
            if self.temporal is False:
                return self._learn(self._observed(X, sample_weight))
            if sample_weight is not None:
                raise SettingError("consecutive rows count once each; leave out sample_weight, or temporal")
            rows = self._rows(X, first=True)
            return self._learn(rows)._set_persistence(rows)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, forget: float | None = None
    ) -> Self:
        """Learn from these rows and all earlier ones together; the distinct ones are kept with their counts.

        The result is that of one ``fit`` on all rows, and each call takes the time of such a fit. With ``forget``, a
        number up to 1, earlier rows count so many times less in every call: 0.9 halves them in seven calls, so that
        a model follows a world that changes. Rows that have faded are dropped, and sources keep their names. For how
        long sources stay on (``temporal``) is found from the last call's rows alone; sources are learned without order.

        >>> old, new = [[0, 0], [1, 1]] * 200, [[0, 0], [1, 0]] * 200
        >>> bica = BICA(random_state=0).partial_fit(old).partial_fit(new, forget=0.001)
        >>> bica.components_.astype(int).tolist()
        [[1, 0]]
        """
        if forget is not None and not 0 < forget <= 1:
            raise SettingError(f"forget is {forget!r}; it can be a number above 0 and up to 1, or None")
        if hasattr(self, "model_"):
            self._check_rows_known("partial_fit")
        first = not hasattr(self, "_counts_so_far")
        with self._reporting():
            counts = self._counts(X, sample_weight, first=first)
            self._learn(counts if first else _faded(self._counts_so_far.counts(), forget) + counts)
            return self if self.temporal is False else self._set_persistence(self._rows(X, first=False))

    @classmethod
    def from_model(cls, model: OrMixture | Fit | str | PathLike[str], **settings: Any) -> Self:
        """A fitted estimator of a model, a fit or a model file, whose sources keep their order.

        It does all that needs no rows to learn from; ``settings`` are those of ``BICA``. With ``temporal=True`` and a
        model that does not say for how long sources stay on, ``transform`` finds that out from its own rows.

        >>> bica = BICA.from_model(OrMixture([[1, 1], [0, 1]], [0.2, 0.5]))
        >>> bica.transform([[1, 0], [1, 1]])
        array([[1, 0],
               [0, 1]], dtype=int8)
        """
        if isinstance(model, str | PathLike):
            model = Fit.load(Path(model))
        if not isinstance(model, OrMixture | Fit):
            raise SettingError(f"{model!r} is no model; give an OrMixture, a Fit or the path of a model file")
        learner = cls(**settings)._set_fit(model if isinstance(model, Fit) else Fit(model))
        learner._check_columns(learner.model_.sensors, first=True)
        return learner if learner.temporal is False else learner._set_persistence(None)

    def bootstrap(self, n_resamples: int = 100, *, n_jobs: int | None = None) -> Bootstrap:
        """Learn again from resampled rows: how often each source and edge returns, and how far probabilities vary.

        Takes the time of ``n_resamples`` fits; Ctrl-C keeps those done so far. Nothing in the estimator changes.
        ``n_jobs`` threads share the work; None: as many as the estimator's own ``n_jobs`` asks for.

        >>> found = BICA(random_state=0).fit([[0, 0]] * 400 + [[1, 0]] * 100 + [[1, 1]] * 500).bootstrap(20)
        >>> found.support
        array([1., 1.])
        """
        from bica.estimate.bootstrap import bootstrap  # here and below: what learns or decodes is loaded when it does

        check_is_fitted(self)
        self._check_rows_known("bootstrap")
        jobs = self.n_jobs if n_jobs is None else n_jobs
        with self._reporting():
            rng = _generator(self.random_state)
            return bootstrap(self._method(), self._counts_so_far.counts(), self.fit_, n_resamples, rng, n_jobs=jobs)

    def transform(self, X: Any) -> NDArray[np.int8]:
        """The most probable activity of the sources in each row, as 0 and 1: (n_samples, n_sources).

        Missing cells may be anything. Rows that no set of sources can produce are refused; with noise there are none.
        A warning counts the rows whose search was cut short, so that a more probable activity may exist.
        With ``temporal`` it is the most probable course through all rows, in their order: exact for every part of the
        model of up to 12 sources, beyond that one which no change of a few sources makes likelier.
        """
        from bica.invert.decode import impossible, unproven

        check_is_fitted(self)
        with self._reporting():
            rows = self._rows(X)
            if self.temporal is not False:
                return self._in_time(rows).view(np.int8)
            found = self.model_.decode(rows)
        if not found.feasible.all():
            raise InfeasibleError(impossible(found))
        if not found.proven.all():
            warnings.warn(unproven(found), BicaWarning, stacklevel=2)
        return found.activity.view(np.int8)

    def posterior(self, X: Any) -> NDArray[np.float64]:
        """The probability that each source was on, given the row: (n_samples, n_sources).

        Exact for models of moderate size; a warning says where it is not, and how far off it may be. The error of every
        cell is in ``model_.posterior(X)``. NaN, with a warning, where no set of sources can produce the row.

        >>> bica = BICA().fit([[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50)
        >>> bica.posterior([[1, 1], [1, 0]]).round(3)
        array([[1. , 0.2],
               [0. , 1. ]])
        """
        from bica.invert.posterior import approximate

        check_is_fitted(self)
        with self._reporting():
            found = self.model_.posterior(self._rows(X))
        if not found.exact.all():
            warnings.warn(approximate(found), BicaWarning, stacklevel=2)
        return found.probability

    def explain(self, row: Any, k: int = 5) -> Explanations:
        """Find the ``k`` most probable sets of active sources behind one row, with their probabilities.

        The row is its cells in order or by name (a mapping, a pandas series), or a table of one row.

        >>> bica = BICA().fit([[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50)
        >>> found = bica.explain([1, 1], k=2)
        >>> found.activity.astype(int), found.probability.round(3)
        (array([[1, 0],
               [1, 1]]), array([0.8, 0.2]))
        """
        check_is_fitted(self)
        with self._reporting():
            return self.model_.explain(Rows.of_one(row, binarize=self.binarize), k=k)

    def inverse_transform(self, Y: ArrayLike) -> NDArray[np.int8]:
        """Show what noise-free sensors would show of the activities ``Y`` (n_samples, n_sources)."""
        check_is_fitted(self)
        activity = check_array(Y, ensure_min_samples=0, ensure_min_features=0)
        if activity.shape[1] != self.n_sources_:
            raise DataError(f"Y has {activity.shape[1]} columns, but the model has {self.n_sources_} sources")
        if not np.isin(activity, (0, 1)).all():
            raise DataError("Y may hold 0 and 1 only: which sources were on")
        return self.model_.observe(activity.astype(bool)).view(np.int8)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """The log of the probability of each row under the model; minus infinity where a row is impossible.

        Where too many columns are connected to sum over all activities, it is a lower bound, and a warning says so.
        """
        from bica.invert.posterior import log_probability

        check_is_fitted(self)
        with self._reporting():
            rows = self._rows(X)
            return _with_warning(log_probability(self.model_, rows.words, rows.observed))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of a row; a lower bound in the cases that ``score_samples`` names."""
        from bica.invert.posterior import log_probability

        check_is_fitted(self)
        with self._reporting():
            counts = self._counts(X, None, first=False)
            by_row = _with_warning(log_probability(self.model_, counts.patterns, counts.observed_cells()))
        return float(counts.weights @ by_row) / counts.n_samples

    def sample(self, n_samples: int = 1) -> NDArray[np.int8]:
        """Rows as the model would produce them, noise included: (n_samples, n_features)."""
        check_is_fitted(self)
        return self.model_.sample(n_samples, _generator(self.random_state)).view(np.int8)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """The names of the sources, for the columns of ``transform``; ``input_features`` changes nothing."""
        check_is_fitted(self)
        return np.array(self.model_.source_names(), dtype=object)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model file, which ``bica.load`` reads."""
        check_is_fitted(self)
        self.fit_.save(path, overwrite=overwrite)

    def name_sources(self, names: Mapping[str, str | None]) -> Self:
        """Name sources by ``source3``, id or present name; later fits keep names where sensors are nearly the same.

        >>> bica = BICA().fit([[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50).name_sources({"source2": "printer"})
        >>> bica.get_feature_names_out()
        array(['source1', 'printer'], dtype=object)
        """
        check_is_fitted(self)
        return self._set_fit(self.fit_.named(names))

    def report(self, X: Any = None, **settings: Any) -> Report:
        """A report to send: one HTML file. Without ``X`` it compares the model with the rows that it was learned from.

        ``settings`` are those of ``OrMixture.report``; ``.save("report.html")`` of what is returned writes the file.

        >>> page = BICA().fit([[0, 0]] * 40 + [[1, 0]] * 10 + [[1, 1]] * 50).report()
        >>> "The model fits" in page.html
        True
        """
        from bica.report import report_of

        table = getattr(self, "_counts_so_far", None) if X is None else X
        binarize = None if X is None else self.binarize
        return report_of(self._fitted(), table, **{"binarize": binarize, **settings})

    def plot_matrix(self) -> altair.HConcatChart:
        """The sources and their columns, as a chart (needs "bica[report]")."""
        return self._fitted().model.plot_matrix()

    def plot_network(self, near: str | None = None) -> altair.LayerChart:
        """Sources on the left, the columns that they reach on the right; ``near`` draws one with its neighbours."""
        return self._fitted().model.plot_network(near)

    def plot_patterns(self, X: Any = None) -> altair.HConcatChart:
        """The most frequent patterns, observed and expected; without ``X`` those of the rows learned from."""
        fit = self._fitted()
        return fit.model.plot_patterns(self._counts_so_far if X is None else self._counts(X, None, first=False))

    def plot_activity(self, X: Any, times: Sequence[Any] | None = None) -> altair.LayerChart:
        """How often each source was active over time, or from row to row (needs "bica[report]")."""
        return self._fitted().model.plot_activity(self._rows(X), times)

    def _repr_html_(self) -> str:
        if not hasattr(self, "fit_"):
            return str(super()._repr_html_())
        return self.fit_._repr_html_()

    def _repr_mimebundle_(self, **settings: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _fitted(self) -> Fit:
        check_is_fitted(self)
        return self.fit_

    def _learn(self, data: Data | Observed) -> Self:
        """Learn; warnings say if consecutive rows are alike, if they change on the way, or if no model fits them."""
        from bica.pipeline import learn

        learned = learn(data, self._method(), _generator(self.random_state))
        self._counts_so_far = learned.counts
        self._set_fit(learned.fit.with_names_of(self.fit_) if hasattr(self, "fit_") else learned.fit)
        if isinstance(learned.counts, PatternCounts) and self.temporal is False:
            for found, advice in ((learned.order.persistence, IF_IN_ORDER), (learned.order.trend, IF_IN_TIME)):
                if found is not None:
                    warnings.warn(f"{found.words()}; {advice}", MisfitWarning, stacklevel=3)
        if learned.diagnosis.verdict == "misfit":
            warnings.warn(f"{learned.diagnosis.reasons[0]}; {AFTER_A_MISFIT}", MisfitWarning, stacklevel=3)
        return self

    def _set_fit(self, fit: Fit) -> Self:
        self.fit_, self.model_ = fit, fit.model
        self.components_ = fit.model.mixing.T
        self.n_sources_ = fit.model.n_sources
        self.probabilities_ = fit.model.probability
        self.probability_errors_ = fit.probability_error
        self.probability_intervals_ = fit.interval()
        self.support_ = fit.support
        self.edge_support_ = None if fit.edge_support is None else fit.edge_support.T
        self.reach_ = fit.model.reach.T
        self.noise_ = fit.model.noise
        self.log_likelihood_ = fit.log_likelihood
        self.n_iter_ = fit.n_iter
        self.diagnostics_ = dict(fit.diagnostics)
        self.__dict__.pop("persistence_", None)  # of an earlier fit
        return self

    def _check_rows_known(self, what: str) -> None:
        if not hasattr(self, "_counts_so_far"):
            raise DataError(f"{what} needs the rows that the model was learned from, which are not in it; use fit")

    def _in_time(self, rows: Rows) -> NDArray[np.bool_]:
        from bica.invert.decode import impossible
        from bica.invert.temporal.decode import decode_in_time

        stays = getattr(self, "persistence_", "estimate")
        found = decode_in_time(self.model_, rows.words, rows.observed, persistence=stays)
        if not found.feasible.all():
            raise InfeasibleError(impossible(self.model_.decode(rows)))
        return found.activity

    def _set_persistence(self, rows: Rows | None) -> Self:
        """For how long sources stay on: as given, as learned with them, or else from the rows where there are any."""
        from bica.invert.temporal.chains import checked_persistence
        from bica.invert.temporal.decode import learn_persistence

        stays = self.fit_.persistence()
        if self.temporal is not True:
            stays = checked_persistence(self.temporal, self.model_.probability)
        elif stays is None and rows is not None:
            stays = learn_persistence(self.model_, rows.words, rows.observed)
        if stays is not None:
            self.persistence_ = stays
        return self

    def _method(self) -> Method:
        given = {name: getattr(self, name) for name in DEFAULTS if name != "start"}
        if self.warm_start and isinstance(self.method, str) and "start" not in settings_of(self.method):
            raise SettingError(f"method {self.method!r} cannot start from an earlier model; leave out warm_start")
        given["start"] = self.fit_.model if self.warm_start and hasattr(self, "fit_") else None
        return chosen_method(self.method, self.n_jobs, **given)

    def _observed(self, X: Any, sample_weight: ArrayLike | None) -> Observed:
        """The table to learn from: counted, or by its sums where it is large or lies on a cluster."""
        from bica.pipeline import Observed, observe

        if isinstance(X, PatternCounts):
            return Observed(self._counts(X, sample_weight, first=True))
        rows, sensors = self._checked(X, first=True)
        found = observe(rows, sensors=sensors, sample_weight=sample_weight, binarize=self.binarize)
        self._check_columns(found.data.sensors, first=True)
        return found

    def _counts(self, X: Any, sample_weight: ArrayLike | None, *, first: bool) -> PatternCounts:
        if isinstance(X, PatternCounts) and (sample_weight is not None or self.binarize is not None):
            raise SettingError("PatternCounts are binary and weighted already; leave out sample_weight and binarize")
        rows, sensors = self._checked(X, first=first)
        counts = PatternCounts.of(rows, sensors=sensors, sample_weight=sample_weight, binarize=self.binarize)
        self._check_columns(counts.sensors, first=first)
        return counts

    def _rows(self, X: Any, *, first: bool = False) -> Rows:
        """The rows of a table in their order; those of the first one must not be none."""
        from bica.pipeline import read_in_order

        table, sensors = self._checked(X, first=first)
        rows = (read_in_order if first else Rows.of)(table, sensors=sensors, binarize=self.binarize)
        self._check_columns(rows.sensors, first=first)
        return rows

    def _checked(self, X: Any, *, first: bool) -> tuple[Any, tuple[str, ...] | None]:
        """An array as scikit-learn wants it, with the names of its columns; any other table as it is."""
        if not _is_array(X):
            return X, None
        array = validate_data(self, X, reset=first, accept_sparse="csr", ensure_all_finite="allow-nan")
        return array, tuple(getattr(self, "feature_names_in_", numbered(array.shape[1])))

    def _check_columns(self, sensors: tuple[str, ...], *, first: bool) -> None:
        """Remember the columns of the first table; later ones must have the same. Mere numbers are no names."""
        if first:
            self.n_features_in_ = len(sensors)
            self.__dict__.pop("feature_names_in_", None)
            if are_names(sensors):
                self.feature_names_in_ = np.array(sensors, dtype=object)
        refuse_other_columns(sensors, tuple(getattr(self, "feature_names_in_", numbered(self.n_features_in_))))

    def _reporting(self) -> AbstractContextManager[None]:
        return listening(lines_to(sys.stderr)) if self.verbose else nullcontext()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.method == "likelihood"  # FindBICA cannot learn from rows with gaps
        tags.transformer_tags.preserves_dtype = []
        return tags


FADED = 0.01  # of a row: distinct rows that count for less are dropped


def _faded(counts: PatternCounts, forget: float | None) -> PatternCounts:
    """Earlier rows, which count ``forget`` times as much as before."""
    if forget is None or forget == 1:
        return counts
    weights = counts.weights * forget
    kept = weights >= FADED
    observed = None if counts.observed is None else counts.observed[kept]
    return PatternCounts(counts.patterns[kept], weights[kept], counts.sensors, observed)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def _is_array(X: Any) -> bool:
    """Arrays, nested lists and sparse matrices; a masked array says itself which cells are missing."""
    if isinstance(X, np.ma.MaskedArray):
        return False
    return isinstance(X, list | tuple) or issparse(X) or (hasattr(X, "__array__") and not hasattr(X, "columns"))


def _with_warning(found: LogProbability) -> NDArray[np.float64]:
    from bica.invert.posterior import lower_bounds

    if not found.exact.all():
        warnings.warn(lower_bounds(found), BicaWarning, stacklevel=3)
    return found.value
