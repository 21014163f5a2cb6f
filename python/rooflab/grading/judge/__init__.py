"""The judge, who runs a lab's test cells, and the processes that it asks: worker, runtime, and one for kernels."""
