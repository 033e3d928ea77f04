"""How sure an answer is: estimates from all noisy tables with their exact variance. Public.

``linear.py`` has the estimate, ``between_groups.py`` the part of it that tables over groups tell
of. All of this is post-processing of noisy answers: free, and as public as they are.
"""
