"""The public facts on columns, and the way from values to codes and back.

``schema`` describes a table in SDV's words (``parsing`` reads one column's facts), ``column`` and
``bins`` say which values share a code, and ``encoders`` translate private cells one by one, with
nothing learned. Public: ``schema.Schema``, ``column.Column``, ``encoders.encode_table``, and the
declarations in ``declared``.
"""
