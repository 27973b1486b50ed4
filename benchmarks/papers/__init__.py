"""What only the papers' tables need: variants that no user chooses, and what a paper did that predicts no better."""
