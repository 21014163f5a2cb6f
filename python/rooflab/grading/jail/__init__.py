"""Processes for code that nobody trusts: started, limited, isolated and spoken to."""
