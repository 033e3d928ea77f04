"""Writes files whole or not at all, and never over an input.

Each file is opened beside its place before the private table is read, and renamed at the end. So a
folder that cannot be written to is found before anything is spent.
"""

import json
import os
import stat
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from glob import has_magic
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.base.progress import one_step, shown
from sdv_privpgd.cli.input_files import kind_written, text_options
from sdv_privpgd.cli.messages import CommandError, own_errors, reason, say
from sdv_privpgd.cli.start import undisturbed
from sdv_privpgd.columns.column import EXACT_IN_FLOAT
from sdv_privpgd.fitting.fitted_table import FittedTable
from sdv_privpgd.fitting.model_rows import SampledTable
from sdv_privpgd.report.about import KEY, card_path, in_words, is_card, write_card
from sdv_privpgd.report.page import Report, check_path


@dataclass(eq=False)
class Output:
    """A file that is being written."""

    option: str  # the option that named it
    path: Path  # the path that the user gave
    place: Path  # its final place, with links followed
    is_paid: bool  # whether to keep it, once it is whole, even if the command fails later
    is_new: bool  # whether an existing file must not be overwritten
    is_whole: bool = False
    is_placed: bool = False
    is_astray: bool = False  # it could not be moved to its place and stays beside it

    @property
    def part(self) -> Path:
        """The place of the file while it is written, with the same ending.

        The name is always the same, so that it keeps other runs away.
        """
        return self.place.with_name(f"{self.place.stem}.part{self.place.suffix}")


class Outputs:
    """The files of one command. All are kept at the end; after a failure, the paid ones are.

    Attributes:
        after_failure: Is called after a failure, when what is whole is in its place and half files
            are gone. It is handed the error, or ``None`` if the files alone are to blame.
    """

    def __init__(self, *, inputs: Sequence[Path | None], force: bool) -> None:
        self.after_failure: Callable[[BaseException | None], object] | None = None
        self._inputs = [path for path in inputs if path is not None]
        self._force = force
        self._outputs: list[Output] = []
        self._failures: list[CommandError] = []

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None = None, *_: object
    ) -> None:
        kept = [each for each in self._outputs if each.is_whole and (kind is None or each.is_paid)]
        with undisturbed():
            self._failures += [failure for output in kept if (failure := self._place(output))]
            for output in self._outputs:
                if not output.is_astray:
                    output.part.unlink(missing_ok=True)
            if kind is None and not self._failures:
                return
            for output in kept:
                if output.is_placed:
                    say(f"{output.path} is complete and was kept.")
            if self.after_failure is not None:
                self.after_failure(error)
        last = self._failures.pop() if kind is None else None
        for failure in self._failures:
            say(str(failure))
        if last is not None:
            raise last

    def open(
        self, option: str, path: Path | None, *, is_paid: bool = False, grows: bool = False
    ) -> Output | None:
        """A file that will be written; ``None`` if the user wants none.

        Args:
            option: The option that names it.
            path: Its final path.
            is_paid: Whether to keep it, once it is whole, even if the command fails later.
            grows: Whether an earlier file is read and continued, rather than overwritten.

        Raises:
            CommandError: If it is an input or another output, exists, or cannot be written.
        """
        if path is None:
            return None
        if str(path) == "-":
            raise CommandError(f"{option} must name a file: it is written whole or not at all.")
        place, is_new = Path(os.path.realpath(path)), not (grows or self._force)
        output = Output(option, path, place, is_paid, is_new)
        self._check(output)
        try:
            # Not by tempfile: the file gets the permissions that any new file has.
            output.part.open("xb").close()
        except FileExistsError:
            raise CommandError(
                f"{output.part} exists: another run is about to write {path}, or was killed. If "
                "none runs any more, delete it: what a killed one had planned stands in its ledger."
            ) from None
        except OSError as error:
            raise _unwritten(output, error) from None
        self._outputs.append(output)
        return output

    def required(self, option: str, path: Path, **how: bool) -> Output:
        """As ``open``, for a file that every run writes."""
        output = self.open(option, path, **how)
        assert output is not None
        return output

    def write(self, output: Output | None, write: Callable[[Path], object]) -> None:
        """Writes a file beside its place. Raises ``CommandError`` if the system refuses."""
        if output is None:
            return
        output.is_whole = False
        try:
            write(output.part)
            with output.part.open("rb+") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritten(output, error) from None
        output.is_whole = True

    def attempt(self, output: Output | None, write: Callable[[Path], object]) -> None:
        """Writes a file as ``write`` does. If the system refuses, this is told after all others."""
        try:
            self.write(output, write)
        except CommandError as failure:
            self._failures.append(failure)

    def _check(self, output: Output) -> None:
        for path in self._inputs:
            if _same(output.place, path):
                raise CommandError(
                    f"{output.option} {output.path} is the file {path}, which is read: it is never "
                    "overwritten. Choose another name."
                )
            if is_among(output.place, path):
                raise CommandError(
                    f"{output.option} {output.path} would be one of the files of {path}, which is "
                    "read: next time its rows would be taken for real ones. Choose another folder."
                )
        for other in self._outputs:
            if _same(output.place, other.place):
                raise CommandError(
                    f"{output.option} and {other.option} are the same file, {output.path}: choose "
                    "another name for one of them."
                )
        if not output.place.parent.is_dir():
            raise CommandError(f"There is no folder {output.path.parent}.")
        if not os.path.lexists(output.place):
            return
        if not stat.S_ISREG(output.place.stat().st_mode):
            raise CommandError(f"{output.option} {output.path} exists and is no regular file.")
        if output.is_new:
            raise CommandError(f"{output.option} {output.path} exists: --force overwrites it.")
        if not os.access(output.place, os.W_OK):
            raise CommandError(f"Cannot write {output.option} {output.path}: it is read-only.")

    def _place(self, output: Output) -> CommandError | None:
        """Renames a file to its place. It returns an error, so that other files are still moved."""
        if output.is_new and os.path.lexists(output.place):
            output.is_astray = True
            say(f"{output.path} has appeared meanwhile and is kept: see {output.part}.")
            return None
        try:
            os.replace(output.part, output.place)
        except OSError as error:
            return _unwritten(output, error)
        output.is_placed = True
        return None


def outputs_of(arguments: Namespace, tables: Sequence[Path] = ()) -> Outputs:
    """The files of a command, which are none that it reads."""
    named = ("metadata", "domain", "constraints")
    inputs = (*tables, *arguments.table, *(getattr(arguments, name, None) for name in named))
    return Outputs(inputs=inputs, force=arguments.force)


def with_page(
    arguments: Namespace, make: Callable[[], Report], tables: Sequence[Path] = ()
) -> Report:
    """Makes a report, and writes its page if it is asked for and can be written."""
    with outputs_of(arguments, tables) as outputs:
        page = outputs.open("--report", arguments.report)
        report = make()
        outputs.write(page, report.save)
    return report


def is_among(path: Path, given: Path) -> bool:
    """Whether a folder or a pattern holds a file, or would if it were there."""
    if given.is_dir():
        return given.resolve() in path.resolve().parents
    return has_magic(str(given)) and fnmatch(os.path.abspath(path), os.path.abspath(given))


def _same(first: Path, second: Path) -> bool:
    """Whether two paths are the same file, under any spelling, link or hard link."""
    if first == Path(os.path.realpath(second)):
        return True
    return first.exists() and second.exists() and os.path.samefile(first, second)


def _unwritten(output: Output, error: OSError) -> CommandError:
    return CommandError(f"Cannot write {output.option} {output.path}: {reason(error)}.")


# Rows


def check_report(path: Path | None) -> None:
    """Raises ``CommandError`` for a file whose ending no report has."""
    with own_errors(ValueError):
        check_path(path)


def check_rows(arguments: Namespace) -> None:
    """Raises ``CommandError`` for a number of rows or a page that cannot be."""
    check_report(arguments.report)
    with own_errors(ValueError):
        check_integer("--rows", arguments.rows or 0, least=0)


def sampled(
    fitted: FittedTable,
    arguments: Namespace,
    number: int | None,
    where: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The next rows of a model: as many as the options say, or else this number."""
    number = arguments.rows if arguments.rows is not None else number
    bar = shown("Sampling rows", not arguments.quiet)
    with own_errors(ValueError), bar as progress, one_step(progress, "sample"):
        return fitted.sample(number, where=None if number == 0 else where)


def rows_files(
    arguments: Namespace, outputs: Outputs, *, is_paid: bool = False
) -> tuple[Output, Output | None]:
    """The file of rows, and of text the card beside it, as they will be written.

    A card whose rows are gone is written anew. Raises ``CommandError`` for a first line that the
    file cannot have.
    """
    kind = kind_written(arguments.out)
    if arguments.mark == "comment" and (kind.form != "text" or kind.compression is not None):
        raise CommandError("--mark comment needs a file of text that is not compressed.")
    out = outputs.required("--out", arguments.out, is_paid=is_paid)
    path = None if kind.form == "parquet" else card_path(arguments.out)
    is_left = path is not None and is_card(path) and not os.path.lexists(arguments.out)
    return out, outputs.open("the card of --out,", path, is_paid=is_paid, grows=is_left)


def write_out(
    arguments: Namespace,
    files: tuple[Output, Output | None],
    table: SampledTable,
    notes: Mapping[str, Any],
    rows: pd.DataFrame,
    write: Callable[[Output | None, Callable[[Path], object]], None],
) -> None:
    """Writes rows of a model, and what they are beside them or in them.

    Text is written as the options say, or those that are kept with the model.
    """
    (out, card), about = files, table.about_rows()
    of_text = text_options(arguments, notes.get("dialect", {}), kind_written(arguments.out))
    if arguments.mark == "column":
        name = "synthetic"
        while name in rows:
            name += "_"
        rows = rows.assign(**{name: True})
    known = {"comment": in_words(about) if arguments.mark == "comment" else None, "about": about}
    write(out, partial(write_rows, rows, path=arguments.out, of_text=of_text, **known))
    if out.is_whole:
        write(card, lambda part: write_card(part, out.part, about))


@contextmanager
def moving_on(arguments: Namespace) -> Iterator[tuple[Outputs, Output | None]]:
    """The files of a command that writes rows of a model, and the model's, which moves on.

    The model is to be loaded inside, when nobody else can move it on. Raises ``CommandError`` if
    there is none, or if it cannot be written.
    """
    require_file(arguments.model)
    inputs, place = [arguments.model] if arguments.again else [], None
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        try:
            if not arguments.again:
                place = outputs.open("the model", arguments.model, grows=True)
        except CommandError as error:
            raise CommandError(
                f"{error} New rows need it to move on; --again leaves it as it is, and writes the "
                "first rows once more."
            ) from None
        yield outputs, place


def require_file(path: Path) -> None:
    """Raises ``CommandError`` if there is no file of a model."""
    if not path.is_file():
        raise CommandError(f"There is no file {path}.")


def write_rows(
    rows: pd.DataFrame,
    part: Path,
    path: Path,
    of_text: Mapping[str, Any] = MappingProxyType({}),
    *,
    comment: str | None = None,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes rows to a file of the kind that another path's ending names, text as ``of_text`` says.

    Characters that the encoding lacks are escaped and raise no error, because the rows are paid
    for. A ``comment`` is the first line of text, and what the rows are ``about`` is in the metadata
    of a Parquet file.
    """
    kind = kind_written(path)
    with part.open("wb") as file:
        if kind.form == "parquet":
            _write_parquet(_of_one_kind(rows), file, about)
            return
        options: dict[str, Any] = {"index": False, "sep": of_text.get("sep") or kind.sep}
        options["decimal"] = of_text.get("decimal", ".")
        coding: Any = {"encoding": of_text.get("encoding", "utf-8"), "errors": "backslashreplace"}
        if comment is not None:  # in one piece, as some encodings begin with a mark
            text = f"# {comment}{os.linesep}{_as_whole(rows).to_csv(**options)}"
            file.write(text.encode(**coding))
            return
        archive: dict[str, Any] = {"archive_name": path.stem} if kind.compression == "zip" else {}
        compression: dict[str, Any] = {"method": kind.compression, **archive}
        _as_whole(rows).to_csv(file, compression=compression, **options, **coding)


def _write_parquet(rows: pd.DataFrame, file: Any, about: Mapping[str, Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pandas(rows, preserve_index=False)
    metadata = {**table.schema.metadata, **({KEY: json.dumps(about)} if about else {})}
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), file)


def _as_whole(rows: pd.DataFrame) -> pd.DataFrame:
    """The same rows, with whole numbers as such, which beside missing ones are floats in pandas."""
    whole = {
        str(name): column.astype("Int64")
        for name, column in rows.items()
        if column.dtype.kind == "f"
        and (present := column.dropna()).abs().lt(EXACT_IN_FLOAT).all()
        and present.mod(1).eq(0).all()
    }
    return rows.assign(**whole)


def _of_one_kind(rows: pd.DataFrame) -> pd.DataFrame:
    """The same rows, with columns of several types as text: a Parquet column has one type."""
    mixed = {
        str(name): column.map(str, na_action="ignore")
        for name, column in rows.items()
        if column.dtype == object and column.dropna().map(type).nunique() > 1
    }
    return rows.assign(**mixed)
