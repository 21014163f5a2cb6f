"""The judge, who runs a lab's test cells, and the processes that it asks: the worker and the runtime."""
