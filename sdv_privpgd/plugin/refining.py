"""More budget later: the method that asks about a fitted table again."""

from sdv.errors import InvalidDataError

from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.fitting.fitted import RunningFit
from sdv_privpgd.fitting.resume import begun_again, require_same_rows
from sdv_privpgd.plugin.fits import FitsOfTables
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger


class RefinedFits(FitsOfTables):
    """SDV's synthesizers, of which a fit can get more budget."""

    def refined_ledger(self, epsilon: float) -> PrivacyLedger:
        """The books of the last fit with so much more to spend. Raises what ``refine`` would."""
        self._require_fitted()
        assert self._model_of_table is not None
        return begun_again(self._model_of_table, epsilon).books.ledger

    def _opened_again(self, fitted: Fitted, books: PrivacyLedger, data) -> PrivateTable:
        """The table that was fitted, if it is to be read as it was."""
        self._settings().require(books)
        now = self._description()
        if now.attributes != fitted.schema or now.visits != fitted.description.visits:
            raise ValueError(
                "The settings that give the noisy answers their meaning have changed since the "
                "fit that is to be refined: public_domain, method, enforce_rounding, constraints "
                "or people. Set them back, or fit anew."
            )
        table = self._open(data, now)
        try:
            require_same_rows(fitted, table)
        except ValueError as error:
            raise InvalidDataError([str(error)]) from None
        return table

    def refine(self, data, epsilon: float) -> None:
        """Spends more budget on the table that was fitted, and fits all answers again.

        Privacy: one ledger. The epsilon of the last fit grows by ``epsilon`` at its delta, and all
        that was released of the table is within it: 0.5 and 0.5 more spend exactly what 1 does.
        Answers to the same question are averaged by inverse variance, so that errors fall as if
        all had been asked at once. Nothing is discovered anew; the new model starts from the last.

        If it fails after it had paid, the last fit stays, and ``finish`` makes use of the answers.

        Args:
            data: The table of the last fit, with the same rows. A table that has grown is fitted
                anew: ``fit`` again, whose charges compose on the same ledger.
            epsilon: What is added.

        Raises:
            NotFittedError: Before a fit.
            InvalidDataError: For other columns, or another number of rows where that is public.
            ValueError: For fits whose tables were not kept, for an epsilon that is not positive, or
                if settings that give the answers their meaning have changed.
        """
        self._require_fitted()
        with self._account.lock:
            fitted = self._model_of_table
            assert fitted is not None
            fit = begun_again(fitted, epsilon)
            table = self._opened_again(fitted, fit.books.ledger, data)
            running = RunningFit(fit=fit, private=table, refined=self._fitted_table)
            names = (self._gives_frames, self._original_columns)
            self._run(running, names, goes_on=True)
            self._speak_up()
