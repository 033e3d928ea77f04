"""The trusted core: all that bounds what may be said of a record, and all that sees one.

The curator charges, counts and adds noise in one act. A table enters through ``boundary``, is read
cell by cell by the encoders in ``columns/``, and is passed on unseen by all others. An import rule
and a test that looks into running fits (``tests/leak/test_boundary.py``) keep it so.

An auditor reads these files, in this order, with their lines of code:

    ``privacy/accounting.py``     95  epsilon and delta as mu, and back
    ``privacy/noise.py``          45  rounded Gaussian noise
    ``privacy/selection.py``      47  the exponential mechanism
    ``privacy/thresholding.py``   22  values that nobody declared
    ``privacy/queries.py``       160  what can be asked, and its sensitivity
    ``privacy/dataset.py``        74  codes, and their counting
    ``privacy/value_counts.py``   36  values, and their counting
    ``privacy/ledger.py``        180  the books
    ``privacy/composition.py``    22  more budget, and people of several tables
    ``privacy/measurement.py``    10  a noisy answer
    ``privacy/curator.py``       187  charging, counting and noise in one act
    ``privacy/boundary.py``      136  the table's way in
    ``columns/encoders.py``      232  cells to codes, and back
    ``columns/readings.py``       56  cells of which little is known to codes
    ``columns/scalars.py``       170  numbers, truths and text of cells
    ``columns/dates.py``         117  dates of cells

These are 1,589 lines of code. What they call besides holds no record: ``domain`` and the cells of
``columns/`` are public facts. The first eleven need numpy, scipy and mpmath alone. ``boundary`` is
the one exception of the rule that the core is free of pandas: it calls the encoders, who read
pandas' columns, on columns that it does not look into. ``ledger_file`` and ``opacus`` read ledgers,
which are public.
"""
