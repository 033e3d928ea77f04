"""Releases that leave their holders: measured at one place, put together and modelled at another.

``measuring`` asks one table and ``measured`` is what comes of it, in files that ``release_file``
reads and writes. ``pooling`` adds the noisy tables of several holders, and ``combining`` fits one
model to them. ``published`` reads noisy tables of somebody else, such as a statistical office, by
the labels of ``labelled``. ``pages`` says what is promised to whom.

Nothing here but ``measuring`` is ever near a private table.
"""
