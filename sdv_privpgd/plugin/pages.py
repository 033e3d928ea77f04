"""What people look at after a fit: the page, the comparison, the books, what is worth a word."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sdv_privpgd.methods.workload import Target
from sdv_privpgd.plugin.arguments import column_names
from sdv_privpgd.plugin.state import FittedState
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.privacy import privacy_report
from sdv_privpgd.report.registry import RegistryEntry
from sdv_privpgd.synthesize.particles.particles import Particles

if TYPE_CHECKING:
    from sdv_privpgd.report.evaluation import Evaluation


class ShownFit(FittedState):
    """What a fit shows of itself. Public, but for ``evaluate``."""

    adjacency: str
    epsilon: float
    target: Target

    def __repr__(self) -> str:
        """What matters of it in a line: before a fit what it may spend, after it what it is of."""
        if self._fitted_table is None:
            number = len(self._get_table_metadata().columns)
            what = f"{number} columns, epsilon {self.epsilon:g}, {self.adjacency}, not fitted"
            return f"{type(self).__name__}({what})"
        return f"{type(self).__name__}({self.fitted_table!r})"

    def report(self, path: str | Path | None = None, *, audience: str = "analyst") -> Report:
        """What was spent, and how well the rows fit the noisy answers. Public.

        It is a text, a page for the browser and a dictionary at once. The page says what was
        spent, how loud the noise is and how well the synthetic rows fit the noisy answers. It names
        the categories that the noise hides, holds the noisy tables of columns and pairs to download
        and ends with a text for a methods section. It is one file and asks for nothing over a
        network.

        Args:
            path: Where to save it as well: the page, or the text (``.txt``) or the dictionary
                (``.json``). Nothing is written without one.
            audience: ``"officer"`` gives one printed page for who decides on the release.
        """
        return self.fitted_table.report(path, audience=audience)

    def methods_text(self) -> str:
        """What was done, in sentences for a methods section, with references. Public."""
        return self.fitted_table.methods_text()

    def registry_entry(self, **said: Any) -> RegistryEntry:
        """The record of the last fit for the public registry of deployments. Public.

        It has the books of all fits. ``said`` is as ``FittedTable.registry_entry`` takes it: the
        ``name`` of the rows, ``curators``, ``region``, ``use`` and ``authors``.
        """
        return self.fitted_table.registry_entry(**said)

    def evaluate(
        self,
        real_data,
        *,
        label: str | None = None,
        held_out=None,
        path: str | Path | None = None,
    ) -> "Evaluation":
        """Compares as many synthetic rows with the real table. Not private.

        No budget covers the page, what is returned, or settings that are chosen by them. The rows
        are the first of the sequence; where ``sample`` goes on does not change.

        Args:
            real_data: The real table, as ``fit`` takes it.
            label: A column that models learn to predict, from synthetic and from real rows. The
                ``target`` is taken if there is one and no other is named.
            held_out: Real rows that were not fitted, as ``fit`` takes them, to judge what models
                have learned. Without them a random fifth of the real table is set aside; the fit
                has seen it.
            path: Where to write the page as well. Nothing is written without one.
        """
        self._require_fitted()
        modelled = [column.name for column in self._schema().columns]
        if label is None and isinstance(self.target, str) and self.target in modelled:
            label = self.target
        return self.fitted_table.evaluate(
            self._columns_of(real_data),
            label=label,
            held_out=None if held_out is None else self._columns_of(held_out),
            path=path,
        )

    def _columns_of(self, data) -> pd.DataFrame:
        """The modelled columns of a real table. Raises for one that does not fit."""
        self._open(data, self._description())
        table = data[self._table_name] if isinstance(data, dict) else data
        names = column_names(table)
        modelled = [column.name for column in self._schema().columns]
        return table.iloc[:, [names.index(name) for name in modelled]].set_axis(modelled, axis=1)

    def discovered_domain(self) -> dict[str, dict]:
        """The domain of the last fit: what was declared, and what was found privately. Public.

        It has the form that ``public_domain`` takes: given to another synthesizer of the same
        metadata, nothing has to be found again. ``write_domain`` keeps it in a file, unless it has
        values that files cannot hold, such as times of the day. ``cut_points``
        and ``frequencies`` say where the cells of a column begin and how full they are.
        """
        found = self.fitted_table.discovered_domain()
        return {name: found[name] for name in self._described if found.get(name)}

    def value_sources(self) -> dict[str, str]:
        """Where each column's values come from: declared, found privately, or made up. Public."""
        return self._description().value_sources

    @property
    def warnings_(self) -> tuple[str, ...]:
        """What is worth a look before the rows of the last fit are used, a sentence each. Public.

        The first says how many columns are usable; then come lost columns, doubtful ones, settings
        and what noise hides. Empty where nothing was noticed, and before a fit.
        """
        return () if self._fitted_table is None else self._fitted_table.warnings

    @property
    def estimated_num_rows(self) -> int | None:
        """The number of rows, as far as it is known: noisy where it is private. Public.

        ``None`` where no column is modelled, so that nothing was measured.
        """
        self._require_fitted()
        return None if self._model_of_table is None else self._model_of_table.num_rows

    def privacy_report(self) -> str:
        """The text of ``report``: what was spent, on what and under which adjacency. Public.

        ``warnings_`` are at its end. Before a fit it says what may be spent.
        """
        if self._fitted_table is None:
            return privacy_report(self.ledger)
        return self.fitted_table.privacy_report()

    def get_loss_values(self) -> pd.DataFrame:
        """How far the particles were from the noisy tables after some epochs. Public.

        ``Loss`` is the mean over the tables of the squared sliced W2 distance, along directions
        that are the same for all epochs. After the engine "generator" there is none.

        Raises:
            ValueError: For a model of another engine, which has no particles.
        """
        self._require_fitted()
        if self._release is None:  # no column is modelled
            return pd.DataFrame({"Epoch": [], "Loss": []})
        model = self._release.model
        if not isinstance(model, Particles):
            raise ValueError(
                f"The losses are those of the engine 'particles', and the model is a "
                f"{type(model).__name__}."
            )
        return pd.DataFrame({"Epoch": list(model.losses), "Loss": list(model.losses.values())})

    def get_info(self) -> dict:
        """SDV's facts about the synthesizer, and the epsilon and delta that its fits spent."""
        ledger = self.ledger
        return {
            **super().get_info(),
            "adjacency": self.adjacency,
            "epsilon_spent": ledger.spent(),
            "delta_spent": ledger.delta if ledger.charges else 0.0,
        }
