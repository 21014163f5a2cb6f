"""Processes for untrusted code: started, limited, isolated and communicated with."""
