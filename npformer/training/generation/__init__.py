"""What models write, token by token: the likeliest, drawn at random, or by beam search."""
