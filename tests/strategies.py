"""Random values of the package's types, for property tests."""

import numpy as np
from hypothesis import strategies as st

from bica.model.noise import Noise
from bica.model.or_mixture import OrMixture

probabilities = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
# the awkward ones come up more often than chance would have them
texts = st.one_of(
    st.text(max_size=6),
    st.text(st.sampled_from("\\\"'\r\n\t\x00\x1f\x7f\u2028\x85,;&<>=#\U0001f600 "), max_size=6),
    st.sampled_from(["=1+1", "source1", "source2", "sensor1", "-", "]]>", "&amp;", "\\N", "null", "ünï"]),
).filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text))


any_rates = st.floats(0, 0.49)
# 0, 1 and what is well apart from both: a chance is then exactly 0 or far above rounding
clear_probabilities = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.05, 0.95))
clear_rates = st.one_of(st.just(0.0), st.floats(0.02, 0.45))


@st.composite
def noises(draw, n_sensors, rates):
    rate = st.one_of(st.just(0.0), rates, st.lists(rates, min_size=n_sensors, max_size=n_sensors))
    return Noise(draw(rate), draw(rate))


@st.composite
def models(draw, min_sensors=0, max_sensors=5, max_sources=6, chances=probabilities, rates=any_rates):
    """Any model: twins and empty columns may be in what it is built from, names may be strange."""
    n_sensors = draw(st.integers(min_sensors, max_sensors))
    n_sources = draw(st.integers(0, max_sources))
    cells = draw(st.lists(st.booleans(), min_size=n_sensors * n_sources, max_size=n_sensors * n_sources))
    named = draw(st.lists(texts, min_size=n_sensors, max_size=n_sensors, unique=True))
    names = draw(st.lists(st.one_of(st.none(), texts), min_size=n_sources, max_size=n_sources))
    return OrMixture(
        np.array(cells, dtype=bool).reshape(n_sensors, n_sources),
        draw(st.lists(chances, min_size=n_sources, max_size=n_sources)),
        draw(noises(n_sensors, rates)),
        sensors=draw(st.sampled_from([named, None])),
        names=names,
    )


@st.composite
def lossy_models(draw, min_sensors=0, max_sensors=5, max_sources=4, chances=probabilities, rates=any_rates):
    """Models whose edges may fail; some have sure edges only."""
    model = draw(models(min_sensors, max_sensors, max_sources, chances, rates))
    edge = st.one_of(st.just(1.0), st.floats(0.05, 1))
    n_edges = int(model.mixing.sum())
    reach = np.zeros(model.mixing.shape)
    reach[model.mixing] = draw(st.lists(edge, min_size=n_edges, max_size=n_edges))
    return OrMixture(model.mixing, model.probability, model.noise, reach, sensors=model.sensors, names=model.names)


def sources_of(model):
    """The sources of a model as the slow twins take them: the bit set of the sensors, and the probability."""
    sets = [sum(1 << i for i, on in enumerate(column) if on) for column in model.mixing.T.tolist()]
    return list(zip(sets, model.probability.tolist(), strict=True))


@st.composite
def binary_tables(draw, max_rows=6, max_columns=6):
    """Lists of rows of False and True, at least one cell."""
    n_rows, n_columns = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    return draw(
        st.lists(st.lists(st.booleans(), min_size=n_columns, max_size=n_columns), min_size=n_rows, max_size=n_rows)
    )
