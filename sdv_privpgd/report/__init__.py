"""Reports for people: the ledger in words, pages for the browser, and warnings after a fit.

``page`` has the one object that people are given: a text, a page and a dictionary at once.
``release`` makes the public report and ``comparison`` the page that is not private. ``evaluation``
has ``evaluate``, and ``figures`` the pictures.
"""
