"""The commands for what is published with rows: a registry entry, and which release rows are of."""

import json
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sdv_privpgd.base.damage import DamagedFileError, undamaged
from sdv_privpgd.base.trees import TREES
from sdv_privpgd.cli.files import kind_read
from sdv_privpgd.cli.models import fitted, require_file
from sdv_privpgd.cli.saying import CommandError, own_errors, say
from sdv_privpgd.cli.writing import Outputs
from sdv_privpgd.fitting.door import FittedTable
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.report.about import KEY, card_path, digest_of_file, in_words, read_card


def registry(arguments: Namespace) -> None:
    """Names the blanks of a model's registry entry, and writes the entry if asked to."""
    out, model = arguments.out, fitted(arguments.model)
    if out is not None and out.suffix.lower() not in TREES:
        raise CommandError(f"--out {out} must end in one of {', '.join(TREES)}.")
    model = of_all_runs(model, arguments.ledger)
    names = ("name", "curators", "region", "use", "authors")
    entry = model.registry_entry(**{name: getattr(arguments, name) for name in names})
    inputs = [arguments.model, arguments.ledger]
    with own_errors(ImportError), Outputs(inputs=inputs, force=arguments.force) as outputs:
        outputs.write(outputs.open("--out", out), entry.save)
    print(entry)


def of_all_runs(model: FittedTable, path: Path | None) -> FittedTable:
    """The model with the ledger of all runs, if it is given; else it says where that is.

    Raises ``CommandError`` for a ledger that lacks what the model has spent.
    """
    if path is None:
        if (told := model.notes.get("ledger_file")) is not None:
            say(f"What other runs spent on these people is in {told[0]}: --ledger counts it in.")
        return model
    with own_errors(DamagedFileError), undamaged(path, "ledger"):
        ledger = read_ledger(path.read_text(encoding="utf-8"))
    own = model.ledger.charges
    starts = range(len(ledger.charges) - len(own) + 1)
    if not any(ledger.charges[start : start + len(own)] == own for start in starts):
        raise CommandError(f"--ledger {path} does not have what the model has spent.")
    return replace(model, ledger=ledger)


def identify(arguments: Namespace) -> None:
    """Says which release a file of rows is from, by its digest or by what it says of itself."""
    rows = arguments.rows
    require_file(rows)
    cards = [each for each in arguments.releases if each.suffix.lower() == ".json"]
    models = [each for each in arguments.releases if each not in cards]
    cards += [beside] if (beside := card_path(rows)).is_file() else []
    with own_errors(DamagedFileError):
        release, said = _release_of(rows, cards)
    ids = {str(path): fitted(path).about_rows()["release"] for path in models}
    print(said)
    own = [path for path, known in ids.items() if known == release]
    if own:
        print(f"The release is that of {', '.join(own)}.")
    elif ids:
        raise CommandError(f"It is the release of none of {', '.join(ids)}.")


def _release_of(rows: Path, cards: Sequence[Path]) -> tuple[str, str]:
    """The release that a file is from, and a sentence. Raises where nobody can tell."""
    digest, kind = digest_of_file(rows), kind_read(rows)
    for facts in map(read_card, cards):
        if facts.get("sha256") == digest:
            return facts["release"], f"{in_words(facts)} The file is as it was written."
    told = "That is what the file says of itself: cells may have been changed since."
    if kind.form == "parquet":
        import pyarrow.parquet

        with undamaged(rows, "Parquet file"):
            facts = json.loads((pyarrow.parquet.read_schema(rows).metadata or {}).get(KEY, "{}"))
        if facts:
            return facts["release"], f"{in_words(facts)} {told}"
    elif kind.form == "text" and kind.compression is None:
        with rows.open("rb") as file:
            line = file.readline(10_000).replace(b"\0", b"").decode(errors="replace")  # of UTF-16
        if found := re.search("# (Synthetic rows of release ([0-9a-f]{32}),.*)", line):
            return found[2], f"{found[1].strip()} {told}"
    tried = [f"It is not the file that {each} describes, or was changed since." for each in cards]
    raise CommandError(
        f"Cannot tell which release {rows} is from: nothing in it says so. "
        f"{' '.join([*tried, 'It may be synthetic, and it may be not.'])}"
    )
