"""The code that only a GPU needs: Triton's kernels, steps in batches, and several devices.

``check`` compares the kernels with the reference before a fit uses them. They are tested in
Triton's interpreter and have not run on a device yet. ``distributed`` shares a batch of tables out
over several processes; it is for users of the engines, not of SDV's classes.
"""
