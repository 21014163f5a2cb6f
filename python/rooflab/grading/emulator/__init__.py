"""A CUDA kernel run without a GPU: a small part of C++, one thread after the other."""
