"""What constraints between columns say of cells, and rows repaired until they meet them. Public.

``rules`` says which cells of a few columns may hold rows, ``orders`` does so for columns in order,
and ``repair`` moves the rows of a model to the nearest ones that obey.
"""
