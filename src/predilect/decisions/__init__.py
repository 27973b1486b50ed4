"""From a posterior to a decision: rankings, tiers, and the probability of being best."""
