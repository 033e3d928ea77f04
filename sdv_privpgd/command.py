"""The command line: a file of rows in, a file of synthetic rows out.

    sdv-privpgd synthesize table.csv --epsilon 1 --out synthetic.csv --report report.html
    sdv-privpgd describe model.pkl

Errors are one line and never hold a value of the table: what other libraries say of its cells is
left out. Exit status 0 is success, 1 a failure, 2 a wrong command line.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from sdv.metadata import Metadata

    from sdv_privpgd._lifecycle import PrivateSynthesizer

_PARQUET = (".parquet", ".pq")
_TABLE = "table"


class _CommandError(Exception):
    """What is said to the user, in one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line and returns the exit status."""
    parsed = _parser().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _say_warning
        try:
            parsed.run(parsed)
        except _CommandError as error:
            print(f"sdv-privpgd: {error}", file=sys.stderr)
            return 1
        except BrokenPipeError:  # whoever reads has read enough
            sys.stdout = None
        except KeyboardInterrupt:
            print("sdv-privpgd: interrupted", file=sys.stderr)
            return 1
        except Exception as error:  # noqa: BLE001 - its text may hold a value of the table
            kind = type(error).__name__
            print(f"sdv-privpgd: failed with {kind}; its text is withheld.", file=sys.stderr)
            return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sdv-privpgd", description="Differentially private synthetic tables."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    synthesize = commands.add_parser("synthesize", help="fit a table and write synthetic rows")
    synthesize.add_argument("table", type=Path, help="CSV or Parquet, compressed or not")
    synthesize.add_argument("--epsilon", type=float, required=True, help="what may be spent")
    synthesize.add_argument("--delta", type=float, default=1e-5)
    synthesize.add_argument("--out", type=Path, help="CSV or Parquet; needed but for --dry-run")
    synthesize.add_argument(
        "--metadata", type=Path, help="SDV's metadata, JSON; types are detected where it is missing"
    )
    synthesize.add_argument(
        "--domain", type=Path, help="the public domain, JSON: column to facts; see public_domain"
    )
    synthesize.add_argument(
        "--public-metadata", action="store_true", help="ranges in the metadata are public"
    )
    synthesize.add_argument("--method", choices=["privpgd", "mst", "aim"], default="privpgd")
    synthesize.add_argument("--rows", type=int, help="synthetic rows; as many as the table has")
    synthesize.add_argument(
        "--adjacency", choices=["replace_one", "add_remove"], default="replace_one"
    )
    synthesize.add_argument("--rows-per-person", type=int, default=1)
    synthesize.add_argument("--discovery-share", type=float, default=0.05)
    synthesize.add_argument("--seed", type=int, default=0, help="of the engine, not of the noise")
    synthesize.add_argument("--report", type=Path, help="write the public page")
    synthesize.add_argument("--model", type=Path, help="keep the fitted synthesizer")
    synthesize.add_argument(
        "--dry-run", action="store_true", help="say what would be asked of --rows rows; read none"
    )
    synthesize.add_argument("--quiet", action="store_true", help="no bars and no report")
    synthesize.set_defaults(run=_synthesize)
    describe = commands.add_parser("describe", help="what a kept synthesizer is and has spent")
    describe.add_argument("model", type=Path)
    describe.set_defaults(run=_describe)
    return parser


def _synthesize(arguments: argparse.Namespace) -> None:
    if arguments.dry_run:
        if arguments.metadata is None or arguments.rows is None:
            raise _CommandError("--dry-run needs --metadata and --rows: it reads no table.")
        print(_synthesizer(arguments, _metadata(arguments.metadata, None)).plan(arguments.rows))
        return
    if arguments.out is None:
        raise _CommandError("--out is needed.")
    if arguments.rows is None and arguments.adjacency == "add_remove":
        raise _CommandError("--rows is needed: under add_remove the number of rows is private.")
    if arguments.rows is not None and arguments.rows < 0:
        raise _CommandError(f"--rows must be 0 or more, got {arguments.rows}.")
    for path in (arguments.out, arguments.report, arguments.model):
        if path is not None and not path.parent.is_dir():
            raise _CommandError(f"There is no folder {path.parent}.")
    for path in (arguments.table, arguments.out):
        if path.suffix in _PARQUET and find_spec("pyarrow") is None:
            raise _CommandError(f"{path} needs pyarrow: pip install pyarrow.")
    table = _read_table(arguments.table)
    metadata = _metadata(arguments.metadata, table)
    synthesizer = _synthesizer(arguments, metadata)
    _fit(synthesizer, table)
    rows = synthesizer.sample(len(table) if arguments.rows is None else arguments.rows)
    assert not isinstance(rows, dict)  # as the table was
    _write_table(rows, arguments.out)
    if arguments.report is not None:
        synthesizer.report(arguments.report)
    if arguments.model is not None:
        synthesizer.save(arguments.model)
    if not arguments.quiet:
        print(synthesizer.privacy_report())


def _read_table(path: Path) -> "pd.DataFrame":
    """The private table. What a parser says of its text is not passed on."""
    import pandas as pd

    if not path.is_file():
        raise _CommandError(f"There is no file {path}.")
    is_parquet = path.suffix in _PARQUET
    try:
        return pd.read_parquet(path) if is_parquet else pd.read_csv(path, low_memory=False)
    except Exception as error:  # noqa: BLE001 - any parser's
        kind = "Parquet" if is_parquet else "CSV"
        raise _CommandError(f"Cannot read {path} as {kind}: {type(error).__name__}.") from None


def _write_table(rows: "pd.DataFrame", path: Path) -> None:
    if path.suffix in _PARQUET:
        rows.to_parquet(path, index=False)
    else:
        rows.to_csv(path, index=False)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError:
        raise _CommandError(f"Cannot read {path}.") from None
    except ValueError as error:  # public: it is documentation
        raise _CommandError(f"{path} is not JSON: {error}.") from None


def _metadata(path: Path | None, table: "pd.DataFrame | None") -> "Metadata":
    """SDV's metadata from a file, or with the types that SDV detects, which become public."""
    from sdv.metadata import Metadata

    if path is None:
        assert table is not None
        try:
            return Metadata.detect_from_dataframes({_TABLE: table})
        except Exception as error:  # noqa: BLE001 - its text may hold a value of the table
            kind = type(error).__name__
            raise _CommandError(
                f"SDV cannot detect the columns' types ({kind}). Give them with --metadata."
            ) from None
    facts = _read_json(path)
    if isinstance(facts, dict) and "tables" not in facts:
        facts = {"tables": {_TABLE: facts}}
    try:
        return Metadata.load_from_dict(facts)
    except Exception as error:  # noqa: BLE001 - public as well, whatever SDV raises
        raise _CommandError(f"{path} is not SDV's metadata: {_line(error)}") from None


def _synthesizer(arguments: argparse.Namespace, metadata: "Metadata") -> "PrivateSynthesizer":
    """The synthesizer; what is wrong with its arguments is public."""
    from sdv.errors import SynthesizerInputError

    import sdv_privpgd

    domain = None if arguments.domain is None else _read_json(arguments.domain)
    makers = {
        "privpgd": sdv_privpgd.PrivPGDSynthesizer,
        "mst": sdv_privpgd.MSTSynthesizer,
        "aim": sdv_privpgd.AIMSynthesizer,
    }
    try:
        return makers[arguments.method](
            metadata,
            arguments.epsilon,
            arguments.delta,
            adjacency=arguments.adjacency,
            rows_per_person=arguments.rows_per_person,
            public_domain=domain,
            public_metadata=arguments.public_metadata,
            discovery_share=arguments.discovery_share,
            seed=arguments.seed,
            verbose=not arguments.quiet,
        )
    except (ValueError, SynthesizerInputError) as error:
        raise _CommandError(_line(error)) from None


def _fit(synthesizer: "PrivateSynthesizer", table: "pd.DataFrame") -> None:
    """Fits; the errors that are passed on are ours and speak of public facts only."""
    from sdv.errors import InvalidDataError, SynthesizerInputError

    from sdv_privpgd import PrivacyBudgetError, PublicDomainError

    try:
        synthesizer.fit(table)
    except (
        InvalidDataError,
        SynthesizerInputError,
        PrivacyBudgetError,
        PublicDomainError,
    ) as error:
        raise _CommandError(_line(error)) from None


def _describe(arguments: argparse.Namespace) -> None:
    from sdv.utils import load_synthesizer

    if not arguments.model.is_file():
        raise _CommandError(f"There is no file {arguments.model}.")
    synthesizer: Any = load_synthesizer(arguments.model)
    columns = synthesizer.get_metadata().tables[_only(synthesizer.get_metadata().tables)].columns
    print(type(synthesizer).__name__)
    for name, facts in columns.items():
        print(f"  {name}: {facts['sdtype']}")
    print()
    print(synthesizer.privacy_report())


def _only(names: Any) -> str:
    (name,) = names
    return name


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _say_warning(message: Warning | str, category: type, filename: str, *_: Any) -> None:
    """Ours, in one line; what other libraries warn of may hold a value of the table."""
    del category
    if Path(filename).parent == Path(__file__).parent:
        print(f"sdv-privpgd: {' '.join(str(message).split())}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
