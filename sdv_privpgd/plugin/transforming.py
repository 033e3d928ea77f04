"""SDV's methods about transformers: those of modelled columns follow from public facts."""

import warnings

from sdv.errors import RefitWarning, SynthesizerInputError

from sdv_privpgd.columns.schema import PublicDomainError
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.plugin import generators
from sdv_privpgd.plugin.state import FittedState
from sdv_privpgd.plugin.transformers import ColumnTransformer, transformer_for


class AssignedTransformers(FittedState):
    """A transformer for each column. None of them learns anything from the table."""

    discovery_share: float

    def _transformers(self, description: Description) -> dict[str, ColumnTransformer]:
        """The transformers, with stand-ins for columns that discovery has yet to look into."""
        try:
            known = description.schema
        except PublicDomainError:
            known = description.declared_schema
        own = {column.name: transformer_for(column) for column in known.columns}
        return generators.with_stand_ins(own, self._described, description.modelled)

    def auto_assign_transformers(self, data) -> None:
        """Assigns a transformer to each column from public facts; of the data it reads names."""
        description = self._description()
        dtypes = self._kept(self._open(data, description), description)
        if not self.discovery_share:
            _ = description.schema  # what is not declared cannot be found later
        known = self._transformers(description)
        generators.assign(self._data_processor, self._described, known, dtypes)

    def _auto_assign_transformers(self, data):
        """Refuses the part in a synthesizer of several tables, which calls this before its fit."""
        del data
        raise SynthesizerInputError(
            f"{type(self).__name__} cannot work inside a synthesizer of several tables: the budget "
            "would be spent anew on the rows of each parent. Synthesize one table; if its rows are "
            "joined from several, people=People(max_rows=...) says how many one person may have."
        )

    def update_transformers(self, column_name_to_transformer, table_name=None) -> None:
        """Replaces the generators of columns that are generated (keys, ids, personal data).

        They learn nothing from the table: after a fit they take effect at once, at no cost, and
        the sequence of rows starts again.

        Raises:
            SynthesizerInputError: For a modelled column, whose transformer follows from its
                public domain, and for transformers that would learn from the table.
        """
        modelled = self._description().modelled
        for name, transformer in column_name_to_transformer.items():
            if name in modelled:
                raise SynthesizerInputError(
                    f"Column '{name}' is modelled: its transformer is built from its public "
                    "domain. Change public_domain or num_bins instead."
                )
            generators.check_generator(name, transformer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefitWarning)  # a refit would spend again, for nothing
            super().update_transformers(column_name_to_transformer, table_name)
        if self._model_of_table is not None:
            self._ready_generators(self._model_of_table.description)
            self.reset_sampling()

    def _ready_generators(self, description: Description) -> None:
        known = self._transformers(description)
        generators.fit(self._data_processor, self._described, known, description.dtypes)
