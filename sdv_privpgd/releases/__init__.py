"""Releases that leave their sites: measured at one place, put together and modelled at another.

``site`` asks one table and ``site_release`` is what comes of it, and its file. ``combination`` adds
the noisy tables of several sites and fits one model to them. ``published_tables`` reads noisy
tables of somebody else, such as a statistical office, which ``tidy_tables`` takes by their labels.

Nothing here but ``site`` is ever near a private table.
"""
