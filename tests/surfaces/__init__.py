"""One room of tests per way of being called."""
