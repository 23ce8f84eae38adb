import json

import numpy as np
import pytest

from bica.applications.spectrum import Field, Propagation, locate, random_field, random_traffic
from bica.applications.spectrum.field import PlacedUsers
from bica.applications.spectrum.survey import Traffic, draw_survey, field_text, read_field
from bica.errors import DataError, SettingError
from bica.model.or_mixture import OrMixture


def test_at_the_radius_the_signal_is_just_at_the_threshold():
    radio = Propagation(power_mw=50, noise_dbm=-90, threshold_db=7, exponent=2.5, reference_loss_db=35)
    received = 10 * np.log10(50) - 35 - 25 * np.log10(radio.radius)
    assert received == pytest.approx(-90 + 7)


def test_without_a_loss_at_one_metre_the_field_is_covered():
    field = random_field(20, np.random.default_rng(1), propagation=Propagation(reference_loss_db=0))
    assert field.reach.all()


def test_nonsense_is_refused():
    with pytest.raises(SettingError, match="above 0"):
        Propagation(power_mw=0)
    with pytest.raises(SettingError, match="pairs"):
        Field([[1, 2, 3]])
    with pytest.raises(SettingError, match="at least one monitor"):
        random_field(3, np.random.default_rng(0), n_monitors=0)
    with pytest.raises(SettingError, match="no reading"):
        random_traffic(3, np.random.default_rng(0), "busy")


class TestFading:
    FIELD = Field(
        [[100, 100], [200, 100], [150, 250]], [[150, 120], [160, 180]], propagation=Propagation(fading_db=6.0)
    )

    def test_half_the_slots_are_heard_at_the_radius_and_fewer_beyond(self):
        radio = Propagation(fading_db=4.0)
        share = radio.heard_share(np.array([0.0, 60.0, radio.radius, 150.0, 2000.0]))
        assert share[2] == pytest.approx(0.5)
        assert (np.diff(share) < 0).all()
        assert share[-1] == 0.0

    def test_the_share_is_that_of_normal_signals_above_the_threshold(self):
        radio, metres, n_draws = Propagation(fading_db=5.0), 100.0, 20_000
        received = 10 * np.log10(radio.power_mw) - radio.reference_loss_db - 10 * radio.exponent * np.log10(metres)
        drawn = received + np.random.default_rng(1).normal(0, 5.0, n_draws) >= radio.noise_dbm + radio.threshold_db
        share = radio.heard_share(np.array([metres]))[0]
        assert abs(drawn.mean() - share) < 4 * np.sqrt(0.25 / n_draws)  # four standard errors

    def test_a_survey_has_lossy_users(self):
        traffic = Traffic(np.array([0.1, 0.2]), np.full(2, 5.0))
        model = draw_survey(self.FIELD, traffic, 50, 0.01, np.random.default_rng(2)).problem.model
        assert model.has_lossy_edges
        np.testing.assert_allclose(model.reach, self.FIELD.heard_share)

    def test_how_often_a_user_is_heard_says_where_it_is(self):
        regions = [locate(self.FIELD, share) for share in self.FIELD.heard_share.T]
        for region, place in zip(regions, self.FIELD.users, strict=True):
            assert region.n_contradictions == 0
            assert np.linalg.norm(region.centre - place) < 40

    def test_fading_is_kept_in_a_file(self, tmp_path):
        path = tmp_path / "field.json"
        path.write_text(field_text(self.FIELD), encoding="utf-8")
        assert read_field(path).propagation == self.FIELD.propagation
        with pytest.raises(SettingError, match="finite numbers"):
            Propagation(fading_db=-1.0)


class TestTraffic:
    def test_rare_users_are_active_in_two_percent_of_the_slots(self):
        traffic = random_traffic(40, np.random.default_rng(2))
        assert 0.005 <= traffic.probability.min() <= traffic.probability.max() <= 0.035
        assert (traffic.stay == 5).all()

    def test_uniform_chances_of_a_change_make_uniform_moves(self):
        traffic = random_traffic(2000, np.random.default_rng(3), "uniform")
        stop = 1 / traffic.stay
        start = stop * traffic.probability / (1 - traffic.probability)
        for chance in (start, stop):  # four standard errors of the mean of a uniform variable
            assert abs(chance.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 2000)


class TestSurvey:
    def test_users_heard_alike_are_one_and_unheard_ones_none(self):
        field = Field([[0, 0], [100, 0]], [[50, 0], [400, 400], [60, 0], [0, 100]])
        traffic = Traffic(np.array([0.1, 0.2, 0.3, 0.4]), np.full(4, 5.0))
        survey = draw_survey(field, traffic, 500, 0.0, np.random.default_rng(4))
        assert survey.members == ((0, 2), (3,))
        np.testing.assert_allclose(survey.problem.model.probability, [1 - 0.9 * 0.7, 0.4])
        alone = traffic.draw(500, np.random.default_rng(4))
        np.testing.assert_array_equal(survey.problem.activity[:, 0], alone[:, 0] | alone[:, 2])
        np.testing.assert_array_equal(
            survey.problem.rows, alone[:, [0]] | alone[:, [2]] | alone[:, [3]] & [True, False]
        )

    def test_a_field_on_which_nobody_is_heard_has_silent_reports(self):
        survey = draw_survey(Field([[0, 0]], [[400, 400]]), random_traffic(1, np.random.default_rng(5)), 50, 0.0,
                             np.random.default_rng(5))  # fmt: skip
        assert survey.problem.model.n_sources == 0
        assert not survey.problem.rows.any()


class TestLocating:
    def test_every_heard_user_is_in_its_region(self):
        field = random_field(30, np.random.default_rng(6))
        for user, heard_by in zip(field.users, field.reach.T, strict=True):
            region = locate(field, heard_by)
            assert region.n_contradictions == 0
            # the grid is 5 m wide, so a point of the region is within half a diagonal unless the region is a sliver
            assert np.linalg.norm(region.points - user, axis=1).min() < 10

    def test_the_region_of_one_monitor_alone_is_its_disc(self):
        field = Field([[250, 250]])
        region = locate(field, np.array([True]))
        radius = field.propagation.radius
        assert region.area == pytest.approx(np.pi * radius**2, rel=0.02)
        assert region.spread == pytest.approx(radius / np.sqrt(2), rel=0.02)  # of a uniform disc

    def test_monitors_too_far_apart_contradict_each_other(self):
        assert locate(Field([[0, 0], [500, 500]]), np.array([True, True])).n_contradictions == 1

    def test_a_busy_place_is_near_a_user_and_a_free_one_is_not(self):
        model = OrMixture([[1], [0]], [0.25], sensors=["m1", "m2"])
        placed = PlacedUsers.of(model, Field([[100, 100], [400, 400]]))
        busy = placed.busy(10)  # lines by rising y
        assert busy[2, 2] > 0.2
        assert busy[9, 9] == 0
        np.testing.assert_allclose(placed.quiet(), [0.75, 1.0])

    def test_an_unknown_monitor_is_named(self):
        with pytest.raises(DataError, match="no monitor 'm7'"):
            PlacedUsers.of(OrMixture([[1]], [0.2], sensors=["m7"]), Field([[0, 0]]))


class TestFiles:
    def test_a_field_returns_from_its_file(self, tmp_path):
        field = random_field(4, np.random.default_rng(7), propagation=Propagation(exponent=2.8))
        (tmp_path / "field.json").write_text(field_text(field, random_traffic(4, np.random.default_rng(8))))
        again = read_field(tmp_path / "field.json")
        assert field_text(again) == field_text(field)
        assert read_field(tmp_path / "field.json", Propagation()).propagation == Propagation()

    def test_monitors_come_from_csv(self, tmp_path):
        (tmp_path / "monitors.csv").write_text("monitor,x,y\nroof,1000,2000\ngate,1100,2000\n")
        field = read_field(tmp_path / "monitors.csv")
        assert field.monitor_names == ("roof", "gate")
        radius = field.propagation.radius
        np.testing.assert_allclose(field.corner, [1000 - radius, 2000 - radius])
        assert locate(field, np.array([True, True])).centre == pytest.approx([1050, 2000], abs=5)

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("field.json", "{}"),
            ("field.json", "[1"),
            ("field.json", json.dumps({"schema": "bica-field", "version": 1})),
            ("field.json", "[" * 100_000),
            ("field.json", json.dumps({"schema": "bica-field", "version": 1, "propagation": []})),
            (
                "field.json",
                '{"schema": "bica-field", "version": 1, "propagation": {"exponent": 1' + "0" * 400 + "}}",
            ),
            ("field.csv", "monitor,x,y\n" + "r" * 200_000 + ",1,2\n"),
            ("field.csv", "monitor,x\nroof,3\n"),
            ("field.csv", "monitor,x,y\nroof,3,north\n"),
            ("field.csv", "monitor,x,y\n"),
        ],
    )
    def test_other_files_are_refused(self, tmp_path, name, content):
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match="is no field"):
            read_field(tmp_path / name)

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            read_field(tmp_path / "nowhere.csv")
