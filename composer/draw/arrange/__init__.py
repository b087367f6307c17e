"""What a reader wants otherwise in a figure: nodes left out, in one box or under other words, colors by sizes, a legend."""
