"""Workers: fits in other processes and threads, and threads that sample one fitted object."""

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import quiet
from processes import python_says
from sdv.sampling import Condition
from threadpoolctl import threadpool_info, threadpool_limits
from toy import Joints, questions_of
from visiting import COLUMNS, ORDER, visits

from sdv_privpgd import Categorical, Key, MSTSynthesizer, Numerical, fit_table
from sdv_privpgd.base import one_blas_thread
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.sampling.sampler import MOVING

FITS = """
import multiprocessing, sys, threading
import numpy as np, pandas as pd, torch
from sdv_privpgd import Categorical, Numerical, fit_table

def fit(number):
    torch.ones(2**20).exp()  # enough for threads; no generator, whose lock a fork may find held
    table = pd.DataFrame({"x": np.arange(600) % 7, "g": ["a", "b", "c"] * 200})
    columns = {"x": Numerical(0, 6, decimal_places=0), "g": Categorical(["a", "b", "c"])}
    return len(fit_table(table, columns, epsilon=1.0).sample(number))

if __name__ == "__main__":
    torch.set_num_threads(2)
    fit(1)
    meanwhile = threading.Thread(target=lambda: [fit(1) for _ in range(3)])
    meanwhile.start()
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(*pool.map(fit, (5, 6)))
    meanwhile.join()
"""


@pytest.mark.long
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_process_that_has_fitted_has_workers_that_fit(context, tmp_path):
    script = tmp_path / "fits.py"
    script.write_text(FITS)
    said = python_says(script, context, OMP_NUM_THREADS="2", NUMBA_NUM_THREADS="2")
    assert said.split() == ["5", "6"]


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_linear_algebra_of_a_fit_has_one_thread_and_gives_the_others_back():
    inside = []

    class Engine(Joints):
        def fit(self, domain, measurements, **how):
            inside.append(blas_threads())
            return super().fit(domain, measurements, **how)

    codes = np.random.default_rng(0).integers(0, 2, (100, 3))
    with threadpool_limits(2, user_api="blas"):
        questions_of(codes, Engine())
        assert inside == [{1}]
        assert blas_threads() == {2}


def test_linear_algebra_has_its_threads_again_when_the_last_of_several_is_done():
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread:
            with one_blas_thread:
                pass
            assert blas_threads() == {1}
        with pytest.raises(KeyError), one_blas_thread:
            raise KeyError
        assert blas_threads() == {2}


FORKS_IN_MID_SAMPLE = """
import os, threading
import pandas as pd
from sdv_privpgd import Categorical, fit_table

table = pd.DataFrame({"g": ["a", "b", "c"] * 200})
fitted = fit_table(table, {"g": Categorical(["a", "b", "c"])}, epsilon=1.0, method="privpgd+pgm")
done = threading.Event()

def sample():
    while not done.is_set():
        fitted.sample(50)

others = [threading.Thread(target=sample) for _ in range(3)]
for other in others:
    other.start()
ends = set()
for _ in range(20):
    child = os.fork()
    if not child:
        os._exit(len(fitted.sample(7)))
    ends.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
for other in others:
    other.join()
print(ends)
"""


@pytest.mark.long
def test_a_process_that_is_forked_in_mid_sample_can_sample():
    assert python_says("-c", FORKS_IN_MID_SAMPLE) == "{7}\n"


FORKS_IN_MID_FIT = """
import os, threading, time
import pandas as pd
from numba.core.compiler_lock import global_compiler_lock
from sdv_privpgd import Categorical, fit_table
from sdv_privpgd.fitting.description import Description

table, columns = pd.DataFrame({"g": ["a", "b", "c"] * 200}), {"g": Categorical(["a", "b", "c"])}
fit = lambda: fit_table(table, columns, epsilon=1.0).sample(7)
fit()
parent, inside, schema = os.getpid(), threading.Event(), Description.schema.func

def slow(self):
    if os.getpid() == parent:
        with global_compiler_lock:
            inside.set()
            time.sleep(0.2)
        time.sleep(0.5)
    return schema(self)

Description.schema.func = slow
other = threading.Thread(target=fit)
other.start()
inside.wait()
child = os.fork()
if not child:
    with global_compiler_lock:
        os._exit(len(fit()))
for _ in range(600):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        print(os.waitstatus_to_exitcode(status))
        break
    time.sleep(0.1)
else:
    os.kill(child, 9)
other.join()
"""


@pytest.mark.long
def test_a_process_that_is_forked_in_mid_fit_can_fit():
    """While the parent computes what is kept, and while numba compiles."""
    assert python_says("-c", FORKS_IN_MID_FIT) == "7\n"


COLUMNS_WITH_IDS = {
    "id": {"sdtype": "id", "regex_format": "[A-Z]{2}[0-9]{4}"},
    "number": {"sdtype": "id"},
    "town": {"sdtype": "city"},
    "ward": {"sdtype": "categorical"},
    "age": {"sdtype": "numerical"},
}
DOMAIN = {"ward": Categorical(["A", "B", "C"]), "age": Numerical(0, 9, decimal_places=0)}


@pytest.fixture(scope="module")
def synthesizer():
    metadata = sdv_tables.metadata_of(COLUMNS_WITH_IDS, primary_key="id")
    made = MSTSynthesizer(metadata, 5.0, public_domain=DOMAIN)
    table = pd.DataFrame(
        {
            "id": [f"AA{row:04d}" for row in range(600)],
            "number": range(600),
            "town": "Rome",
            "ward": ["A", "B", "C"] * 200,
            "age": [*range(10)] * 60,
        }
    )
    with quiet():
        made.fit(table, allow_lost=["town"])
    return made


def one_by_one(sample, number):
    return sorted(sample(each).to_csv() for each in range(number))


def at_once(sample, number):
    """The samples of threads that change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            return sorted(each.to_csv() for each in pool.map(sample, range(number)))
    finally:
        sys.setswitchinterval(before)


class TestThreadsThatSample:
    """Whatever the order in which they come, together they get what one thread gets."""

    @pytest.mark.parametrize("engine", ["pgm", "particles"])
    def test_a_fitted_table(self, engine):
        columns = {"x": Numerical(0, 6, decimal_places=0), "g": Categorical(["a", "b", "c"])}
        table = pd.DataFrame({"x": [*range(7)] * 90, "g": ["a", "b", "c"] * 210, "id": range(630)})
        columns["id"] = Key()
        made = fit_table(table, columns, epsilon=1.0, method=PrivPGD(engine=engine))
        fitted, twin = copy.deepcopy(made), copy.deepcopy(made)
        found = at_once(lambda _: fitted.sample(200), 100)
        assert found == one_by_one(lambda _: twin.sample(200), 100)
        assert pickle.dumps(fitted) == pickle.dumps(twin)

    def test_people_in_order_and_two_objects_do_not_share_generators(self, synthesizer):
        fitted = fit_table(visits(800), COLUMNS, 10.0, method="privpgd+pgm", **ORDER)
        twin = copy.deepcopy(fitted)
        found = at_once(lambda _: fitted.sample(70), 60)
        assert found == one_by_one(lambda _: twin.sample(70), 60)
        pair = [copy.deepcopy(synthesizer) for _ in range(2)]
        twin = copy.deepcopy(synthesizer)
        expected = one_by_one(lambda _: twin.sample(30), 20)
        found = at_once(lambda number: pair[number % 2].sample(30), 40)
        assert found == sorted(expected * 2)

    @pytest.mark.parametrize(
        "sample",
        [
            lambda own: own.sample(30),
            lambda own: own.sample(30, batch_size=10),
            lambda own: own.sample_from_conditions([Condition({"ward": "B"}, num_rows=30)]),
            lambda own: own.sample_remaining_columns(pd.DataFrame({"age": [3] * 30})),
        ],
        ids=["rows", "batches", "conditions", "remaining columns"],
    )
    def test_keys_ids_and_conditions(self, synthesizer, sample):
        own, twin = copy.deepcopy(synthesizer), copy.deepcopy(synthesizer)
        found = at_once(lambda _: sample(own), 30)
        assert found == one_by_one(lambda _: sample(twin), 30)
        assert own.sample(1).equals(twin.sample(1))


@pytest.mark.long
def test_no_pickle_and_no_copy_holds_the_lock(synthesizer):
    held = threading.Event()
    done = threading.Event()

    def hold():
        with MOVING:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        copies = copy.deepcopy(synthesizer), pickle.loads(pickle.dumps(synthesizer))
    finally:
        done.set()
        holder.join()
    assert copies[0].sample(3).equals(copies[1].sample(3))
