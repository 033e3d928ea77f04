"""The trusted core: all that bounds what may be said of a record, and all that sees one.

The curator charges, counts and adds noise in one act. A table enters through ``boundary``, is read
cell by cell by the encoders in ``columns/``, and is passed on unseen by all others. An import rule
and a test that looks into running fits (``tests/leak/test_boundary.py``) keep it so.

An auditor reads these files, in this order, with their lines of code:

    ``privacy/accounting.py``       81  epsilon and delta as mu, and back
    ``privacy/noise.py``            45  rounded Gaussian noise
    ``privacy/selection.py``        29  the exponential mechanism
    ``privacy/thresholding.py``     23  values that nobody declared
    ``privacy/queries.py``         201  what can be asked, its sensitivity, and a noisy answer
    ``privacy/counting.py``        124  what is counted over codes, in which units
    ``privacy/dataset.py``          53  codes in memory
    ``privacy/value_counts.py``     59  values, and their counting
    ``privacy/ledger.py``          196  the ledger; more budget, and people of several tables
    ``privacy/curator.py``         240  charging, counting and noise in one act
    ``privacy/streams.py``         193  rows in a file or on a cluster, weights, first looks
    ``privacy/boundary.py``        171  the table's way in
    ``columns/encoders.py``         53  cells to codes
    ``columns/encoding.py``         36  columns to codes
    ``columns/readings.py``        137  cells of which little is known to codes
    ``columns/recoding.py``        104  codes for missing, and groups of codes
    ``columns/scalars.py``         199  numbers, truths and text of cells
    ``columns/number_formats.py``   48  numbers as they are written
    ``columns/dates.py``           168  dates of cells
    ``sources/source.py``           83  what rows come from
    ``sources/frames.py``           34  frames of pandas
    ``sources/people.py``          122  no more than so many rows of a person

These are 2,399 lines of code. Who has rows in files, databases or clusters, or wants them in order,
reads, of these 1,555 what the rows come through; they hand out cells, keep none but those of rows
before, and count none but for the cluster:

    ``sources/locate.py``         151  the source of what a user has, as it is to be read
    ``sources/redaction.py``         25  frames of exceptions that hold cells
    ``sources/files.py``            76  files of Parquet
    ``sources/arrow.py``           157  batches of Arrow, and tables of other libraries
    ``sources/csv.py``             336  files of text, their names, and dtypes that a user names
    ``sources/texts.py``           122  what a text means
    ``sources/spark.py``           283  tallies to the workers of a cluster
    ``sources/families.py``        329  rows of tables that belong together
    ``sources/visits.py``           76  at most so many rows of a person, in order

What they call besides holds no record: ``domain`` and the cells of ``columns/`` are public facts.
The first ten need numpy, scipy and mpmath alone. ``streams`` and ``boundary`` are the exceptions
of the rule that the core is free of pandas: they call the encoders, who read pandas' columns, on
columns that they do not look into. ``ledger_file`` reads ledgers and puts them in words: they are
public. The command line reads workbooks into a frame itself (``cli/input_files.py``).
``Curator.train`` hands codes to DP-SGD in ``methods/``, outside the core: its promise rests on
opacus and torch, and is weaker than that of counts.
"""
