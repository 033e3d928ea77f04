"""Where private rows come from: frames, files, databases and clusters, read in batches.

``source`` says what a source is and how something is added up over its rows; ``frames`` has pandas'
tables; ``arrow`` turns Arrow's batches into pandas' columns, of tables of Arrow, Polars, DuckDB and
Ibis and of ``files``. ``csv`` reads text: ``texts`` says what a text means, and ``dialect`` how a
user writes and names columns. ``locate`` finds the source of what a user has.

A source hands out cells and never looks at one: encoders read them, and the curator counts.
"""
