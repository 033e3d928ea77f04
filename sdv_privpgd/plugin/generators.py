"""SDV's data processor, which makes keys, ids and personal data of public facts alone.

Modelled columns have no transformer: our encoders read them. SDV fits the processor on the private
table, where RDT hashes the first five cells of each column into the seeds that it keeps. Here it
sees a public frame of two rows instead, made of the columns' names.
"""

import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pandas as pd
from rdt.transformers import BaseTransformer, IndexGenerator, PseudoAnonymizedFaker
from sdv.data_processing import DataProcessor
from sdv.errors import SynthesizerInputError

from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.columns.keys import in_dtype
from sdv_privpgd.sampling.sampler import MOVING


def public_frame(names: Iterable[str]) -> pd.DataFrame:
    """Two rows of labels that say nothing of any value."""
    return pd.DataFrame({name: [f"{name}-0", f"{name}-1"] for name in names}, dtype=object)


def assign(
    processor: DataProcessor,
    described: Mapping[str, Mapping],
    modelled: Collection[str],
    dtypes: Mapping[str, Any],
) -> None:
    """Gives every column its generator, unless that was done before; fits nothing.

    Those that are ``modelled`` have none. Ids without a pattern are counted up:
    SDV would learn real ones, or make them slowly. They are numbers if their dtype says so.
    """
    if processor._prepared_for_fitting:
        return
    chosen: dict[str, BaseTransformer | None] = dict.fromkeys(modelled)
    for name, facts in described.items():
        if name not in chosen and facts["sdtype"] == "id" and not facts.get("regex_format"):
            is_number = is_whole(dtypes.get(name))
            chosen[name] = IndexGenerator(prefix=None if is_number else "sdv-id-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SDV comments on the public frame
        # Without formatters: our decoders give final values.
        config = processor._create_config(public_frame(described))
        processor._hyper_transformer.set_config(config)
        processor._prepared_for_fitting = True
        processor.update_transformers(chosen)


def fit(
    processor: DataProcessor,
    described: Mapping[str, Mapping],
    modelled: Collection[str],
    dtypes: Mapping[str, Any],
) -> None:
    """Makes the generators ready."""
    assign(processor, described, modelled, dtypes)
    with MOVING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        processor._fit_hyper_transformer(public_frame(described))
        processor.fitted = True
        restart(processor)


def restart(processor: DataProcessor) -> None:
    """Puts every generator back to its own seed, which hashes public values."""
    processor.reset_sampling()
    for transformer in filter(None, processor._hyper_transformer.field_transformers.values()):
        # IndexGenerator's own reset leaves states that RDT seeds from the operating system.
        BaseTransformer.reset_randomization(transformer)


def generate(
    processor: DataProcessor, num_rows: int, names: list[str], dtypes: Mapping[str, Any]
) -> Mapping[str, pd.Series]:
    """The next values of generated columns, in the dtypes that can hold them."""
    if not names:
        return {}
    made = {name: pd.Series([], dtype=object) for name in names}
    if num_rows:
        table: pd.DataFrame = processor._hyper_transformer.create_anonymized_columns(
            num_rows=num_rows, column_names=names
        )
        made = {name: pd.Series(table[name]) for name in names}
    return {name: in_dtype(values, dtypes.get(name)) for name, values in made.items()}


def patterns_of(processor: DataProcessor, described: Mapping[str, Mapping]) -> dict[str, str]:
    """The patterns of generated columns: of the metadata, or of a generator in its place."""
    found = {name: facts.get("regex_format") for name, facts in described.items()}
    for name, transformer in processor._hyper_transformer.field_transformers.items():
        found[name] = getattr(transformer, "regex_format", found.get(name))
    return {name: pattern for name, pattern in found.items() if pattern}


def check_generator(name: str, transformer: BaseTransformer | None) -> None:
    """Raises ``SynthesizerInputError`` for what is no generator, or would learn from the table."""
    if not isinstance(transformer, BaseTransformer):
        raise SynthesizerInputError(
            f"Column '{name}' needs a generator such as AnonymizedFaker, got {transformer!r}."
        )
    if not transformer.is_generator() or isinstance(transformer, PseudoAnonymizedFaker):
        raise SynthesizerInputError(
            f"Transformer {type(transformer).__name__} for column '{name}' would learn from the "
            "private table. Use a generator such as AnonymizedFaker."
        )
    rule = getattr(transformer, "cardinality_rule", None)
    if rule not in (None, "unique"):
        raise SynthesizerInputError(
            f"cardinality_rule={rule!r} for column '{name}' would learn from the private table. "
            "Use None or 'unique'."
        )
