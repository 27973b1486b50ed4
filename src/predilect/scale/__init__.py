"""Map a function over shards of people in threads, with the same bits for any number of threads."""
