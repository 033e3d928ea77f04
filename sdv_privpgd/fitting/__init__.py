"""A fit without SDV: from a table and what is public of it to a fitted table.

``settings`` says how much may be spent and by which method, ``description`` what is public of the
table, and ``fit`` asks and makes a model. ``methods`` knows methods by name,
``mismatch`` stops a fit of a table that is not as declared, ``account`` keeps the books of several
fits, and ``plan`` and ``reporting`` say what is asked.
``door`` is the whole for users: ``fit_table``.
"""
