"""What follows a run while it trains: callbacks, what they measure, and where they write it."""
