"""The commands for what is published with rows: a registry entry, and which release rows are of."""

import csv
import json
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sdv_privpgd.base.damage import DamagedFileError, undamaged
from sdv_privpgd.cli.files import kind_read
from sdv_privpgd.cli.models import fitted, require_file
from sdv_privpgd.cli.saying import CommandError, reason, say
from sdv_privpgd.cli.synthesizing import write_as_asked
from sdv_privpgd.cli.writing import Outputs
from sdv_privpgd.fitting.door import FittedTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.report.card import KEY, card_path, digest_of_file, in_words, read_card
from sdv_privpgd.report.registry import ENDINGS


def registry(arguments: Namespace) -> None:
    """Names the blanks of a model's registry entry, and writes the entry if asked to."""
    out = arguments.out
    if out is not None and out.suffix.lower() not in ENDINGS:
        raise CommandError(f"--out {out} must end in one of {', '.join(ENDINGS)}.")
    model = fitted(arguments.model)
    if arguments.ledger is not None:
        model = replace(model, ledger=_whole_ledger(model, arguments.ledger))
    elif "ledger_file" in model.notes:
        say(
            f"What other runs have spent on the same people stands in "
            f"{model.notes['ledger_file'][0]}: --ledger counts it in."
        )
    entry = model.registry_entry(
        name=arguments.name,
        curators=arguments.curator,
        region=arguments.region,
        use=arguments.use,
        authors=arguments.author,
    )
    with Outputs(inputs=[arguments.model, arguments.ledger], force=arguments.force) as outputs:
        try:
            outputs.write(outputs.open("--out", out), entry.save)
        except ImportError as error:
            raise CommandError(str(error)) from None
    print(entry)


def _whole_ledger(model: FittedTable, path: Path) -> PrivacyLedger:
    """The ledger of all runs. Raises ``CommandError`` for one that lacks what a model has spent."""
    try:
        with undamaged(path, "ledger"):
            ledger = read_ledger(path.read_text(encoding="utf-8"))
    except DamagedFileError as error:
        raise CommandError(str(error)) from None
    own = model.ledger.charges
    starts = range(len(ledger.charges) - len(own) + 1)
    if not any(ledger.charges[start : start + len(own)] == own for start in starts):
        raise CommandError(f"--ledger {path} does not have what the model has spent.")
    return ledger


def identify(arguments: Namespace) -> None:
    """Says which release a file of rows is from, by its digest, its marks or its rows."""
    rows = arguments.rows
    require_file(rows)
    kind_read(rows)
    cards = [each for each in arguments.releases if each.suffix.lower() == ".json"]
    models = {each: fitted(each) for each in arguments.releases if each not in cards}
    try:
        facts, is_whole = _found(rows, cards, models)
        ids = {path: model.about_rows()["release"] for path, model in models.items()}
    except (OSError, DamagedFileError) as error:
        said = reason(error) if isinstance(error, OSError) else str(error)
        raise CommandError(f"Cannot tell where {rows} is from: {said}") from None
    print(in_words(facts) if "version" in facts else f"Rows of release {facts['release']}.")
    print(
        "The file is as it was written."
        if is_whole
        else "That is what it says of itself. Cells may have been changed since: nobody can tell."
    )
    own = [str(path) for path, release in ids.items() if release == facts["release"]]
    if own:
        print(f"The release is that of {', '.join(own)}.")
    elif models:
        raise CommandError(f"It is the release of none of {', '.join(map(str, models))}.")


def _found(
    rows: Path, cards: list[Path], models: Mapping[Path, FittedTable]
) -> tuple[Mapping[str, Any], bool]:
    """What is known of a file, and whether it is surely as it was written.

    Raises ``CommandError`` where nobody can tell.
    """
    beside, digest = card_path(rows), digest_of_file(rows)
    cards = [*cards, *([beside] if beside.is_file() else [])]
    for card in cards:
        facts = read_card(card)
        if facts.get("sha256") == digest:
            return facts, True
    for model in models.values():
        if _is_first(rows, model, digest):
            return model.about_rows(), True
    for facts in _marks(rows):
        return facts, False
    other = [f"It is not the file that {each} describes, or was changed since." for each in cards]
    tried = [f"Its rows are not the first ones of {path}, as this writes them." for path in models]
    raise CommandError(
        f"Cannot tell which release {rows} is from: nothing in it says so. "
        f"{' '.join([*other, *tried])} So it may be synthetic, and it may be not."
    )


def _marks(rows: Path) -> Iterator[Mapping[str, Any]]:
    """What a file says of itself: in the metadata of Parquet, or in a first line."""
    kind = kind_read(rows)
    if kind.form == "parquet":
        import pyarrow.parquet

        with undamaged(rows, "Parquet file"):
            metadata = pyarrow.parquet.read_schema(rows).metadata or {}
            if KEY in metadata:
                yield json.loads(metadata[KEY])
    elif kind.form == "text" and kind.compression is None:
        with rows.open("rb") as file:
            line = file.readline(10_000).replace(b"\0", b"")  # of UTF-16
        found = re.search(rb"# Synthetic rows of release ([0-9a-f]{32}),", line)
        if found is not None:
            yield {"release": found[1].decode()}


def _is_first(rows: Path, model: FittedTable, digest: str) -> bool:
    """Whether a file is what a model's first rows are written as. Compressed ones are not."""
    kind = kind_read(rows)
    if kind.form == "excel" or kind.compression is not None:
        return False
    if kind.form == "parquet":
        import pyarrow.parquet

        with undamaged(rows, "Parquet file"):
            number = pyarrow.parquet.read_metadata(rows).num_rows
    else:
        with rows.open(encoding="latin-1", newline="") as file:  # which no byte breaks
            number = sum(1 for _ in csv.reader(file)) - 1
    model.reset_sampling()
    asked = Namespace(out=rows, mark=None)
    with TemporaryDirectory() as folder:
        part = Path(folder, f"again{rows.suffix}")
        written = model.sample(max(number, 0))
        write_as_asked(asked, model.notes, written, model.about_rows(), part)
        return digest_of_file(part) == digest
