"""A fit without SDV: from a table and what is public of it to a fitted table.

``door`` is the whole for users: ``fit_table``; ``linked`` the same for tables that belong together.
"""
