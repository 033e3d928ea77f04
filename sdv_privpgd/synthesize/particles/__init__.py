"""The particle engine moves a point cloud until its marginals match (Donhauser et al. 2024).

Read ``descent`` first: its ``fit`` follows Algorithm 3 line by line. ``projection`` makes
probability measures of the noisy tables (line 1), ``kernels`` and ``steps`` are the descent (lines
3 to 7), and ``local_search`` is ours: it settles single cells. ``binned_displacement`` is the
kernel that numba compiles. ``batched_projection`` and ``batched_local_search`` work in torch, on
any device. ``paper`` has what only the paper's own settings need.
"""
