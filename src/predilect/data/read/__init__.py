"""Readers: from files and data frames to answers and features."""
