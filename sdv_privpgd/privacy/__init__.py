"""The trusted core: all that holds a record, and all that bounds what may be said of it.

The curator charges, counts and adds noise in one act. An auditor reads, in this order:
``accounting`` (epsilon and delta as mu), ``noise``, ``selection`` and ``thresholding`` (the three
mechanisms, with their proofs), ``queries`` (the sensitivities), ``dataset`` and ``value_counts``
(the counting), ``ledger`` and ``curator``. Cells are read by ``sdv_privpgd.columns.encoders``.
"""
