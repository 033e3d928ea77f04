"""Reports for people: the ledger in words, pages for the browser, and warnings after a fit.

``release`` writes the public page, ``comparison`` the page that is not private. ``evaluation`` has
``evaluate``, and ``privacy`` the report in plain text.
"""
