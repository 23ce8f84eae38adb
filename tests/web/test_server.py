"""The server, asked as a browser and as an intruder would."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from bica.errors import SettingError
from bica.model.fit import Fit
from bica.web import server
from bica.web.jobs import Job, Jobs
from bica.web.server import HEADERS, make_app
from bica.web.store import Store, bring, explained, shown_file
from tests.web.conftest import MODEL, ORIGIN, PORT, TOKEN

PATHS = ["/", "/api/state", "/api/job", "/static/page.js", "/static/report.js", "/fit/{fit}", "/fit/{fit}/model.json"]
PATHS += ["/table/0123456789ab", "/api/fits/{fit}", "/api/compare?a={fit}&b={fit}", "/nowhere"]
POSTS = ["/api/tables?name=x.csv", "/api/paths", "/api/job", "/api/job/stop", "/api/fits/{fit}/names"]


def finished(client) -> dict:
    """The job of this client, when it is over."""
    for _ in range(600):
        job = client.get("/api/job").json()
        if job["over"]:
            return job
        time.sleep(0.1)
    raise AssertionError("the job does not end")


class TestTheGuard:
    @pytest.mark.parametrize("path", PATHS)
    def test_nothing_is_served_without_the_token(self, stranger, fit_id, path):
        for given in ("", "token=", "token=wrong", f"token={TOKEN}x"):
            answer = stranger.get(path.format(fit=fit_id) + ("&" if "?" in path else "?") + given)
            assert answer.status_code == 403
            assert answer.text == server.HOW_TO_OPEN
            assert "set-cookie" not in answer.headers

    @pytest.mark.parametrize("path", POSTS)
    def test_nothing_is_changed_without_the_token(self, stranger, store, fit_id, path):
        for headers in ({"origin": ORIGIN}, {}):
            answer = stranger.post(path.format(fit=fit_id) + "", content=b"{}", headers=headers)
            assert answer.status_code == 403
        assert store.tables() == []
        assert len(store.fits()) == 1

    @pytest.mark.parametrize("cookie", ["", ".", "abc", "abc.def", f"abc.{TOKEN}", "a" * 5000, "é.é"])
    def test_forged_cookies_are_refused(self, stranger, cookie):
        answer = stranger.get("/api/state", headers={"cookie": f"bica-{PORT}={cookie}".encode()})
        assert answer.status_code == 403

    def test_a_cookie_of_another_server_is_refused(self, client, tmp_path):
        other = make_app(Store(tmp_path / "other"), token="another", port=PORT)
        with TestClient(other, base_url=ORIGIN, cookies=dict(client.cookies)) as stranger:
            assert stranger.get("/api/state").status_code == 403

    @pytest.mark.parametrize(
        "host", ["evil.example", "127.0.0.1", "127.0.0.1:9", f"evil.example:{PORT}", "0.0.0.0", ""]
    )
    def test_other_hosts_are_refused(self, client, host):
        answer = client.get("/api/state", headers={"host": host})
        assert answer.status_code == 421

    def test_both_names_of_this_machine_are_ours(self, client):
        assert client.get("/api/state", headers={"host": f"localhost:{PORT}"}).status_code == 200

    @pytest.mark.parametrize(
        "origin", ["http://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:9"]
    )
    def test_other_origins_are_refused(self, client, store, fit_id, origin):
        assert client.get("/api/state", headers={"origin": origin}).status_code == 403
        for path in POSTS:
            answer = client.post(path.format(fit=fit_id), content=b"{}", headers={"origin": origin})
            assert answer.status_code == 403
        assert client.delete(f"/api/fits/{fit_id}", headers={"origin": origin}).status_code == 403
        assert len(store.fits()) == 1

    def test_changes_need_an_origin(self, client, fit_id):
        del client.headers["origin"]
        assert client.post("/api/job/stop").status_code == 403
        assert client.delete(f"/api/fits/{fit_id}").status_code == 403

    def test_the_token_alone_changes_nothing(self, stranger):
        answer = stranger.post(f"/api/job/stop?token={TOKEN}", headers={"origin": ORIGIN})
        assert answer.status_code == 403

    @pytest.mark.parametrize("path", [*PATHS, "/api/tables/0123456789ab", "/../etc/passwd"])
    def test_every_answer_has_its_headers(self, client, fit_id, path):
        answer = client.get(path.format(fit=fit_id))
        assert HEADERS.items() <= dict(answer.headers).items()

    def test_the_cookie_is_for_us_alone(self, stranger):
        cookie = stranger.get(f"/?token={TOKEN}").headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert TOKEN not in cookie

    def test_a_bug_is_a_sentence_without_a_traceback(self, client, monkeypatch):
        def broken(*_):
            raise ZeroDivisionError("secret")

        monkeypatch.setattr(Store, "fits", broken)
        answer = client.get("/api/state")
        assert answer.status_code == 500
        assert answer.json() == {"error": "this is a bug in bica, not in your data (ZeroDivisionError)"}


TRICKS = ["..%2f..%2fetc%2fpasswd", "about.json", "0123456789AB", "0123456789ab%00", "%2fetc%2fpasswd"]


class TestPathTricks:
    @pytest.mark.parametrize("trick", TRICKS)
    def test_no_address_leads_out_of_the_folder(self, client, fit_id, trick):
        for path in (f"/fit/{trick}/model.json", f"/fit/{fit_id}/{trick}", f"/static/{trick}", f"/api/fits/{trick}"):
            answer = client.get(path)
            assert answer.status_code in (400, 404)
            assert "root:" not in answer.text

    @pytest.mark.parametrize("trick", TRICKS)
    def test_nothing_else_is_removed(self, client, store, fit_id, trick):
        client.delete(f"/api/fits/{trick}")
        client.delete(f"/api/tables/{trick}")
        assert [entry.id for entry in store.fits()] == [fit_id]

    def test_names_of_uploads_lead_nowhere(self, client, store):
        for name in ("../../../evil.csv", "/etc/evil.csv", "..\\evil.csv", "about.json", "a\x00b.csv", "." * 300, ""):
            answer = client.post("/api/tables", params={"name": name}, content=b"a,b\n0,1\n")
            assert answer.status_code == 200
            entry = store.table(answer.json()["table"])
            assert Path(entry.path).parent == store.folder / "tables" / entry.id
        assert all(shown_file(entry.name) == entry.name for entry in store.tables())


class TestBringing:
    def test_a_table_is_uploaded_read_fitted_and_shown(self, client, store, table_file):
        brought = client.post("/api/tables?name=nights.csv", content=table_file.read_bytes()).json()
        began = client.post("/api/job", json={"kind": "read", "table": brought["table"], "reading": {}})
        assert began.json()["state"] == "waiting"
        assert finished(client)["state"] == "done"
        assert client.get(f"/api/tables/{brought['table']}").json()["read"]["n_rows"] == 1500
        client.post("/api/job", json={"kind": "fit", "table": brought["table"], "settings": {}})
        job = finished(client)
        assert job["state"] == "done"
        assert np.array_equal(store.fit(job["result"]["fit"]).model.mixing, MODEL.mixing)
        page = client.get(f"/fit/{job['result']['fit']}").text
        assert "3 sources behind 5 sensors" in page
        assert '<script src="/static/page.js"></script>' in page
        listed = client.get("/api/state").json()
        assert [entry["title"] for entry in listed["fits"]] == ["nights.csv"]
        assert [entry["name"] for entry in listed["tables"]] == ["nights.csv"]

    def test_a_model_is_brought_by_its_path(self, client, tmp_path):
        Fit(MODEL).save(tmp_path / "model.json")
        brought = client.post("/api/paths", json={"path": str(tmp_path / "model.json")}).json()
        assert "3 sources behind 5 sensors" in client.get(f"/fit/{brought['fit']}").text

    def test_a_model_is_uploaded(self, client, store, tmp_path):
        Fit(MODEL).save(tmp_path / "model.json")
        brought = client.post("/api/tables?name=m.json", content=(tmp_path / "model.json").read_bytes()).json()
        assert store.fit(brought["fit"]).model == MODEL
        assert store.tables() == []

    def test_a_damaged_model_is_one_sentence_and_leaves_nothing(self, client, store):
        answer = client.post("/api/tables?name=m.json", content=b'{"schema": "bica-model", "version": 1')
        assert answer.status_code == 400
        assert "\n" not in answer.json()["error"]
        assert (store.tables(), store.fits()) == ([], [])
        assert list((store.folder / "tables").iterdir()) == []

    @pytest.mark.parametrize("path", ["", "/no/such/file.csv", "/etc", "a\x00b", "~nobody/x", 3, None, ["/etc/passwd"]])
    def test_bad_paths_are_one_sentence(self, client, path):
        answer = client.post("/api/paths", json={"path": path})
        assert answer.status_code == 400
        assert answer.json()["error"]

    def test_files_beyond_the_limit_are_refused_with_a_sentence(self, client, store):
        answer = client.post("/api/tables?name=big.csv", content=b"0" * 200_001)
        assert answer.status_code == 413
        assert answer.json()["error"].startswith("files of up to 0.2 MB can be dropped here; give the path")
        assert list((store.folder / "tables").iterdir()) == []

    def test_files_of_unannounced_length_are_refused_as_well(self, client, store):
        answer = client.post("/api/tables?name=big.csv", content=(b"0" * 50_000 for _ in range(5)))
        assert answer.status_code == 413
        assert list((store.folder / "tables").iterdir()) == []

    def test_a_full_folder_is_said(self, client, monkeypatch):
        monkeypatch.setattr(Store, "n_bytes", lambda self: 10**12)
        answer = client.post("/api/tables?name=x.csv", content=b"a\n1\n")
        assert (answer.status_code, "full" in answer.json()["error"]) == (413, True)

    @pytest.mark.parametrize("body", [b"", b"[", b"[]", b"3", b"\xff", b"[" * 100_000, b"{" + b" " * 2_000_000])
    def test_requests_that_are_no_json_are_refused(self, client, body):
        assert client.post("/api/paths", content=body).status_code in (400, 413)


class TestJobs:
    def test_one_at_a_time_for_a_browser(self, client, store, table_file):
        table = store.new_table(table_file, "nights.csv").id
        client.post("/api/job", json={"kind": "read", "table": table})
        second = client.post("/api/job", json={"kind": "read", "table": table})
        assert second.status_code == 409
        assert second.json()["error"].startswith("this browser is busy reading the table")
        finished(client)
        assert client.post("/api/job", json={"kind": "read", "table": table}).status_code == 200
        finished(client)

    def test_another_browser_has_its_own(self, client, store, table_file):
        table = store.new_table(table_file, "nights.csv").id
        client.post("/api/job", json={"kind": "read", "table": table})
        client.cookies.clear()
        client.get(f"/?token={TOKEN}")
        assert client.get("/api/job").json() is None

    def test_stopped_before_it_began(self, client, store, table_file):
        table = store.new_table(table_file, "nights.csv").id
        client.post("/api/job", json={"kind": "fit", "table": table})
        assert client.post("/api/job/stop").json()["stopping"]
        job = finished(client)
        assert job["state"] == "stopped" or job["result"]["interrupted"]

    @pytest.mark.parametrize("task", [{}, {"kind": "rm"}, {"kind": ["fit"]}])
    def test_unknown_jobs_are_refused(self, client, task):
        assert client.post("/api/job", json=task).status_code == 400

    @pytest.mark.parametrize("table", [None, "..", "0123456789ab", 7])
    def test_unknown_tables_end_in_a_sentence(self, client, table):
        client.post("/api/job", json={"kind": "read", "table": table})
        job = finished(client)
        assert job["state"] == "failed"
        assert "bug" not in job["error"]

    def test_a_process_that_dies_is_said(self, client, store, table_file, monkeypatch):
        monkeypatch.setattr("bica.web.jobs.sys.executable", "/bin/false")
        client.post("/api/job", json={"kind": "read", "table": store.new_table(table_file, "nights.csv").id})
        job = finished(client)
        assert job["state"] == "failed"
        assert job["error"].startswith("the process that did this ended by itself")

    def test_progress_is_told(self):
        job = Job("fit", {})
        job.hear({"what": "sources", "done": 3, "total": None})
        assert (job.as_dict()["what"], job.as_dict()["done"], job.as_dict()["over"]) == ("sources", 3, False)

    def test_old_jobs_are_forgotten(self, tmp_path):
        jobs = Jobs(tmp_path)
        for number in range(500):
            jobs.of_browser[str(number)] = Job("read", {}, ended=1.0)
        jobs._forget_old()
        assert len(jobs.of_browser) == 200
        assert "499" in jobs.of_browser


class TestSlowQuestions:
    def test_they_are_given_up_with_a_sentence(self, client, fit_id, monkeypatch):
        monkeypatch.setattr("bica.web.jobs.LONGEST_ANSWER", 0.0)
        answer = client.post(f"/api/fits/{fit_id}/explain", json={"on": [0]})
        assert answer.status_code == 409
        assert answer.json()["error"].startswith("this model is too large to explain")
        monkeypatch.setattr("bica.web.jobs.LONGEST_ANSWER", 60.0)
        assert client.post(f"/api/fits/{fit_id}/explain", json={"on": [0]}).status_code == 200

    def test_a_process_that_dies_is_replaced(self, client, fit_id, monkeypatch):
        with monkeypatch.context() as patched:
            patched.setattr("bica.web.jobs.sys.executable", "/bin/false")
            answer = client.post(f"/api/fits/{fit_id}/explain", json={"on": [0]})
            assert "ended by itself" in answer.json()["error"]
        assert client.post(f"/api/fits/{fit_id}/explain", json={"on": [0]}).status_code == 200


class TestQuestions:
    def test_a_source_is_named_everywhere(self, client, store, fit_id):
        client.get(f"/fit/{fit_id}")
        told = client.post(f"/api/fits/{fit_id}/names", json={"1": " cat "}).json()
        assert told["names"] == ["source1", "cat", "source3"]
        assert store.fit(fit_id).model.names == (None, "cat", None)
        assert '"name":"cat"' in client.get(f"/fit/{fit_id}").text
        assert '"cat"' in client.get(f"/fit/{fit_id}/model.json").text
        assert client.post(f"/api/fits/{fit_id}/names", json={"1": ""}).json()["names"][1] == "source2"

    @pytest.mark.parametrize(
        "names", [{"9": "x"}, {"-1": "x"}, {"a": "x"}, {"0": 3}, {"0": "x" * 300}, {"0": "a", "1": "a"}]
    )
    def test_names_are_checked(self, client, store, fit_id, names):
        assert client.post(f"/api/fits/{fit_id}/names", json=names).status_code == 400
        assert store.fit(fit_id).model.names == (None, None, None)

    def test_an_observation_is_explained(self, client, fit_id):
        told = client.post(f"/api/fits/{fit_id}/explain", json={"on": [3, 4], "unknown": [0]}).json()
        cells = [[None, 0, 0, 1, 1]]
        expected = MODEL.explain(cells[0])
        assert told["explanations"][0]["sources"] == np.flatnonzero(expected.activity[0]).tolist() == [2]
        assert told["explanations"][0]["p"] == pytest.approx(expected.probability[0], rel=1e-5)
        by_source = {each["source"]: each["p"] for each in told["posterior"]}
        exact = MODEL.posterior(cells).probability[0]
        assert [by_source[j] for j in range(3)] == pytest.approx(exact, rel=1e-5)

    def test_the_impossible_has_no_explanation(self, store):
        noiseless = store.keep_fit(Fit(MODEL.with_noise(type(MODEL.noise)())), title="x").id
        assert explained(store, {"fit": noiseless, "on": [3]})["explanations"] == []

    @pytest.mark.parametrize("on", [[5], [-1], ["door"], "door", [True], None, [1.0]])
    def test_observations_are_checked(self, store, fit_id, on):
        with pytest.raises(SettingError, match="by their places"):
            explained(store, {"fit": fit_id, "on": on})

    def test_two_fits_are_compared(self, client, store, fit_id):
        other = store.keep_fit(Fit(MODEL.pick([2, 0])), title="other").id
        told = client.get(f"/api/compare?a={fit_id}&b={other}").json()
        assert told["n_equal"] == 2
        assert [(pair["left"] and pair["left"]["name"], pair["equal"]) for pair in told["pairs"]] == [
            ("source1", True),
            ("source2", False),
            ("source3", True),
        ]
        assert told["pairs"][1]["right"] is None

    def test_fits_of_other_sensors_are_not_compared(self, client, store, fit_id):
        other = store.keep_fit(Fit(MODEL.of_sensors([0, 1])), title="other").id
        assert "different sensors" in client.get(f"/api/compare?a={fit_id}&b={other}").json()["error"]


class TestDownloads:
    def test_the_model(self, client, fit_id):
        answer = client.get(f"/fit/{fit_id}/model.json")
        assert answer.headers["content-disposition"] == 'attachment; filename="nights-model.json"'
        assert json.loads(answer.text)["schema"] == "bica-model"

    def test_the_report_is_one_file_after_its_job(self, client, fit_id):
        assert client.get(f"/fit/{fit_id}/report.html").status_code == 404
        client.post("/api/job", json={"kind": "report", "fit": fit_id})
        assert finished(client)["state"] == "done"
        answer = client.get(f"/fit/{fit_id}/report.html")
        assert answer.headers["content-disposition"] == 'attachment; filename="nights-report.html"'
        assert "/static/" not in answer.text
        assert "<style>" in answer.text

    def test_the_activity_is_there_after_its_job(self, client, store, table_file, fit_id):
        assert client.get(f"/fit/{fit_id}/activity.csv").status_code == 404
        table = store.new_table(table_file, "nights.csv").id
        fit = store.keep_fit(Fit(MODEL), title="nights.csv", table=table, table_name="nights.csv").id
        client.post("/api/job", json={"kind": "activity", "fit": fit})
        assert finished(client)["state"] == "done"
        assert client.get(f"/fit/{fit}/activity.csv").text.startswith("source1,source2,source3\n")

    def test_nothing_else_in_the_folder(self, client, fit_id):
        for name in ("about.json", "report.json"):
            assert client.get(f"/fit/{fit_id}/{name}").status_code == 404


class TestTheStore:
    def test_a_fit_survives_without_its_note(self, store, fit_id):
        (store.home("fits", fit_id) / "about.json").write_text("{broken")
        assert [entry.id for entry in store.fits()] == [fit_id]
        assert store.fit(fit_id).model == MODEL

    def test_fits_are_there_after_a_restart(self, store, fit_id):
        assert [entry.title for entry in Store(store.folder).fits()] == ["nights.csv"]

    def test_forgetting_a_table_leaves_the_users_file(self, store, table_file):
        entry = bring(store, str(table_file))
        store.forget("tables", entry.id)
        assert store.tables() == []
        assert table_file.is_file()
