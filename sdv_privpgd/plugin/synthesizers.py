"""The synthesizers that SDV finds. They differ in what they measure and fit unless told otherwise.

With ``base.py`` they are all that a user of SDV needs to know.
"""

from importlib import import_module

from sdv_privpgd.plugin.base import PrivateSynthesizer


class PrivPGDSynthesizer(PrivateSynthesizer, method="privpgd"):
    """Differentially private synthetic rows of one table, by particle gradient descent.

    Everything that the fitted object exposes (samples, attributes, files, messages) is
    (epsilon, delta)-differentially private for one row, or for the rows of one of the
    ``people``. The method is PrivPGD (Donhauser et al. 2024) with exact Gaussian accounting.

    Args:
        metadata: SDV metadata of one table. Column names, sdtypes, keys and datetime formats are
            taken as public, and so are the fitted table's dtypes that no cell chose. Ranges,
            categories and precisions in it are dropped unless ``public_metadata`` is set, because
            SDV's detection reads them off the table.
        epsilon: What each ``fit`` may spend, positive.
        delta: Strictly between 0 and 1; choose it well below 1 / (number of rows). By default it
            is a tenth of that, and no more than 1e-5; under ``'add_remove'`` it has to be given.
        adjacency: ``'replace_one'``: one row's values may change, the number of rows is public.
            ``'add_remove'``: the number of rows is private, too, and takes 1 % of the budget.
        people: Whose the rows are: ``People("patient", max_rows=4)`` reads no more than so many
            rows of a person, and protects all of them; its ids are made anew. By default each
            person has one row. A ``sequence_key`` and a ``sequence_index`` of the metadata are its
            ``column`` and its ``sequence_index``. It also names the column of a survey's weights.
        public_domain: ``{column: {...}}`` with ``range_min`` and ``range_max`` (numerical,
            datetime) or ``range_values`` (categorical, ordinal), and optionally
            ``range_is_nullable``, ``decimal_places``, ``datetime_format``, ``num_bins``,
            ``cut_points`` (where the cells of numbers or dates begin), ``frequencies`` (how often
            each of these cells, or of the ``range_values``, occurs: where they are many they are
            merged, and drawn again as often), ``increment`` (a whole number that all values are
            multiples of), ``number_format`` (how text writes 1234.5), ``true_value`` and
            ``false_value`` (boolean), ``other_value`` (what all values that are not in
            ``range_values`` become), ``groups`` and ``prefix`` (the groups that codes become), and
            ``missing_codes`` (what stands for missing).
            Write it from documentation, never from the data. It goes before the metadata.
        public_metadata: Whether the ranges in the metadata are public knowledge as well.
        discovery_share: Part of the budget, at most, that finds ranges and categories which are
            not declared, privately, and where in a declared range rows lie; each column that is
            looked into has its part. At 0 there is a ``PublicDomainError`` instead, and declared
            ranges have cells of equal width. Values that few rows have become ``'other'``, or
            nines (999, 9999, ...) among numbers. It also finds how frequent declared categories are
            where they are more than 256: rare ones share a cell, and are drawn from it as often.
            At 0 neighbors in the declared order share cells evenly. Thresholds cost a thirtieth
            of ``delta`` each, at most three of them. Where nothing is declared, 0.2 gave clearly
            lower errors than 0.05 on five of ten real tables, and equal ones within noise on the
            other five; at epsilon 0.2 a share of 0.3 was lower still on those five. Where all
            ranges are declared, the share made no difference beyond noise.
        method: What is measured, and what makes rows of the answers: ``'privpgd'`` (all pairs, some
            of them twice, triples over a few groups of values each, and where the noise is large
            all columns alone), ``'independent'`` (each column alone), ``'mst'``, ``'aim'``,
            ``'mwem'``, ``'privsyn'``, ``'privmrf'``, ``'rap'``, ``'rap++'``, ``'gem'``,
            ``'private_gsd'``, ``'dp-merf'``, ``'dp-diffusion'`` or ``'dp-ctgan'``; one of them with
            another engine, such as ``'aim+particles'``; or an object of ``sdv_privpgd.methods``
            with settings of its own, such as ``AIM(max_megabytes=20)``, ``PrivPGD(num_bins=20)`` or
            ``PrivPGD(engine=ParticleGradientDescent(num_particles=5_000))``. ``None`` is the
            class's own.
        target: The column that the rows are to predict, or a list of several. It is public. Pairs
            of columns with it get 6 times the budget of another pair, or as many times as a
            dictionary says, such as ``{"income": 10}``; others get less.
        seed: Of what comes after the noisy answers, the sampled rows above all. The noise and
            the private choices come from the operating system and have no seed.
        verbose: Whether bars show how far a fit is, and the sampling of rows.
        enforce_min_max_values: Only ``True``: values never leave the declared range.
        enforce_rounding: Whether ``decimal_places`` is respected; ``False`` gives plain floats.
        locales: Locales of generated personal data; ``None`` is ``['en_US']``.

    Raises:
        ValueError: For an argument outside its range; the message names value and remedy.
        SynthesizerInputError: For metadata of several tables, of sequences or composite keys.

    >>> import pandas as pd
    >>> from sdv.metadata import Metadata
    >>> facts = {"tables": {"people": {"columns": {"ill": {"sdtype": "boolean"}}}}}
    >>> synthesizer = PrivPGDSynthesizer(Metadata.load_from_dict(facts), epsilon=1.0)
    >>> synthesizer.fit(pd.DataFrame({"ill": [True, False] * 500}))
    >>> synthesizer.sample(3).shape
    (3, 1)
    >>> synthesizer.ledger.spent() <= 1.0
    True
    """


class MSTSynthesizer(PrivateSynthesizer, method="mst"):
    """Differentially private synthetic rows of one table, by a maximum spanning tree and PGM.

    Measures each column and the pairs of a privately chosen spanning tree, and fits the graphical
    model of these tables (McKenna, Miklau & Sheldon 2021, NIST-MST). The guarantee and the
    arguments are those of ``PrivPGDSynthesizer``.

    >>> import pandas as pd
    >>> from sdv.metadata import Metadata
    >>> kinds = {"ill": {"sdtype": "boolean"}, "old": {"sdtype": "boolean"}}
    >>> metadata = Metadata.load_from_dict({"tables": {"people": {"columns": kinds}}})
    >>> synthesizer = MSTSynthesizer(metadata, epsilon=1.0)
    >>> synthesizer.fit(pd.DataFrame({"ill": [True, False] * 500, "old": [True, True] * 500}))
    >>> synthesizer.sample(3).columns.tolist()
    ['ill', 'old']
    """


class AIMSynthesizer(PrivateSynthesizer, method="aim"):
    """Differentially private synthetic rows of one table, by AIM and PGM.

    Measures each column, then round by round the table that the graphical model so far gets most
    wrong (McKenna et al. 2022, AIM; all pairs are its workload). The guarantee and the arguments
    are those of ``PrivPGDSynthesizer``; ``max_megabytes`` is the one that matters most.

    >>> import pandas as pd
    >>> from sdv.metadata import Metadata
    >>> kinds = {"ill": {"sdtype": "boolean"}, "old": {"sdtype": "boolean"}}
    >>> metadata = Metadata.load_from_dict({"tables": {"people": {"columns": kinds}}})
    >>> synthesizer = AIMSynthesizer(metadata, epsilon=1.0)
    >>> synthesizer.fit(pd.DataFrame({"ill": [True, False] * 500, "old": [True, True] * 500}))
    >>> synthesizer.sample(3).columns.tolist()
    ['ill', 'old']
    """


# Pickles name a class by the module that makes sure of SDV, and look it up there: were that
# module not imported, cloudpickle would write the class itself into the file.
for _class in (PrivPGDSynthesizer, MSTSynthesizer, AIMSynthesizer):
    _class.__module__ = "sdv_privpgd.synthesizer"
import_module("sdv_privpgd.synthesizer")
