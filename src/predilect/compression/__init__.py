"""The valuable vector machine: a model reduced to the items that matter."""
