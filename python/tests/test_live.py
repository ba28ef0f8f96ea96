"""The page of ``verbose="live"``: it is served while `fit` runs and after it, and its stop button ends the run."""

import json
import re
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

import ocsc
from ocsc import _live

X = np.random.default_rng(0).standard_normal((6, 24, 24))


def model(**more):
    return ocsc.OnlineCSC(n_filters=4, filter_shape=(5, 5), beta_ratio=0.3, random_state=0, threads=1, **more)


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    """Keeps browsers closed."""
    monkeypatch.setattr(_live, "_has_screen", lambda: False)


def address(capsys):
    return re.search(r"live page: (http://127\.0\.0\.1:\d+/)", capsys.readouterr().err).group(1)


def last_frame(url):
    """Returns the first frame that somebody sees who looks now."""
    with urllib.request.urlopen(url + "events", timeout=60) as events:
        for line in events:
            if line.startswith(b"data: ") and b'"about"' in line:
                return json.loads(line[6:])
    raise AssertionError("no frame")


def test_the_page_stays_after_the_run_and_changes_nothing(capsys):
    live, plain = model(verbose="live").fit(X), model().fit(X)
    url = address(capsys)
    assert np.array_equal(live.filters_, plain.filters_)
    frame = last_frame(url)
    assert frame["ended"] == "all passes made"
    assert frame["now"]["samples"] == 6 and frame["filters"]["of"] == 4
    assert frame["samples"][0]["name"].startswith("X[")
    page = urllib.request.urlopen(url, timeout=60).read().decode()
    assert "EventSource" in page
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(url, headers={"Host": "evil.example"}), timeout=60)


def test_stop_ends_the_run_and_fit_returns_what_was_learned(capsys):
    steps = []

    def press(url):
        page = urllib.request.urlopen(url, timeout=60).read().decode()
        token = re.search(r'name="ocsc-token" content="(\w+)"', page).group(1)
        request = urllib.request.Request(url + "stop", method="POST", headers={"X-Ocsc-Token": token})
        urllib.request.urlopen(request, timeout=60)

    def callback(step):
        steps.append(step["step"])
        if step["step"] == 2:
            presser = threading.Thread(target=press, args=(_live.live_page().url,))
            presser.start()
            presser.join()

    fitted = model(verbose="live", passes=1000, callback=callback).fit(X)
    assert fitted.n_steps_ < 20
    assert last_frame(address(capsys))["ended"] == "stopped"
    # The next run is not stopped by it.
    assert model(verbose="live").fit(X).n_steps_ == 6


def test_streams_have_a_page_and_other_words_are_refused(capsys):
    model(verbose="live").fit(iter(X))
    assert last_frame(address(capsys))["now"]["total"] is None
    with pytest.raises(ValueError, match="verbose: expected a number, True, False or 'live', found 'loud'"):
        model(verbose="loud").fit(X)
