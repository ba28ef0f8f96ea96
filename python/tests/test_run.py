"""Runs beside Python: callbacks, Ctrl-C, progress, threads, forks."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import require, run_python, smooth

import ocsc
from ocsc import OnlineCSC

SMALL = dict(n_filters=5, filter_shape=(5, 5), beta=0.3)


def test_callbacks_see_every_step_and_may_stop(images):
    steps = []
    model = OnlineCSC(**SMALL, callback=lambda step: steps.append((threading.get_ident(), step))).fit(images)
    assert [step["step"] for _, step in steps] == [1, 2, 3, 4, 5, 6]
    assert {thread for thread, _ in steps} == {threading.get_ident()}, "in the thread that called"
    assert [step["objective"] for _, step in steps] == list(model.history_["objective"])
    assert set(steps[0][1]) == set(ocsc.Step.__annotations__) == set(model.history_.dtype.names)
    for stop in (True, np.True_):
        assert OnlineCSC(**SMALL, callback=lambda step: stop).fit(images).n_steps_ == 1
    assert OnlineCSC(**SMALL, callback=lambda step: False).fit(images).n_steps_ == 6


def test_an_exception_in_a_callback_comes_through_and_leaves_a_usable_estimator(images):
    def callback(step):
        if step["step"] == 3:
            raise LookupError("enough")

    model = OnlineCSC(**SMALL, callback=callback)
    with pytest.raises(LookupError, match="enough"):
        model.fit(images)
    assert model.n_steps_ == 3 and model.transform(images).gap.max() <= 0.01
    model.set_params(callback=None).partial_fit(images)
    assert model.n_steps_ == 9


def test_callbacks_see_what_was_learned_up_to_their_step(images):
    for learn in (OnlineCSC.fit, OnlineCSC.partial_fit):
        seen = []
        model = OnlineCSC(**SMALL)
        look = lambda step: seen.append((model.n_steps_, model.filters_, model.score(images[:2])))  # noqa: E731
        learn(model.set_params(callback=look), images)
        assert [steps for steps, _, _ in seen] == [1, 2, 3, 4, 5, 6]
        assert np.array_equal(seen[-1][1], model.filters_) and not np.array_equal(seen[0][1], seen[1][1])
        assert seen[-1][2] == model.score(images[:2])


def test_an_estimator_that_learns_says_so(images, tmp_path):
    model = OnlineCSC(**SMALL).partial_fit(images[:1])
    for ask in (
        lambda step: model.set_params(callback=None).partial_fit(images),
        lambda step: model.save(tmp_path / "m.safetensors", checkpoint=True),
        lambda step: pickle.dumps(model.set_params(callback=None)),
    ):
        model.set_params(callback=ask)
        with pytest.raises(RuntimeError, match="the estimator is learning"):
            model.partial_fit(images)
    model.set_params(callback=lambda step: model.save(tmp_path / "m.safetensors")).partial_fit(images)
    assert np.array_equal(ocsc.load(tmp_path / "m.safetensors").filters_, model.filters_)


def test_python_goes_on_while_learning():
    X = smooth(40, 96, 96)
    counted, done = [], threading.Event()

    def count():
        while not done.is_set():
            counted.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.perf_counter()
    OnlineCSC(n_filters=30, filter_shape=(9, 9), beta=0.1, threads=1).fit(X)
    end = time.perf_counter()
    done.set()
    thread.join()
    during = [t for t in counted if begin < t < end]
    assert len(during) > 20 * (end - begin), "the interpreter was held"


INTERRUPTED = """
import sys, time, numpy as np, ocsc
X = np.random.default_rng(0).standard_normal((500, int(sys.argv[2]), int(sys.argv[2])))
model = ocsc.OnlineCSC(n_filters=60, filter_shape=(9, 9), beta=0.5, method=sys.argv[1], tol=1e-5)
source = iter(X) if sys.argv[3] == "stream" else X
model.passes = 1 if sys.argv[3] == "stream" else 100
print("ready", flush=True)
try:
    model.fit(source)
except KeyboardInterrupt:
    print("interrupted", time.time(), flush=True)
model.set_params(tol=0.01, passes=1).fit(X[:1, :24, :24])
print("usable", model.transform(X[:1, :24, :24]).gap.max() <= 0.01)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
@pytest.mark.parametrize(
    ("method", "side", "kind"),
    [("ocsc", 64, "array"), ("ocsc", 64, "stream"), ("ocsc-paper", 80, "array"), ("ocsc-paper", 80, "stream")],
)
def test_ctrl_c_stops_within_a_second(method, side, kind):
    # A step of ocsc-paper to this tolerance takes several seconds; it is left behind.
    command = [sys.executable, "-c", INTERRUPTED, method, str(side), kind]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    word, when = out.splitlines()[0].split()
    assert word == "interrupted" and float(when) - sent < 1.0, f"{float(when) - sent:.2f} s"
    assert out.splitlines()[1] == "usable True"


LEFT_BEHIND = """
import sys, time, numpy as np, ocsc
X = np.random.default_rng(0).standard_normal((3, 100, 100))
model = ocsc.OnlineCSC(n_filters=20, filter_shape=(9, 9), beta=0.01, method=sys.argv[1], tol=1e-13, max_iters=10**9)
def interrupted(learn):
    print("ready", flush=True)
    try:
        learn(X)
    except KeyboardInterrupt:
        return True
assert interrupted(model.fit)
begin = time.monotonic()
assert model.n_steps_ == model.n_samples_seen_ == len(model.history_) == 0 and model.filters_.shape == (20, 9, 9)
model.save(sys.argv[2])
assert np.array_equal(ocsc.load(sys.argv[2]).filters_, model.filters_)
model.set_params(tol=0.1).inverse_transform(model.transform(5 * X[:1, :20, :20]))
print(time.monotonic() - begin, flush=True)
for learn in (model.partial_fit, lambda X: model.save(sys.argv[2], checkpoint=True)):
    begin = time.monotonic()
    assert interrupted(learn)
    print(time.monotonic() - begin, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
@pytest.mark.parametrize("method", ["ocdl2", "ocsc-paper"])
def test_a_step_left_behind_keeps_nobody_waiting(method, tmp_path):
    # A step to this tolerance never ends.
    command = [sys.executable, "-c", LEFT_BEHIND, method, tmp_path / "m.safetensors"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def errors():
        # One that still waits for its step would keep us waiting too.
        process.kill()
        return process.stderr.read()

    for _ in range(3):
        assert process.stdout.readline() == "ready\n", errors()
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        seconds = process.stdout.readline()
        assert seconds and float(seconds) < 3.0, f"{seconds} {errors()}"
    assert process.wait(timeout=20) == 0, errors()


def test_what_was_learned_before_ctrl_c_is_kept(images):
    def callback(step):
        if step["step"] == 4:
            signal.raise_signal(signal.SIGINT)

    model = OnlineCSC(**SMALL, callback=callback, passes=1000)
    with pytest.raises(KeyboardInterrupt):
        model.fit(images)
    assert 4 <= model.n_steps_ < 6000 and model.transform(images).gap.max() <= 0.01


def test_the_progress_bar_of_a_terminal(images, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    OnlineCSC(**SMALL, verbose=1).fit(images)
    shown = capsys.readouterr()
    assert shown.out == "" and "6/6" in shown.err and "objective" in shown.err and shown.err.endswith("\n")
    assert shown.err.startswith("\rocsc [") and shown.err.count("\n") == 1
    OnlineCSC(**SMALL, verbose=1).fit(iter(images))
    shown = capsys.readouterr().err
    assert "\rocsc 1 sample " in shown and "\rocsc 6 samples" in shown
    OnlineCSC(**SMALL).fit(images)
    assert capsys.readouterr().err == ""


def test_progress_in_a_file_is_a_line_now_and_then(images, capsys, monkeypatch):
    slowly = lambda step: time.sleep(0.15)  # noqa: E731
    OnlineCSC(**SMALL, verbose=1, callback=slowly).fit(images)
    shown = capsys.readouterr().err
    assert "\r" not in shown and shown.count("\n") == 1 and "6/6" in shown
    monkeypatch.setattr("ocsc._progress.EVERY_IN_FILES", 0.25)
    OnlineCSC(**SMALL, verbose=1, callback=slowly).fit(images)
    lines = capsys.readouterr().err.splitlines()
    assert 3 <= len(lines) <= 5 and "6/6" in lines[-1]


NOTEBOOK = """
import numpy as np, ocsc, time
X = np.random.default_rng(0).standard_normal((12, 24, 24))
model = ocsc.OnlineCSC(n_filters=5, filter_shape=(5, 5), beta=1.5, verbose=1, callback=lambda step: time.sleep(0.15))
_ = model.fit(X)
"""


def test_the_progress_bar_of_a_notebook_is_one_output():
    nbformat, nbclient, _ = require("nbformat"), require("nbclient"), require("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data" and output.data["text/plain"].startswith("ocsc [====")
    assert "12/12" in output.data["text/plain"]


def test_threads_do_not_change_the_result(images):
    one = OnlineCSC(**SMALL, threads=1).fit(images)
    three = OnlineCSC(**SMALL, threads=3).fit(images)
    assert np.array_equal(one.filters_, three.filters_)
    assert np.array_equal(one.transform(images).to_dense(), three.transform(images).to_dense())


def test_estimators_may_be_used_by_many_threads(images):
    found = []
    learn = lambda: found.append(OnlineCSC(**SMALL, threads=1).fit(images).filters_)  # noqa: E731
    threads = [threading.Thread(target=learn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4 and all(np.array_equal(found[0], other) for other in found)


FORKED = """
import os, sys, warnings, multiprocessing, numpy as np, ocsc
warnings.simplefilter("ignore")
X = np.random.default_rng(0).standard_normal((6, 32, 32))
def learn(seed):
    model = ocsc.OnlineCSC(n_filters=5, filter_shape=(5, 5), beta=1.0, random_state=seed, preprocess="lowpass,scale").fit(X)
    return model.filters_.sum() + model.transform(X).objective.sum()
if sys.argv[1] == "after": here = [learn(seed) for seed in range(3)]
pid = os.fork()
if pid == 0:
    learn(0)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
with multiprocessing.get_context("fork").Pool(2) as pool:
    there = pool.map(learn, range(3))
assert there == [learn(seed) for seed in range(3)]
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("when", ["before", "after"])
def test_forks_before_and_after_a_fit(when):
    assert run_python(FORKED, when, timeout=60) == "done\n"
