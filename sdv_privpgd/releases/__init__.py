"""Releases that leave their sites: measured at one place, put together and modelled at another.

``measuring`` asks one table and ``measured`` is what comes of it, and its file. ``combining`` adds
the noisy tables of several sites and fits one model to them. ``published`` reads noisy tables of
somebody else, such as a statistical office, which ``tidy_tables`` takes by their labels.

Nothing here but ``measuring`` is ever near a private table.
"""
