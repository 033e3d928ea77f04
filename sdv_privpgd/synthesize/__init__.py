"""Engines: from noisy measurements to a model that rows can be sampled from."""
