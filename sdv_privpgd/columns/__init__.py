"""The public facts on columns, and the way from values to codes and back.

``facts`` says what is known of a column, declared or found. ``parser`` reads facts from SDV's
words, which ``vocabulary`` knows and writes again. ``cuts`` makes a ``column`` of them, whose
``bins`` say which values share a code, and ``schema`` has all columns of a table.
``encoders`` translate private cells one by one, with nothing learned. Public: ``schema.Schema``,
``column.Column``, ``encoding.encode_table``, and the declarations in ``declarations``.
"""
