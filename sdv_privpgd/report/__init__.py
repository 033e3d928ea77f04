"""What people look at: the ledger in words, pages for the browser, what is worth a warning.

``release`` writes the public page and ``comparison`` the one that is not private.
"""
