"""The posterior of GaSPK: characteristics of trade-offs, and people's weights on them."""
