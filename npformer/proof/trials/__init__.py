"""Try what a file of somebody's own code defines: find it, build it, call it, check it."""
