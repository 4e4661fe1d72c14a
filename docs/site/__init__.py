"""What makes the site: pages whose numbers come from a run, pictures, formulas."""
