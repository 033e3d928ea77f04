"""What only the paper's own settings need: its projection, its optimizer and its directions."""
