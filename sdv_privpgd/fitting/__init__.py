"""A fit without SDV: from a table and what is public of it to a fitted table.

``door`` has ``fit_table``, and ``linked_tables`` the same for tables that belong together.
"""
