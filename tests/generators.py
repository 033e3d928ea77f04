"""Repeatable randomness of torch's."""

import torch


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)
