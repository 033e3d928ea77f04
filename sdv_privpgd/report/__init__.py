"""What people look at: the ledger in words, pages for the browser, what is worth a warning.

``document`` has the one object that they are given: a text, a page and a dictionary at once.
``release`` writes the public page and ``comparison`` the one that is not private.
"""
