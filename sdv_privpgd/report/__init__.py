"""Reports for people: the ledger in words, pages for the browser, and warnings after a fit.

``page`` has the one object that people are given: a text, a page and a dictionary at once.
``release`` makes the public report, ``evaluation`` the one that is not private, and ``figures`` the
pictures.
"""
