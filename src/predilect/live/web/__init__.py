"""Polls over HTTP: pages for participants and organisers, and an API of JSON for the same."""
