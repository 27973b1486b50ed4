"""Estimators in the manner of scikit-learn: they validate and assemble, and hold no mathematics."""
