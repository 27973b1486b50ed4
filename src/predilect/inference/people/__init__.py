"""Many people with few answers each: layout, expectation propagation, prediction, updates."""
