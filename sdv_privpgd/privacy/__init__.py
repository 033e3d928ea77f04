"""The trusted core: all that bounds what may be said of a record, and all that sees one.

The curator charges, counts and adds noise in one act. A table enters through ``boundary``, is read
cell by cell by the encoders in ``columns/``, and is passed on unseen by all others. An import rule
and a test that looks into running fits (``tests/leak/test_boundary.py``) keep it so.

An auditor reads these files, in this order, with their lines of code:

    ``privacy/accounting.py``     95  epsilon and delta as mu, and back
    ``privacy/noise.py``          45  rounded Gaussian noise
    ``privacy/selection.py``      47  the exponential mechanism
    ``privacy/thresholding.py``   22  values that nobody declared
    ``privacy/queries.py``       158  what can be asked, and its sensitivity
    ``privacy/counting.py``       64  what is counted over codes
    ``privacy/dataset.py``        67  codes in memory
    ``privacy/value_counts.py``   84  values, and their counting
    ``privacy/ledger.py``        180  the books
    ``privacy/measurement.py``    10  a noisy answer
    ``privacy/curator.py``       186  charging, counting and noise in one act
    ``privacy/looking.py``        52  what a first look counts
    ``privacy/streams.py``        68  codes in a file, and where rows are
    ``privacy/boundary.py``      130  the table's way in
    ``columns/encoders.py``      203  cells to codes, and back
    ``columns/encoding.py``       33  columns to codes
    ``columns/readings.py``       56  cells of which little is known to codes
    ``columns/scalars.py``       170  numbers, truths and text of cells
    ``columns/dates.py``         117  dates of cells
    ``sources/source.py``         51  what rows come from
    ``sources/frames.py``         24  frames of pandas
    ``sources/arrow.py``          83  batches of Arrow
    ``sources/tables.py``         86  tables of other libraries
    ``sources/files.py``          63  files of Parquet and text
    ``sources/opening.py``        32  the source of what a user has
    ``sources/withheld.py``       17  messages that could quote a cell

These are 2,143 lines of code. What they call besides holds no record: ``domain`` and the cells of
``columns/`` are public facts. The first eleven need numpy, scipy and mpmath alone. ``looking``,
``streams`` and ``boundary`` are the exceptions of the rule that the core is free of pandas: they
call the encoders, who read pandas' columns, on columns that they do not look into. Sources other
than frames hand out cells, keep none and count none. ``ledger_file`` and ``opacus`` read ledgers,
which are public.
"""
