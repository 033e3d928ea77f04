"""The particle engine: a point cloud moved until its marginals match (Donhauser et al. 2024)."""
