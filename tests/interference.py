"""Other tables of the same metadata, and everything that a fit lets out."""

import copy
import datetime
import json
import logging
import pickle
import re
import tempfile
from decimal import Decimal
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import sdv_tables
from made_up import heard

from sdv_privpgd import DomainMismatchError, PrivPGDSynthesizer
from sdv_privpgd.fitting.model_file import NotKeptError


class StoppedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 1, tzinfo=tz)

    @classmethod
    def today(cls):
        return cls(2026, 1, 1)


KNOWN = pd.DataFrame({"ward": ["A", "B", None], "age": [30, 40, 50]})


def observe(synthesizer, data, caplog, capsys, known=KNOWN) -> dict[str, object]:
    """Everything that a fit of a copy of the synthesizer lets out."""
    caplog.clear()
    capsys.readouterr()
    fitted = copy.deepcopy(synthesizer)
    with heard() as caught, caplog.at_level(logging.DEBUG):
        told = [str(check := fitted.check(data))]
        try:
            fitted.fit(data, allow_lost=check.to_dict()["lost"])
        except DomainMismatchError as error:
            told.append(str(error))
            fitted.resume(data)
    bars = capsys.readouterr()
    seen = {
        "pickle": cloudpickle.dumps(fitted),
        "check and stop": told,
        "warnings": [str(warning.message) for warning in caught],
        "log": [(record.name, record.levelname, record.getMessage()) for record in caplog.records],
        "stdout": bars.out,
        "stderr": bars.err,
        "worth a look": fitted.warnings_,
        "domain": fitted.discovered_domain(),
        "report": fitted.privacy_report(),
        "ledger": fitted.ledger.to_json(),
        "noisy tables": fitted.noisy_tables().to_csv(),
        "info": fitted.get_info(),
        "repr": repr(fitted.__dict__.keys()) + repr(fitted.ledger),
        "parameters": repr(fitted.get_parameters()),
        "metadata": fitted.get_metadata().to_dict(),
    }
    sample = fitted.sample(150)
    sample = sample if isinstance(sample, pd.DataFrame) else sample["table"]
    seen["sample"] = sample.to_csv()
    seen["dtypes"] = sample.dtypes.astype(str).to_dict()
    rest = fitted.sample_remaining_columns(known)
    seen["remaining"] = (rest if isinstance(rest, pd.DataFrame) else rest["table"]).to_csv()
    with tempfile.TemporaryDirectory() as folder:
        seen["page"] = fitted.report().save(Path(folder) / "page.html").read_bytes()
    if isinstance(fitted, PrivPGDSynthesizer):
        seen["losses"] = fitted.get_loss_values().to_csv()
    fitted.reset_sampling()  # RDT's used generators hold the operating system's randomness
    seen["pickle after sampling"] = cloudpickle.dumps(fitted)
    return seen


def file_of(fitted) -> bytes | str:
    """What is written of a fitted table, or why nothing is: it holds a function of a user's."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            fitted.save(Path(folder) / "model.zip")
        except NotKeptError as error:
            return str(error)
        return (Path(folder) / "model.zip").read_bytes()


def said_by(error) -> list[str]:
    return [str(error), *getattr(error, "__notes__", [])]


def all_cells_are(code, of=None):
    """Answers that stop a fit: all cells have the code, in tables of so many codes or in all."""

    def noisy(answer, stddev, words):
        if not stddev:
            return answer
        given = np.zeros_like(answer)
        if of in (None, answer.size):
            given.flat[code] = 400
        return given

    return noisy


def bar_into(told):
    """A bar that writes down all that it is shown."""

    def bar(items, stage):
        for number, item in enumerate(items):
            told.append((stage, number, len(items)))
            yield item

    return bar


def let_out(fitted, said=(), told=()):
    """Everything that a fitted table lets out, with what was said while it was fitted."""
    report = fitted.report()
    return {
        "page": re.sub(r"\d{4}-\d\d-\d\d", "a day", report.html()),
        "numbers": report.to_dict() | {"date": "a day"},
        "noisy tables": fitted.noisy_tables().to_csv(),
        "rows": fitted.sample(300).to_csv(),
        "domain": json.dumps(fitted.discovered_domain(), default=str),
        "ledger": fitted.ledger.to_json(),
        "report": fitted.privacy_report(),
        "warnings": [str(each.message) for each in said],
        "told": told,
        "model": pickle.dumps(fitted),
        "file": file_of(fitted),
        "number of rows": fitted.num_rows,
    }


def in_memory(frame, folder):
    return frame


def in_files(frame, folder):
    """The rows in Parquet files of a few rows, which are read in batches."""
    made = Path(tempfile.mkdtemp(dir=folder))
    frame.iloc[: len(frame) // 3].to_parquet(made / "1.parquet")
    frame.iloc[len(frame) // 3 :].to_parquet(made / "2.parquet", row_group_size=91)
    return made


def nasty(table: pd.DataFrame) -> pd.DataFrame:
    """The same columns and number of rows, with everything that a cell can hold."""
    cells = [
        10**400, -(10**400), float("inf"), float("nan"), None, pd.NA, pd.NaT, "CANARY", b"CANARY",
        [1, 2], {"CANARY": 1}, complex(1, 2), datetime.date(9999, 12, 31), object, Decimal("sNaN"),
        pd.Timestamp("2020-05-05", tz="Asia/Tokyo"), datetime.datetime(1, 1, 1), True, "2020-02-30",
    ]  # fmt: skip
    return pd.DataFrame(
        {
            name: pd.Series(
                [cells[(row + shift) % len(cells)] for row in range(len(table))], dtype=object
            )
            for shift, name in enumerate(table.columns)
        }
    )


def other_values(table):
    return sdv_tables.table(len(table), seed=99)


def missing_cells(table):
    return table.mask(np.random.default_rng(1).random(table.shape) < 0.4)


def all_missing(table):
    return table.mask(np.ones(table.shape, dtype=bool))


def other_dtypes(table):
    """Those that cells may choose."""
    return table.astype({"age": "float64", "income": object, "grade": "uint64", "smoker": "int64"})


def other_row_order(table):
    return table.sample(frac=1.0, random_state=3)


def other_column_order(table):
    return table[table.columns[::-1]]


def constant(table):
    return pd.concat([table.iloc[[0]]] * len(table))


def beyond(table):
    """Codes beyond the declared ranges."""
    return table.assign(age=-1, income=999_999.0, seen="1900-01-01")


OTHER_TABLES = [
    other_values, missing_cells, all_missing, other_dtypes, other_row_order, other_column_order,
    constant, nasty, beyond,
]  # fmt: skip


def settings(**changes):
    return {
        "metadata": sdv_tables.metadata(),
        "epsilon": 1.0,
        "public_domain": sdv_tables.PUBLIC_DOMAIN,
        "verbose": True,
        **sdv_tables.SMALL,
        **changes,
    }
