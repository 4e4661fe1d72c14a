"""What models write: greedy, drawn, or searched with beams, one token after the other."""
