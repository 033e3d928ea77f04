"""What only a GPU needs: Triton's kernels, the steps in batches, and several devices."""
