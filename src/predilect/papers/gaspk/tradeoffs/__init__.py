"""Trade-offs between items, and grids of them."""
