"""
The native half of rooflab. Use it through `import rooflab`.
"""
from __future__ import annotations
import builtins
import collections.abc
import numpy
import pandas
import rooflab._handles
import rooflab.composed.random
import rooflab.results
import rooflab._device
from rooflab._results import ValuesAndIndices
import typing
import typing_extensions
from . import _autograd
from . import _autocast
from . import _target
from . import _gemma3
from . import _compiler
from . import memory
from . import cuda
__all__: list[str] = ['Cost', 'Counts', 'CudaError', 'DType', 'Graph', 'OutOfMemoryError', 'ProfilerSession', 'Tensor', 'ValuesAndIndices', 'Variant', 'abs', 'adamw', 'add', 'add_library_directory', 'all', 'allclose', 'amax', 'amin', 'any', 'arange', 'argmax', 'argmin', 'argsort', 'attention', 'attention_backward', 'attention_mask', 'bfloat16', 'bitwise_and', 'bitwise_not', 'bitwise_or', 'bitwise_xor', 'bool_', 'cast', 'cat', 'ceil', 'chunk', 'clamp', 'copy', 'cos', 'count', 'cpu_isa', 'cross_entropy', 'cross_entropy_backward', 'cuda', 'cumsum', 'div', 'einsum', 'elu', 'embedding', 'empty', 'empty_like', 'eq', 'exp', 'eye', 'flatten', 'float16', 'float32', 'float64', 'floor', 'floor_divide', 'from_cuda_array', 'from_dlpack', 'full', 'full_like', 'gather', 'ge', 'geglu', 'geglu_backward', 'gelu', 'gelu_backward', 'get_float32_matmul_precision', 'get_rng_state', 'gt', 'index_select', 'int32', 'int64', 'is_grad_enabled', 'isclose', 'isfinite', 'isinf', 'isnan', 'kv_append', 'layer_norm', 'layer_norm_backward', 'le', 'lerp', 'linear', 'linspace', 'log', 'log10', 'log2', 'log_softmax', 'log_softmax_backward', 'logsigmoid', 'logsumexp', 'lt', 'manual_seed', 'masked_fill', 'matmul', 'matmul_bias', 'matmul_float32', 'max', 'maximum', 'mean', 'median', 'memory', 'meta', 'min', 'minimum', 'mul', 'nan_to_num', 'ne', 'neg', 'nonzero', 'num_threads', 'ones', 'ones_like', 'ops', 'pow', 'prelu', 'prod', 'rand', 'rand_like', 'randint', 'randn', 'randn_like', 'range', 'relu', 'relu_backward', 'remainder', 'repeat_interleave', 'rms_norm', 'rms_norm_add', 'rms_norm_backward', 'rms_norm_rope', 'rope', 'round', 'rsqrt', 'scatter_add', 'set_cpu_blas', 'set_cpu_isa', 'set_float32_matmul_precision', 'set_num_threads', 'set_rng_state', 'sigmoid', 'sigmoid_backward', 'sign', 'silu', 'silu_backward', 'sin', 'softmax', 'softmax_backward', 'softplus', 'sort', 'split', 'sqrt', 'squeeze', 'stack', 'std', 'sub', 'sum', 'swiglu', 'swiglu_backward', 'take_stacks', 'tanh', 'tanh_backward', 'tensor', 'topk', 'tril', 'triu', 'trunc', 'unsqueeze', 'var', 'variants', 'where', 'zeros', 'zeros_like']
class OutOfMemoryError(MemoryError):
    """
    The device has no memory left; the message says what was asked for, and which ops hold how much.
    """
class CudaError(RuntimeError):
    """
    A CUDA call or library failed or is missing.
    """
class DType:
    """
    An element type: rooflab.float32, rooflab.bfloat16 ... Operands of several dtypes meet in a common one, as in PyTorch. A floating dtype goes before integers, these before bool, and a wider one before a narrower one; float16 and bfloat16 meet in float32. A tensor without dimensions, or a number, counts only if it is of a higher kind than the others: rl.arange(3) * 2 is int64, and rl.arange(3) * 0.5 is float32.
    """
    def __eq__(self, arg0: typing.Any) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __reduce__(self) -> str:
        ...
    def __repr__(self) -> str:
        ...
    def __str__(self) -> str:
        ...
    @property
    def is_floating_point(self) -> bool:
        ...
    @property
    def itemsize(self) -> int:
        """
        Bytes per element.
        """
    @property
    def name(self) -> str:
        ...
class Tensor:
    """
    An n-dimensional array on one device; copies and views share its memory.
    """
    def __abs__(self) -> Tensor:
        ...
    def __add__(self, arg0: typing.Any) -> Tensor:
        ...
    def __and__(self, arg0: typing.Any) -> Tensor:
        ...
    def __array__(self, dtype: typing.Any = None, copy: builtins.bool | None = None) -> numpy.ndarray[typing.Any, typing.Any]:
        ...
    def __array_ufunc__(self, ufunc: numpy.ufunc, method: str, *inputs: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """
        What NumPy calls for its function of a tensor, and for `array + x`.
        
            Operators are rooflab's, and so are functions that rooflab has, where they give the same dtype as NumPy's: counted,
            with gradients, on any device. NumPy computes the others from tensors on the CPU, which is not counted; the result
            is a tensor too.
        
            Parameters
            ----------
            ufunc, method, inputs, kwargs
                As NumPy's protocol has them.
        
            Returns
            -------
            Tensor or tuple of Tensor
                The result.
        
            Raises
            ------
            TypeError
                For methods such as ``np.add.reduce``, and for ``out=`` and ``where=``.
            ValueError
                For tensors that NumPy cannot read: on other devices, or in a graph.
        
            Examples
            --------
            >>> import numpy as np, rooflab as rl
            >>> np.exp(rl.zeros(2)), np.arctan(rl.zeros(1))
            (tensor([1., 1.]), tensor([0.]))
            
        """
    def __bool__(self) -> builtins.bool:
        ...
    def __contains__(self, arg0: typing.Any) -> builtins.bool:
        ...
    def __copy__(self) -> Tensor:
        ...
    def __deepcopy__(self, arg0: dict) -> Tensor:
        ...
    def __dlpack__(self, **kwargs) -> typing_extensions.CapsuleType:
        ...
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]:
        ...
    def __eq__(self, arg0: typing.Any) -> Tensor:
        ...
    def __float__(self) -> builtins.float:
        ...
    def __floordiv__(self, arg0: typing.Any) -> Tensor:
        ...
    def __format__(self, arg0: str) -> str:
        ...
    def __ge__(self, arg0: typing.Any) -> Tensor:
        ...
    def __getitem__(self, arg0: typing.Any) -> Tensor:
        ...
    def __gt__(self, arg0: typing.Any) -> Tensor:
        ...
    def __hash__(self):
        """
        Return hash(self).
        """
    def __iadd__(self, arg0: typing.Any) -> Tensor:
        ...
    def __iand__(self, arg0: typing.Any) -> Tensor:
        ...
    def __ifloordiv__(self, arg0: typing.Any) -> Tensor:
        ...
    def __imod__(self, arg0: typing.Any) -> Tensor:
        ...
    def __imul__(self, arg0: typing.Any) -> Tensor:
        ...
    def __index__(self) -> builtins.int:
        ...
    def __int__(self) -> builtins.int:
        ...
    def __invert__(self) -> Tensor:
        ...
    def __ior__(self, arg0: typing.Any) -> Tensor:
        ...
    def __ipow__(self, arg0: typing.Any) -> Tensor:
        ...
    def __isub__(self, arg0: typing.Any) -> Tensor:
        ...
    def __iter__(self) -> collections.abc.Iterator[Tensor]:
        ...
    def __itruediv__(self, arg0: typing.Any) -> Tensor:
        ...
    def __ixor__(self, arg0: typing.Any) -> Tensor:
        ...
    def __le__(self, arg0: typing.Any) -> Tensor:
        ...
    def __len__(self) -> builtins.int:
        ...
    def __lt__(self, arg0: typing.Any) -> Tensor:
        ...
    def __matmul__(self, arg0: typing.Any) -> Tensor:
        ...
    def __mod__(self, arg0: typing.Any) -> Tensor:
        ...
    def __mul__(self, arg0: typing.Any) -> Tensor:
        ...
    def __ne__(self, arg0: typing.Any) -> Tensor:
        ...
    def __neg__(self) -> Tensor:
        ...
    def __or__(self, arg0: typing.Any) -> Tensor:
        ...
    def __pos__(self) -> Tensor:
        ...
    def __pow__(self, arg0: typing.Any) -> Tensor:
        ...
    def __radd__(self, arg0: typing.Any) -> Tensor:
        ...
    def __rand__(self, arg0: typing.Any) -> Tensor:
        ...
    def __reduce__(self) -> tuple:
        ...
    def __repr__(self) -> str:
        ...
    def __rfloordiv__(self, arg0: typing.Any) -> Tensor:
        ...
    def __rmatmul__(self, arg0: typing.Any) -> Tensor:
        ...
    def __rmod__(self, arg0: typing.Any) -> Tensor:
        ...
    def __rmul__(self, arg0: typing.Any) -> Tensor:
        ...
    def __ror__(self, arg0: typing.Any) -> Tensor:
        ...
    def __rpow__(self, arg0: typing.Any) -> Tensor:
        ...
    def __rsub__(self, arg0: typing.Any) -> Tensor:
        ...
    def __rtruediv__(self, arg0: typing.Any) -> Tensor:
        ...
    def __rxor__(self, arg0: typing.Any) -> Tensor:
        ...
    def __setitem__(self, arg0: typing.Any, arg1: typing.Any) -> None:
        ...
    def __sub__(self, arg0: typing.Any) -> Tensor:
        ...
    def __truediv__(self, arg0: typing.Any) -> Tensor:
        ...
    def __xor__(self, arg0: typing.Any) -> Tensor:
        ...
    def abs(self) -> Tensor:
        """
        |x|, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([1.0, -2.0]).abs().tolist()
        [1.0, 2.0]
        """
    def add(self, other: typing.Any, *, alpha: builtins.float = 1) -> Tensor:
        """
        self + alpha other, elementwise; shapes broadcast. One launch, and one more for another `alpha` than 1.
        
            Parameters
            ----------
            other : Tensor or number
                Of a shape that broadcasts with this one's.
            alpha : float
                What `other` is multiplied by first.
        
            Returns
            -------
            Tensor
                Of the shape that both broadcast to, and of their common dtype.
        
            Raises
            ------
            ValueError
                For shapes that do not broadcast, and a number that the dtype cannot hold.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.tensor([1.0, 6.0]).add(rl.tensor([4.0, 2.0]), alpha=2).tolist()
            [9.0, 10.0]
            
        """
    def add_(self, other: typing.Any, *, alpha: typing.Any = 1) -> Tensor:
        """
        self += alpha other, in place. One launch.
        
        Parameters
        ----------
        other : Tensor or number
            Of a shape that broadcasts to this one's. The result is rounded to this tensor's dtype.
        alpha : number
            What `other` is multiplied by; if it is not 1, that takes one more launch.
        
        Returns
        -------
        Tensor
            The tensor itself.
        
        Raises
        ------
        ValueError
            For a shape that does not broadcast, a dtype that cannot hold the result, and a leaf that requires grad, unless
            under rl.no_grad().
        TypeError
            For what is neither tensor nor number.
        
        Examples
        --------
        >>> rl.tensor([3.0, 6.0]).add_(3).tolist()
        [6.0, 9.0]
        """
    def addmm(self, a: Tensor, b: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """
        beta x + alpha a b. Composed of a product, a sum and a launch for each factor that is not 1.
        
        Each rounds its result to the dtype: in float16 the product has to fit before x is added.
        
        `x` is this tensor: broadcasts to (M, N).
        
        Parameters
        ----------
        a : Tensor
            (M, K).
        b : Tensor
            (K, N).
        beta, alpha : float
            Factors. NaN and infinities count nothing where the factor is 0. If beta is, x is read only if it requires grad
            or is of another dtype.
        
        Returns
        -------
        Tensor
            (M, N).
        
        Raises
        ------
        TypeError
            For a factor that requires grad.
        ValueError
            For shapes that do not fit.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(2).addmm(rl.ones(1, 3), rl.ones(3, 2)).tolist()
        [[4.0, 4.0]]
        """
    def all(self, dim: typing.Any = None, keepdim: builtins.bool = False, variant: str = '') -> Tensor:
        """
        Whether all elements are true (not 0), over one, several or all dimensions.
        
        One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU takes two for few results.
        
        `x` is this tensor: of any dtype; NaN is true.
        
        Parameters
        ----------
        dim : int, tuple of int or None
            What to go over; None and an empty tuple are all.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        
        Returns
        -------
        Tensor
            bool; True if there is no element.
        
        Raises
        ------
        ValueError
            For a `dim` that `x` lacks or that appears twice.
        
        Examples
        --------
        >>> rl.tensor([[1, 0], [1, 1]]).all(dim=1).tolist()
        [False, True]
        """
    def allclose(self, other: Tensor, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> builtins.bool:
        """
        Whether all elements are close: |a - b| <= atol + rtol |b|, or equal.
        
        Made of abs, sub, mul, add, comparisons and where, in float32 for 16 bits and in float64 for integers; counted as these.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor
            Of one dtype and device; shapes broadcast.
        rtol, atol : float
            The relative and the absolute tolerance.
        equal_nan : bool
            Whether NaN is close to NaN.
        
        Returns
        -------
        bool
            Read back from the device: on a GPU this waits for it.
        
        Raises
        ------
        ValueError
            When shapes, dtypes or devices do not fit, or a tolerance is negative.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).allclose(rl.tensor([1.0, 2.1]))
        False
        """
    def amax(self, dim: typing.Any = None, keepdim: builtins.bool = False, variant: str = '') -> Tensor:
        """
        The largest element over one, several or all dimensions.
        
        One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first.
        
        `x` is this tensor: of any dtype and shape.
        
        Parameters
        ----------
        dim : int, tuple of int or None
            What to reduce over; None is all.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        
        Returns
        -------
        Tensor
            Of the dtype of `x`; NaN where there is one. Equal largest elements share the gradient evenly.
        
        Raises
        ------
        ValueError
            When there is no element to choose from; for a `dim` that `x` lacks or that appears twice.
        
        Examples
        --------
        >>> rl.tensor([[1.0, 5.0], [7.0, 2.0]]).amax(dim=1).tolist()
        [5.0, 7.0]
        """
    def amin(self, dim: typing.Any = None, keepdim: builtins.bool = False, variant: str = '') -> Tensor:
        """
        The smallest element over one, several or all dimensions.
        
        One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first.
        
        `x` is this tensor: of any dtype and shape.
        
        Parameters
        ----------
        dim : int, tuple of int or None
            What to reduce over; None is all.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        
        Returns
        -------
        Tensor
            Of the dtype of `x`; NaN where there is one. Equal smallest elements share the gradient evenly.
        
        Raises
        ------
        ValueError
            When there is no element to choose from; for a `dim` that `x` lacks or that appears twice.
        
        Examples
        --------
        >>> rl.tensor([[1.0, 5.0], [7.0, 2.0]]).amin(dim=1).tolist()
        [1.0, 2.0]
        """
    def any(self, dim: typing.Any = None, keepdim: builtins.bool = False, variant: str = '') -> Tensor:
        """
        Whether any element is true (not 0), over one, several or all dimensions.
        
        One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU takes two for few results.
        
        `x` is this tensor: of any dtype; NaN is true.
        
        Parameters
        ----------
        dim : int, tuple of int or None
            What to go over; None and an empty tuple are all.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        
        Returns
        -------
        Tensor
            bool; False if there is no element.
        
        Raises
        ------
        ValueError
            For a `dim` that `x` lacks or that appears twice.
        
        Examples
        --------
        >>> rl.tensor([[1, 0], [1, 1]]).any(dim=1).tolist()
        [True, True]
        """
    def argmax(self, dim: typing.SupportsIndex | None = None, keepdim: builtins.bool = False, variant: str = '') -> Tensor:
        """
        The position of the largest element along a dimension, or in the whole tensor.
        
        One launch, 1 FLOP per element of `x`.
        
        `x` is this tensor: of any dtype and shape.
        
        Parameters
        ----------
        dim : int or None
            Along which dimension; None takes the tensor as flattened.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        variant : str
            A rung of rl.variants("argmax"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            int64: the first among equal elements; the first NaN, if there is one.
        
        Raises
        ------
        ValueError
            When there is no element to choose from; for a `dim` that `x` lacks.
        
        Examples
        --------
        >>> rl.tensor([[1.0, 5.0], [7.0, 2.0]]).argmax(dim=1).tolist()
        [1, 0]
        """
    def argmin(self, dim: typing.SupportsIndex | None = None, keepdim: builtins.bool = False, variant: str = '') -> Tensor:
        """
        The position of the smallest element along a dimension, or in the whole tensor.
        
        One launch, 1 FLOP per element of `x`.
        
        `x` is this tensor: of any dtype and shape.
        
        Parameters
        ----------
        dim : int or None
            Along which dimension; None takes the tensor as flattened.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        variant : str
            A rung of rl.variants("argmin"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            int64: the first among equal elements; the first NaN, if there is one.
        
        Raises
        ------
        ValueError
            When there is no element to choose from; for a `dim` that `x` lacks.
        
        Examples
        --------
        >>> rl.tensor([[1.0, 5.0], [7.0, 2.0]]).argmin(dim=1).tolist()
        [0, 1]
        """
    def argsort(self, dim: typing.SupportsIndex = -1, descending: builtins.bool = False) -> Tensor:
        """
        The indices that sort the elements along a dimension.
        
        These are the indices of rl.sort, and they are counted like it.
        
        `x` is this tensor: of any dtype.
        
        Parameters
        ----------
        dim : int
            Along which dimension.
        descending : bool
            Whether the largest come first.
        
        Returns
        -------
        Tensor
            int64, of the shape of `x`.
        
        Raises
        ------
        ValueError
            For a `dim` that `x` lacks.
        
        Examples
        --------
        >>> rl.tensor([3.0, 1.0, 2.0]).argsort().tolist()
        [1, 2, 0]
        """
    def backward(self, gradient: Tensor | None = None, retain_graph: builtins.bool = False) -> None:
        """
        The gradients of attention, with the scores recomputed.
        
        5 D_h MACs per visible pair; no L_q x L_kv tensor except in "v0_composed". v and dout of hidden pairs add nothing, NaN or
        not; q and k must be finite. Source: Dao, FlashAttention-2 (arXiv:2307.08691), algorithm 2.
        
        Parameters
        ----------
        dout, out : Tensor
            The gradient of the result, and the result; like q.
        q, k, v : Tensor
            What `attention` got, and so with attn_mask, is_causal, window and scale.
        lse, lse_rest : Tensor
            What attention(..., return_lse_rest=True) returned; without the rest it counts as 0, which costs digits where |lse| is
            large.
        deterministic : bool
            The same bits on every run.
        variant : str
            A rung of rl.variants("attention_backward"); the fastest that fits when empty.
        
        Returns
        -------
        tuple of Tensor
            (dq, dk, dv), laid out like q, k and v.
        
        Raises
        ------
        ValueError
            For shapes or dtypes that do not fit.
        
        Examples
        --------
        >>> q = rl.randn(1, 4, 8, 16)
        >>> out, lse = rl.attention(q, q, q, return_lse=True)
        >>> [gradient.shape for gradient in rl.attention_backward(rl.ones_like(out), q, q, q, out, lse)]
        [(1, 4, 8, 16), (1, 4, 8, 16), (1, 4, 8, 16)]
        """
    def bernoulli(self, *, generator: rooflab.composed.random.Generator | None = None) -> Tensor:
        """
        1 with probability p, else 0. Composed of seven launches.
        
        `p` is this tensor: (...), floating, from 0 to 1.
        
        Parameters
        ----------
        generator : Generator, optional
            Where the random numbers come from.
        
        Returns
        -------
        Tensor
            (...), of p's dtype.
        
        Raises
        ------
        ValueError
            For integers, and for numbers that are not from 0 to 1. Reading this from the device waits for it.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([0.0, 1.0]).bernoulli().tolist()
        [0.0, 1.0]
        """
    def bfloat16(self) -> Tensor:
        """
        The tensor in bfloat16. One launch, unless it is that already.
        
        Returns
        -------
        Tensor
            The tensor itself, or a copy, rounded to 8 significant bits. Gradients pass through it.
        
        Raises
        ------
        OutOfMemoryError
            When the copy does not fit.
        
        Examples
        --------
        >>> rl.tensor([1.0, 257.0]).bfloat16().tolist()
        [1.0, 256.0]
        """
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
        """
        How often each number from 0 on occurs. Composed of six launches; two results are read from the device.
        
        Where there are more numbers than counts, weights of float32 or 16 bits are added in float64, which takes one more.
        
        `x` is this tensor: (N,), integers >= 0.
        
        Parameters
        ----------
        weights : Tensor, optional
            (N,): what each counts.
        minlength : int
            The least number of counts.
        
        Returns
        -------
        Tensor
            int64; with weights float32 for those of float32, else float64.
        
        Raises
        ------
        ValueError
            For negative or other numbers, and other shapes.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([0, 2, 2]).bincount().tolist()
        [1, 0, 2]
        """
    def bitwise_not(self) -> Tensor:
        """
        ~x, bit by bit; for a bool, its opposite, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([True, False]).bitwise_not().tolist()
        [False, True]
        """
    def bmm(self, b: Tensor) -> Tensor:
        """
        ``rl.matmul`` of as many matrices as b has.
        
        `a` is this tensor: (B, M, K).
        
        Parameters
        ----------
        b : Tensor
            (B, K, N).
        
        Returns
        -------
        Tensor
            (B, M, N).
        
        Raises
        ------
        ValueError
            For other dimensions, or sizes that do not fit.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(5, 2, 3).bmm(rl.ones(5, 3, 4)).shape
        (5, 2, 4)
        """
    def bool(self) -> Tensor:
        """
        Whether each element is not 0. One launch, unless it is bool already.
        
        Returns
        -------
        Tensor
            bool: the tensor itself, or a copy; NaN is true.
        
        Raises
        ------
        OutOfMemoryError
            When the copy does not fit.
        
        Examples
        --------
        >>> rl.tensor([0.0, 0.5]).bool().tolist()
        [False, True]
        """
    def broadcast_to(self, shape: typing.Sequence[builtins.int]) -> Tensor:
        """
        ``x.expand(shape)``, a view.
        
        `x` is this tensor.
        
        Parameters
        ----------
        shape : sequence of int
            What x broadcasts to.
        
        Returns
        -------
        Tensor
            A view.
        
        Raises
        ------
        ValueError
            For a shape that x does not broadcast to.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(3).broadcast_to((2, 3)).shape
        (2, 3)
        """
    def ceil(self) -> Tensor:
        """
        the smallest integer that is not below x; it has no gradient, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([1.5, -1.5]).ceil().tolist()
        [2.0, -1.0]
        """
    def chunk(self, chunks: typing.SupportsIndex, dim: typing.SupportsIndex = 0) -> tuple[Tensor, ...]:
        """
        Splits a tensor into a number of equal parts along a dimension. Views: nothing is launched, and backward is that of
        rl.split.
        
        `x` is this tensor: what to cut.
        
        Parameters
        ----------
        chunks : int
            How many parts. The size of a part is rounded up, so there may be fewer.
        dim : int
            Along which dimension.
        
        Returns
        -------
        tuple of Tensor
            Views of `x`; the last may be smaller.
        
        Raises
        ------
        ValueError
            When `chunks` is not positive; for a `dim` that `x` lacks.
        
        Examples
        --------
        >>> [part.tolist() for part in rl.arange(5).chunk(2)]
        [[0, 1, 2], [3, 4]]
        """
    def clamp(self, min: builtins.float | None = None, max: builtins.float | None = None, variant: str = '') -> Tensor:
        """
        The elements, limited to the range from `min` to `max`.
        
        One launch, 2 FLOPs per element; with one bound it is rl.maximum or rl.minimum, and counted as that. Only elements
        between the bounds have a gradient: at a bound it is 0, as in PyTorch 2.15. For bounds that are tensors, use rl.maximum
        and rl.minimum.
        
        `x` is this tensor: of any numeric dtype; NaN stays.
        
        Parameters
        ----------
        min, max : float, optional
            At least one of them; where they cross, `max` wins.
        variant : str
            A rung of rl.variants("clamp"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            Of the shape of `x`, and of its dtype; float32 for integers with a bound that is a float.
        
        Raises
        ------
        ValueError
            Without a bound; for one that the dtype cannot hold.
        
        Examples
        --------
        >>> rl.tensor([-2.0, 0.5, 3.0]).clamp(0, 1).tolist()
        [0.0, 0.5, 1.0]
        """
    def clip(self, min: builtins.float | None = None, max: builtins.float | None = None) -> Tensor:
        """
        The elements, limited to the range from `min` to `max`.
        
        One launch, 2 FLOPs per element; with one bound it is rl.maximum or rl.minimum, and counted as that. Only elements
        between the bounds have a gradient: at a bound it is 0, as in PyTorch 2.15. For bounds that are tensors, use rl.maximum
        and rl.minimum.
        
        `x` is this tensor: of any numeric dtype; NaN stays.
        
        Parameters
        ----------
        min, max : float, optional
            At least one of them; where they cross, `max` wins.
        
        Returns
        -------
        Tensor
            Of the shape of `x`, and of its dtype; float32 for integers with a bound that is a float.
        
        Raises
        ------
        ValueError
            Without a bound; for one that the dtype cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([-2.0, 0.5, 3.0]).clip(0, 1).tolist()
        [0.0, 0.5, 1.0]
        """
    def clone(self) -> Tensor:
        """
        A contiguous copy. One launch.
        
        Returns
        -------
        Tensor
            With memory of its own. Gradients pass through it.
        
        Raises
        ------
        OutOfMemoryError
            When the copy does not fit.
        
        Examples
        --------
        >>> x = rl.ones(2)
        >>> y = x.clone().fill_(7)
        >>> x.tolist()
        [1.0, 1.0]
        """
    def contiguous(self) -> Tensor:
        """
        The same elements in row-major order without gaps.
        
        Returns
        -------
        Tensor
            The tensor itself if it is contiguous. Otherwise a copy, which takes one launch.
        
        Raises
        ------
        OutOfMemoryError
            When a copy does not fit.
        
        Examples
        --------
        >>> rl.ones(2, 3).T.contiguous().strides
        (2, 1)
        """
    def copy_(self, source: Tensor) -> Tensor:
        """
        Write the elements of another tensor to this one, in place. One launch on one device.
        
        Parameters
        ----------
        source : Tensor
            Of any dtype and device, and of a shape that broadcasts to this one's.
        
        Returns
        -------
        Tensor
            The tensor itself.
        
        Raises
        ------
        ValueError
            For a shape that does not broadcast, and for a tensor that requires grad, unless under rl.no_grad().
        
        Examples
        --------
        >>> rl.zeros(2, 2).copy_(rl.tensor([1, 2])).tolist()
        [[1.0, 2.0], [1.0, 2.0]]
        """
    def cos(self) -> Tensor:
        """
        cosine of x radians, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([0.0, 0.0]).cos().tolist()
        [1.0, 1.0]
        """
    def count_nonzero(self, dim: builtins.int | typing.Sequence[builtins.int] | None = None) -> Tensor:
        """
        How many elements are not 0. Composed of two launches, of one for bool.
        
        `x` is this tensor.
        
        Parameters
        ----------
        dim : int or sequence of int, optional
            What to go over; by default all.
        
        Returns
        -------
        Tensor
            int64.
        
        Raises
        ------
        ValueError
            For dimensions that x lacks.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([0.0, 2.0]).count_nonzero().item()
        1
        """
    def cpu(self) -> Tensor:
        """
        The tensor on the CPU.
        
        Returns
        -------
        Tensor
            The tensor itself if it is there already; else a copy, which waits for the GPU.
        
        Raises
        ------
        ValueError
            On "meta", where there are no values to copy.
        
        Examples
        --------
        >>> x = rl.ones(2)
        >>> x.cpu().data_ptr() == x.data_ptr()
        True
        """
    def cuda(self) -> Tensor:
        """
        The tensor on the current GPU.
        
        Returns
        -------
        Tensor
            The tensor itself if it is there already; else a copy.
        
        Raises
        ------
        CudaError
            When there is no GPU.
        OutOfMemoryError
            When the copy does not fit.
        
        Examples
        --------
        >>> if rl.cuda.is_available():
        ...     x = rl.ones(2).cuda()
        """
    def cumsum(self, dim: typing.SupportsIndex, variant: str = '') -> Tensor:
        """
        Running sums along a dimension: y[k] = x[0] + ... + x[k].
        
        One launch, 1 FLOP per element. Accumulated in double on the CPU and in float32 on a GPU (float64 in double). A GPU adds
        in another order: an infinity or NaN may stand where numbers near the largest of a dtype cancel each other.
        
        `x` is this tensor: of any dtype.
        
        Parameters
        ----------
        dim : int
            Along which dimension.
        variant : str
            A rung of rl.variants("cumsum"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            Of the shape of `x`; int64 for integers and bool, else of its dtype.
        
        Raises
        ------
        ValueError
            For a `dim` that `x` lacks.
        
        Examples
        --------
        >>> rl.tensor([1, 2, 3]).cumsum(dim=0).tolist()
        [1, 3, 6]
        """
    def data_ptr(self) -> builtins.int:
        """
        The address of its first element.
        
        Returns
        -------
        int
            In the memory of its device; 0 where there is no element. On "meta" it is a number that stands for no memory.
        
        Examples
        --------
        >>> x = rl.ones(4)
        >>> x[1:].data_ptr() - x.data_ptr()
        4
        """
    def detach(self) -> Tensor:
        """
        The same memory, outside of any graph.
        
        Returns
        -------
        Tensor
            A view that does not require grad.
        
        Examples
        --------
        >>> x = rl.ones(2, requires_grad=True)
        >>> x.detach().requires_grad
        False
        """
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """
        A matrix with the vector x on a diagonal, or the diagonal of the matrix x.
        
        Composed of one launch for a matrix. For a vector of two, and of up to five beside the main diagonal.
        
        `x` is this tensor: (N,) or (M, N).
        
        Parameters
        ----------
        diagonal : int
            0 is the main one; larger ones lie to the right of it.
        
        Returns
        -------
        Tensor
            (N + |diagonal|, N + |diagonal|), or the diagonal.
        
        Raises
        ------
        ValueError
            For other dimensions.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).diag().tolist()
        [[1.0, 0.0], [0.0, 2.0]]
        """
    def dim(self) -> builtins.int:
        """
        How many dimensions it has, as `ndim` says.
        
        Returns
        -------
        int
            0 for a tensor of one element without dimensions.
        
        Examples
        --------
        >>> rl.ones(2, 3).dim()
        2
        """
    def div(self, other: typing.Any) -> Tensor:
        """
        a / b, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says. Integers are divided as float32.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 6.0]).div(rl.tensor([4.0, 2.0])).tolist()
        [0.25, 3.0]
        """
    def div_(self, other: typing.Any) -> Tensor:
        """
        self /= other, in place. One launch.
        
        Parameters
        ----------
        other : Tensor or number
            Of a shape that broadcasts to this one's. The result is rounded to this tensor's dtype.
        
        Returns
        -------
        Tensor
            The tensor itself.
        
        Raises
        ------
        ValueError
            For a shape that does not broadcast, a dtype that cannot hold the result, and a leaf that requires grad, unless
            under rl.no_grad().
        TypeError
            For what is neither tensor nor number.
        
        Examples
        --------
        >>> rl.tensor([3.0, 6.0]).div_(3).tolist()
        [1.0, 2.0]
        """
    def dot(self, b: Tensor) -> Tensor:
        """
        ``rl.matmul`` of two vectors.
        
        `a` is this tensor: (K,).
        
        Parameters
        ----------
        b : Tensor
            (K,).
        
        Returns
        -------
        Tensor
            A number.
        
        Raises
        ------
        ValueError
            For other dimensions, or sizes that do not fit.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(3).dot(rl.ones(3)).item()
        3.0
        """
    def double(self) -> Tensor:
        """
        The tensor in float64. One launch, unless it is that already.
        
        Returns
        -------
        Tensor
            The tensor itself, or a copy; gradients pass through it.
        
        Raises
        ------
        OutOfMemoryError
            When the copy does not fit.
        
        Examples
        --------
        >>> rl.ones(2).double().dtype
        rooflab.float64
        """
    def element_size(self) -> builtins.int:
        """
        How many bytes an element has, as `itemsize` says.
        
        Returns
        -------
        int
            Bytes.
        
        Examples
        --------
        >>> rl.ones(2).element_size()
        4
        """
    def eq(self, other: typing.Any) -> Tensor:
        """
        a == b, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).eq(rl.tensor([1.0, 3.0])).tolist()
        [True, False]
        """
    def equal(self, b: Tensor) -> builtins.bool:
        """
        Whether two tensors have the same shape and elements. Composed of two launches, and the result is read.
        
        `a` is this tensor.
        
        Parameters
        ----------
        b : Tensor
            (...).
        
        Returns
        -------
        bool
            False for NaN.
        
        Raises
        ------
        ValueError
            For tensors on two devices, or without memory.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(2).equal(rl.ones(2)), rl.ones(2).equal(rl.ones(3))
        (True, False)
        """
    def exp(self) -> Tensor:
        """
        e to the power x, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([0.0, 0.0]).exp().tolist()
        [1.0, 1.0]
        """
    def exp2(self) -> Tensor:
        """
        2 to the power x, one launch.
        
        `x` is this tensor: (...); integers give float32.
        
        Returns
        -------
        Tensor
            (...).
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([3.0]).exp2().tolist()
        [8.0]
        """
    def expand(self, *args) -> Tensor:
        """
        Dimensions of size 1 repeated without a copy. A view: nothing is launched.
        
        Parameters
        ----------
        *args : int, or one sequence of int
            The new shape. -1 keeps a size; more sizes than the tensor has are new dimensions in front.
        
        Returns
        -------
        Tensor
            A view, of which several elements share memory.
        
        Raises
        ------
        ValueError
            For another size of a dimension that is not 1, and for fewer sizes than the tensor has dimensions.
        
        Examples
        --------
        >>> rl.tensor([[1], [2]]).expand(2, 3).tolist()
        [[1, 1, 1], [2, 2, 2]]
        """
    def expand_as(self, other: Tensor) -> Tensor:
        """
        `expand` to the shape of another tensor.
        
            Parameters
            ----------
            other : Tensor
                Its shape may differ where this tensor has size 1, and have more dimensions in front.
        
            Returns
            -------
            Tensor
                A view; nothing is launched.
        
            Raises
            ------
            ValueError
                For a shape that this one does not expand to.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.tensor([[1], [2]]).expand_as(rl.ones(2, 2)).tolist()
            [[1, 1], [2, 2]]
            
        """
    @typing.overload
    def fill_(self, value: builtins.float) -> Tensor:
        """
        Write one number to all elements, in place. One launch.
        
        Parameters
        ----------
        value : float or Tensor
            A whole one for integers. A float that is too large for the dtype becomes infinite. A tensor has no dimensions, and
            is converted.
        
        Returns
        -------
        Tensor
            The tensor itself.
        
        Raises
        ------
        ValueError
            For a number that integers cannot hold, and for a tensor that requires grad, unless under rl.no_grad().
        
        Examples
        --------
        >>> rl.zeros(2).fill_(3).tolist()
        [3.0, 3.0]
        """
    @typing.overload
    def fill_(self, value: Tensor) -> Tensor:
        ...
    def flatten(self, start_dim: typing.SupportsIndex = 0, end_dim: typing.SupportsIndex = -1) -> Tensor:
        """
        Joins neighbouring dimensions into one. A view where the strides allow it, else one copy.
        
        `x` is this tensor: of any shape; without dimensions it becomes (1,).
        
        Parameters
        ----------
        start_dim, end_dim : int
            The first and the last dimension to join.
        
        Returns
        -------
        Tensor
            The same elements in the same order.
        
        Raises
        ------
        ValueError
            For a dimension that `x` lacks, or a start after the end.
        
        Examples
        --------
        >>> rl.zeros(2, 3, 4).flatten(start_dim=1).shape
        (2, 12)
        """
    def flip(self, *dims: builtins.int | typing.Sequence[builtins.int]) -> Tensor:
        """
        x in reverse order along dimensions. One launch.
        
        `x` is this tensor.
        
        Parameters
        ----------
        *dims : int, or one sequence of int
            Which dimensions.
        
        Returns
        -------
        Tensor
            A copy.
        
        Raises
        ------
        ValueError
            For dimensions that x lacks or that appear twice.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1, 2, 3]).flip(0).tolist()
        [3, 2, 1]
        """
    def float(self) -> Tensor:
        """
        The tensor in float32. One launch, unless it is that already.
        
        Returns
        -------
        Tensor
            The tensor itself, or a copy; gradients pass through it.
        
        Raises
        ------
        OutOfMemoryError
            When the copy does not fit.
        
        Examples
        --------
        >>> rl.tensor([1, 2]).float().tolist()
        [1.0, 2.0]
        """
    def floor(self) -> Tensor:
        """
        the largest integer that is not above x; it has no gradient, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([1.5, -1.5]).floor().tolist()
        [1.0, -2.0]
        """
    def floor_divide(self, other: typing.Any) -> Tensor:
        """
        a / b rounded down, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        An integer divided by zero raises ZeroDivisionError: on the CPU before anything is written, also in a replay
        of a graph. On a GPU and on "meta" only a divisor that is a number is checked, because the host does not see a
        tensor's elements; the result is 0 where one is 0. Floats give inf or NaN.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([7.0, -7.0]).floor_divide(rl.tensor([2.0, 2.0])).tolist()
        [3.0, -4.0]
        """
    def gather(self, dim: typing.SupportsIndex, index: Tensor, variant: str = '') -> Tensor:
        """
        One element of `x` for each number of an index, along `dim`.
        
        y[i, j, k] = x[index[i, j, k], j, k] for dim 0 of three. One launch.
        
        `x` is this tensor: what to choose from.
        
        Parameters
        ----------
        dim : int
            The dimension that the index counts.
        index : Tensor
            int64 or int32, with as many dimensions as `x`, none longer than that of `x` except `dim`.
        variant : str
            A rung of rl.variants("gather"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            Of the shape of `index` and the dtype of `x`. Its gradient is a scatter_add.
        
        Raises
        ------
        ValueError
            When shapes do not fit; for an index out of range. On a GPU this is raised at the next wait (see
            rl.cuda.synchronize), and the result holds NaN there, -1 for integers and True for bool.
        
        Examples
        --------
        >>> rl.tensor([[1, 2], [3, 4]]).gather(1, rl.tensor([[1], [0]])).tolist()
        [[2], [3]]
        """
    def ge(self, other: typing.Any) -> Tensor:
        """
        a >= b, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).ge(rl.tensor([1.0, 3.0])).tolist()
        [True, False]
        """
    def gt(self, other: typing.Any) -> Tensor:
        """
        a > b, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).gt(rl.tensor([1.0, 3.0])).tolist()
        [False, False]
        """
    def half(self) -> Tensor:
        """
        The tensor in float16. One launch, unless it is that already.
        
        Returns
        -------
        Tensor
            The tensor itself, or a copy, rounded to the nearest; infinite above 65504. Gradients pass through it.
        
        Raises
        ------
        OutOfMemoryError
            When the copy does not fit.
        
        Examples
        --------
        >>> rl.tensor([1.0, 1e6]).half().tolist()
        [1.0, inf]
        """
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: builtins.float = 1) -> Tensor:
        """
        x with slices of source added at places along a dimension.
        
        Composed of two launches, and one more for an alpha.
        
        `x` is this tensor.
        
        Parameters
        ----------
        dim : int
            The dimension.
        index : Tensor
            (N,), int64: where each slice goes. Places may appear several times.
        source : Tensor
            The shape of x but N along the dimension.
        alpha : float
            Factor of source.
        
        Returns
        -------
        Tensor
            A new tensor.
        
        Raises
        ------
        ValueError
            For sizes that do not fit, and for a place out of range, which is raised at the next wait for a GPU.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.zeros(3).index_add(0, rl.tensor([0, 0]), rl.ones(2)).tolist()
        [2.0, 0.0, 0.0]
        """
    def index_select(self, dim: typing.SupportsIndex, index: Tensor, variant: str = '') -> Tensor:
        """
        Slices of `x` along `dim`, chosen by an index, which may repeat.
        
        One launch.
        
        `x` is this tensor: what to choose from.
        
        Parameters
        ----------
        dim : int
            The dimension that the index counts.
        index : Tensor
            (N,), int64 or int32.
        variant : str
            A rung of rl.variants("index_select"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            As `x`, with size N along `dim`. Its gradient is a scatter_add.
        
        Raises
        ------
        ValueError
            When `index` is not one-dimensional; for an index out of range. On a GPU this is raised at the next wait (see
            rl.cuda.synchronize), and the result holds NaN there, -1 for integers and True for bool.
        
        Examples
        --------
        >>> rl.tensor([[1, 2], [3, 4]]).index_select(0, rl.tensor([1, 1])).tolist()
        [[3, 4], [3, 4]]
        """
    def int(self) -> Tensor:
        """
        The tensor in int32. One launch, unless it is that already.
        
        Returns
        -------
        Tensor
            The tensor itself, or a copy, rounded towards zero.
        
        Raises
        ------
        OutOfMemoryError
            When the copy does not fit.
        
        Examples
        --------
        >>> rl.tensor([1.5, -1.5]).int().tolist()
        [1, -1]
        """
    def is_contiguous(self) -> builtins.bool:
        """
        Whether its elements lie in row-major order without gaps.
        
        Returns
        -------
        bool
            True as well where there is no element.
        
        Examples
        --------
        >>> x = rl.ones(2, 3)
        >>> x.is_contiguous(), x.T.is_contiguous()
        (True, False)
        """
    def is_floating_point(self) -> builtins.bool:
        """
        Whether the dtype is floating.
        
            Returns
            -------
            bool
                True for float64, float32, float16 and bfloat16.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.ones(2).is_floating_point(), rl.tensor([1, 2]).is_floating_point()
            (True, False)
            
        """
    def isclose(self, other: Tensor, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False) -> Tensor:
        """
        Which elements are close: |a - b| <= atol + rtol |b|, or equal.
        
        Made of abs, sub, mul, add, comparisons and where, in float32 for 16 bits and in float64 for integers; counted as these.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor
            Of one dtype and device; shapes broadcast.
        rtol, atol : float
            The relative and the absolute tolerance.
        equal_nan : bool
            Whether NaN is close to NaN.
        
        Returns
        -------
        Tensor
            bool.
        
        Raises
        ------
        ValueError
            When shapes, dtypes or devices do not fit, or a tolerance is negative.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).isclose(rl.tensor([1.0, 2.1])).tolist()
        [True, False]
        """
    def isfinite(self) -> Tensor:
        """
        Whether it is neither NaN nor infinite, element by element.
        
        Made of abs and lt; True for integers and bool.
        
        `x` is this tensor: of any dtype.
        
        Returns
        -------
        Tensor
            bool, of the shape of `x`.
        
        Examples
        --------
        >>> rl.tensor([1.0, float("inf"), float("nan")]).isfinite().tolist()
        [True, False, False]
        """
    def isinf(self) -> Tensor:
        """
        Whether it is infinite, element by element.
        
        Made of abs and eq; False for integers and bool.
        
        `x` is this tensor: of any dtype.
        
        Returns
        -------
        Tensor
            bool, of the shape of `x`.
        
        Examples
        --------
        >>> rl.tensor([1.0, float("inf"), float("nan")]).isinf().tolist()
        [False, True, False]
        """
    def isnan(self) -> Tensor:
        """
        Whether it is NaN, element by element.
        
        Made of ne; False for integers and bool.
        
        `x` is this tensor: of any dtype.
        
        Returns
        -------
        Tensor
            bool, of the shape of `x`.
        
        Examples
        --------
        >>> rl.tensor([1.0, float("inf"), float("nan")]).isnan().tolist()
        [False, False, True]
        """
    def item(self) -> typing.Any:
        """
        The only element as a number of Python.
        
        On a GPU this waits for the result.
        
        Returns
        -------
        float, int or bool
            By its dtype.
        
        Raises
        ------
        ValueError
            For more or fewer elements than one; on "meta", where there are no values; while a graph is captured.
        
        Examples
        --------
        >>> rl.tensor([2.5]).item()
        2.5
        """
    def le(self, other: typing.Any) -> Tensor:
        """
        a <= b, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).le(rl.tensor([1.0, 3.0])).tolist()
        [True, True]
        """
    @typing.overload
    def lerp(self, end: Tensor, weight: builtins.float, variant: str = '') -> Tensor:
        """
        start + weight (end - start), elementwise; shapes broadcast. One launch, 3 FLOPs per element.
        
        From a weight of 0.5 on it is end + (weight - 1) (end - start), so that 1 gives end exactly. 16 bits are computed in
        float32 and rounded once.
        
        `x` is this tensor.
        
        Parameters
        ----------
        end : Tensor
            Where the weight is 0, and where it is 1.
        weight : float or Tensor
            How far from `x` to `end`.
        variant : str
            A rung of rl.variants("lerp"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            Of the shape that all broadcast to and their common dtype; float32 for integers.
        
        Raises
        ------
        ValueError
            For shapes that do not broadcast, for a weight that is a tensor of bool, and where `x` and `end` are both bool.
        
        Examples
        --------
        >>> rl.zeros(1).lerp(rl.ones(1), 0.25).tolist()
        [0.25]
        """
    @typing.overload
    def lerp(self, end: Tensor, weight: Tensor, variant: str = '') -> Tensor:
        ...
    def log(self) -> Tensor:
        """
        natural logarithm of x, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([1.0, 1.0]).log().tolist()
        [0.0, 0.0]
        """
    def log10(self) -> Tensor:
        """
        logarithm of x to the base 10, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([100.0, 1.0]).log10().tolist()
        [2.0, 0.0]
        """
    def log2(self) -> Tensor:
        """
        logarithm of x to the base 2, exact for powers of 2, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([8.0, 0.5]).log2().tolist()
        [3.0, -1.0]
        """
    def log_softmax(self, dim: typing.SupportsIndex = -1) -> Tensor:
        """
        The logarithm of softmax: x - log(sum(exp(x))) along a dimension.
        
        The maximum is subtracted first, so nothing overflows. 5 FLOPs per element; one launch, or two for few long rows on a
        GPU. Along another dimension than the last, columns that are many enough are read as they lie; otherwise a copy comes
        first. The graph keeps only the result.
        
        `x` is this tensor: of any shape, in a floating dtype.
        
        Parameters
        ----------
        dim : int
            Along which dimension.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`.
        
        Raises
        ------
        ValueError
            For integers; for a `dim` that `x` lacks.
        
        Examples
        --------
        >>> rl.zeros(4).log_softmax().exp().tolist()
        [0.25, 0.25, 0.25, 0.25]
        """
    def logical_and(self, b: Tensor) -> Tensor:
        """
        Whether both are true (not 0). One launch, and one more for each that is not bool.
        
        `a` is this tensor.
        
        Parameters
        ----------
        b : Tensor
            (...), broadcast.
        
        Returns
        -------
        Tensor
            bool.
        
        Raises
        ------
        ValueError
            For shapes that do not fit.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([True, True]).logical_and(rl.tensor([1, 0])).tolist()
        [True, False]
        """
    def logical_not(self) -> Tensor:
        """
        Whether x is 0 (false). One launch.
        
        `x` is this tensor.
        
        Returns
        -------
        Tensor
            bool.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([0.0, 2.0]).logical_not().tolist()
        [True, False]
        """
    def logical_or(self, b: Tensor) -> Tensor:
        """
        Whether one of both is true (not 0). One launch, and one more for each that is not bool.
        
        `a` is this tensor.
        
        Parameters
        ----------
        b : Tensor
            (...), broadcast.
        
        Returns
        -------
        Tensor
            bool.
        
        Raises
        ------
        ValueError
            For shapes that do not fit.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([True, True]).logical_or(rl.tensor([1, 0])).tolist()
        [True, True]
        """
    def logical_xor(self, b: Tensor) -> Tensor:
        """
        Whether just one of both is true (not 0). One launch, and one more for each that is not bool.
        
        `a` is this tensor.
        
        Parameters
        ----------
        b : Tensor
            (...), broadcast.
        
        Returns
        -------
        Tensor
            bool.
        
        Raises
        ------
        ValueError
            For shapes that do not fit.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([True, True]).logical_xor(rl.tensor([1, 0])).tolist()
        [False, True]
        """
    def logsigmoid(self) -> Tensor:
        """
        log(sigmoid(x)), to the last digits for large |x| too, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([-100.0, 200.0]).logsigmoid().tolist()
        [-100.0, 0.0]
        """
    def logsumexp(self, dim: builtins.int | typing.Sequence[builtins.int], keepdim: builtins.bool = False, variant: str = '') -> Tensor:
        """
        log(sum(exp(x))) without overflow. One launch; a GPU takes two for few long rows, and integers one more.
        
        4 FLOPs an element. Dimensions that cannot be merged are copied first, which is one more too.
        
        `x` is this tensor: (...); integers give float32.
        
        Parameters
        ----------
        dim : int or sequence of int
            What to go over; an empty sequence means all.
        keepdim : bool
            Whether the dimension stays, with size 1.
        variant : str
            A rung of rl.variants("logsumexp"); the fastest when empty.
        
        Returns
        -------
        Tensor
            -inf where all elements are -inf, or there are none. The gradient is softmax: NaN for such a row, and for one
            with inf.
        
        Raises
        ------
        ValueError
            For dimensions that x lacks, and for one that appears twice.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1000.0, 1000.0]).logsumexp(0).item()  # doctest: +ELLIPSIS
        1000.69...
        """
    def long(self) -> Tensor:
        """
        The tensor in int64. One launch, unless it is that already.
        
        Returns
        -------
        Tensor
            The tensor itself, or a copy, rounded towards zero.
        
        Raises
        ------
        OutOfMemoryError
            When the copy does not fit.
        
        Examples
        --------
        >>> rl.tensor([1.5, -1.5]).long().tolist()
        [1, -1]
        """
    def lt(self, other: typing.Any) -> Tensor:
        """
        a < b, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).lt(rl.tensor([1.0, 3.0])).tolist()
        [False, True]
        """
    @typing.overload
    def masked_fill(self, mask: Tensor, value: builtins.float) -> Tensor:
        """
        x with a number wherever a mask is True.
        
        Made of where, and counted like it.
        
        `x` is this tensor: of any dtype.
        
        Parameters
        ----------
        mask : Tensor
            bool, of a shape that broadcasts to that of `x`.
        value : float or Tensor
            The number to put where the mask is True. A tensor has no dimensions, and is converted to the dtype of `x`.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`.
        
        Raises
        ------
        ValueError
            When the mask is not bool or does not broadcast; for a number that the dtype cannot hold.
        
        Examples
        --------
        >>> rl.tensor([1.0, 2.0]).masked_fill(rl.tensor([True, False]), 0.0).tolist()
        [0.0, 2.0]
        """
    @typing.overload
    def masked_fill(self, mask: Tensor, value: Tensor) -> Tensor:
        ...
    def masked_select(self, mask: Tensor) -> Tensor:
        """
        ``x[mask]`` of a mask that broadcasts to x. Three launches.
        
        `x` is this tensor.
        
        Parameters
        ----------
        mask : Tensor
            bool, broadcasts against x.
        
        Returns
        -------
        Tensor
            (N,).
        
        Raises
        ------
        ValueError
            For a mask of another dtype or shape; for tensors without memory.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1, 2, 3]).masked_select(rl.tensor([True, False, True])).tolist()
        [1, 3]
        """
    def matmul(self, b: Tensor) -> Tensor:
        """
        The product of matrices, as torch.matmul: a @ b.
        
        One launch; M N K MACs a matrix. Transposed operands cost no copy. Vectors count as matrices of one row or column.
        
        `a` is this tensor: (..., M, K) or (K,).
        
        Parameters
        ----------
        b : Tensor
            (..., K, N) or (K,), of the dtype of `a`. Leading dimensions broadcast.
        
        Returns
        -------
        Tensor
            (..., M, N), of the operands' dtype; float16 and bfloat16 are added up in float32.
        
        Raises
        ------
        ValueError
            For shapes that do not fit, dtypes that differ, and integers.
        
        Examples
        --------
        >>> rl.ones(2, 3).matmul(rl.ones(3, 4)).shape
        (2, 4)
        """
    @typing.overload
    def max(self) -> Tensor:
        """
        The largest element of the tensor; or, along a dimension, the largest elements and their positions.
        
        `max(x)` is `amax(x)` and is counted as that. `max(x, dim)` gives a named tuple, as in PyTorch: `.values` and
        `.indices`. For the values alone, or over several dimensions, use `amax(x, dim)`. One launch, 1 FLOP per
        element of `x`. `max(x, other)` of two tensors is rl.maximum.
        
        `x` is this tensor: of any dtype and shape.
        
        Parameters
        ----------
        dim : int
            Along which dimension.
        keepdim : bool
            Whether `dim` stays, with size 1.
        variant : str
            A rung of rl.variants("max"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            Without `dim`: one element, NaN if there is one; equal elements share the gradient.
        ValuesAndIndices
            With `dim`: values (of the dtype of `x`, NaN where there is one) and indices (int64, the first among equals). The
            gradient goes to the elements at `indices`.
        
        Raises
        ------
        ValueError
            When there is no element to choose from; for a `dim` that `x` lacks.
        
        Examples
        --------
        >>> values, indices = rl.tensor([[1.0, 5.0], [7.0, 2.0]]).max(dim=1)
        >>> values.tolist(), indices.tolist()
        ([5.0, 7.0], [1, 0])
        """
    @typing.overload
    def max(self, other: Tensor) -> Tensor:
        ...
    @typing.overload
    def max(self, dim: typing.SupportsIndex, keepdim: builtins.bool = False, variant: str = '') -> ValuesAndIndices:
        ...
    def maximum(self, other: typing.Any) -> Tensor:
        """
        the larger of a and b; NaN where either is, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 6.0]).maximum(rl.tensor([4.0, 2.0])).tolist()
        [4.0, 6.0]
        """
    def mean(self, dim: typing.Any = None, keepdim: builtins.bool = False, variant: str = '', dtype: typing.Any = None) -> Tensor:
        """
        The mean over one, several or all dimensions.
        
        One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. The error is at most a small
        multiple of log2(n) eps times the sum of absolute values.
        
        `x` is this tensor: of any shape.
        
        Parameters
        ----------
        dim : int, tuple of int or None
            What to reduce over; None is all.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        variant : str
            A rung of rl.variants("mean"); the fastest that fits when empty.
        dtype : dtype, optional
            What `x` is cast to first, which is one launch more.
        
        Returns
        -------
        Tensor
            Of `dtype`, or that of `x`; NaN where there is no element.
        
        Raises
        ------
        ValueError
            For a `dim` that `x` lacks or that appears twice, and for integers.
        
        Examples
        --------
        >>> rl.tensor([[1.0, 5.0], [7.0, 3.0]]).mean(dim=1).tolist()
        [3.0, 5.0]
        """
    def median(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, variant: str = '') -> typing.Any:
        """
        The middle element, of an even number the lower one. One launch; a GPU takes more of few long rows.
        
        The gradient goes to the element that was taken. Without a dimension it is shared by all that equal it, which takes
        six launches more.
        
        `x` is this tensor.
        
        Parameters
        ----------
        dim : int, optional
            The dimension; by default all.
        keepdim : bool
            Whether the dimension stays, with size 1.
        variant : str
            A rung of rl.variants("median"); the fastest when empty.
        
        Returns
        -------
        Tensor, or ValuesAndIndices with a dimension
            NaN where there is one. The index is that of the first among equal elements, and of the first NaN.
        
        Raises
        ------
        ValueError
            For a dimension that x lacks, for keepdim without one, for no elements, and for bool.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([3.0, 1.0, 2.0, 4.0]).median().item()
        2.0
        """
    @typing.overload
    def min(self) -> Tensor:
        """
        The smallest element of the tensor; or, along a dimension, the smallest elements and their positions.
        
        `min(x)` is `amin(x)` and is counted as that. `min(x, dim)` gives a named tuple, as in PyTorch: `.values` and
        `.indices`. For the values alone, or over several dimensions, use `amin(x, dim)`. One launch, 1 FLOP per
        element of `x`. `min(x, other)` of two tensors is rl.minimum.
        
        `x` is this tensor: of any dtype and shape.
        
        Parameters
        ----------
        dim : int
            Along which dimension.
        keepdim : bool
            Whether `dim` stays, with size 1.
        variant : str
            A rung of rl.variants("min"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            Without `dim`: one element, NaN if there is one; equal elements share the gradient.
        ValuesAndIndices
            With `dim`: values (of the dtype of `x`, NaN where there is one) and indices (int64, the first among equals). The
            gradient goes to the elements at `indices`.
        
        Raises
        ------
        ValueError
            When there is no element to choose from; for a `dim` that `x` lacks.
        
        Examples
        --------
        >>> values, indices = rl.tensor([[1.0, 5.0], [7.0, 2.0]]).min(dim=1)
        >>> values.tolist(), indices.tolist()
        ([1.0, 2.0], [0, 1])
        """
    @typing.overload
    def min(self, other: Tensor) -> Tensor:
        ...
    @typing.overload
    def min(self, dim: typing.SupportsIndex, keepdim: builtins.bool = False, variant: str = '') -> ValuesAndIndices:
        ...
    def minimum(self, other: typing.Any) -> Tensor:
        """
        the smaller of a and b; NaN where either is, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 6.0]).minimum(rl.tensor([4.0, 2.0])).tolist()
        [1.0, 2.0]
        """
    def mm(self, b: Tensor) -> Tensor:
        """
        ``rl.matmul`` of two matrices.
        
        `a` is this tensor: (M, K).
        
        Parameters
        ----------
        b : Tensor
            (K, N).
        
        Returns
        -------
        Tensor
            (M, N).
        
        Raises
        ------
        ValueError
            For other dimensions, or sizes that do not fit.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(2, 3).mm(rl.ones(3, 4)).shape
        (2, 4)
        """
    def movedim(self, source: builtins.int | typing.Sequence[builtins.int], destination: builtins.int | typing.Sequence[builtins.int]) -> Tensor:
        """
        x with dimensions in other places; the others keep their order. A view.
        
        `x` is this tensor.
        
        Parameters
        ----------
        source, destination : int or sequence of int
            From where and to where.
        
        Returns
        -------
        Tensor
            A view.
        
        Raises
        ------
        ValueError
            For dimensions that x lacks or that appear twice.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(2, 3, 4).movedim(0, -1).shape
        (3, 4, 2)
        """
    def mul(self, other: typing.Any) -> Tensor:
        """
        a * b, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 6.0]).mul(rl.tensor([4.0, 2.0])).tolist()
        [4.0, 12.0]
        >>> (rl.arange(3) * 2.0).dtype
        rooflab.float32
        >>> (rl.tensor([1.5, 2.5]) * rl.tensor([True, False])).tolist()
        [1.5, 0.0]
        """
    def mul_(self, other: typing.Any) -> Tensor:
        """
        self *= other, in place. One launch.
        
        Parameters
        ----------
        other : Tensor or number
            Of a shape that broadcasts to this one's. The result is rounded to this tensor's dtype.
        
        Returns
        -------
        Tensor
            The tensor itself.
        
        Raises
        ------
        ValueError
            For a shape that does not broadcast, a dtype that cannot hold the result, and a leaf that requires grad, unless
            under rl.no_grad().
        TypeError
            For what is neither tensor nor number.
        
        Examples
        --------
        >>> rl.tensor([3.0, 6.0]).mul_(3).tolist()
        [9.0, 18.0]
        """
    def multinomial(self, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: rooflab.composed.random.Generator | None = None) -> Tensor:
        """
        Indices drawn with probabilities that are proportional to p.
        
        Without replacement it takes the smallest of exponential numbers divided by p, as differences of logarithms, which
        stay in range. With replacement it takes the place of a random number in the running sum of p. The sum is of whole
        numbers, because these are exact on every device: what has no share gets none by rounding. The largest share is
        2^53 / N or half of that, and less than one counts as none. Composed of 13 launches, with replacement of eleven, and
        what is checked is read from the device once.
        
        `p` is this tensor: (N,) or (B, N), floating, not negative; each row has a number above 0.
        
        Parameters
        ----------
        num_samples : int
            How many to draw from each row.
        replacement : bool
            Whether an index may be drawn again.
        generator : Generator, optional
            Where the random numbers come from.
        
        Returns
        -------
        Tensor
            (num_samples,) or (B, num_samples), int64.
        
        Raises
        ------
        ValueError
            For other shapes; for numbers that are negative or not finite, rows of zeros, and more samples than places
            that are not 0.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([0.0, 1.0, 0.0]).multinomial(2, replacement=True).tolist()
        [1, 1]
        """
    def mv(self, b: Tensor) -> Tensor:
        """
        ``rl.matmul`` of a matrix and a vector.
        
        `a` is this tensor: (M, K).
        
        Parameters
        ----------
        b : Tensor
            (K,).
        
        Returns
        -------
        Tensor
            (M,).
        
        Raises
        ------
        ValueError
            For other dimensions, or sizes that do not fit.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(2, 3).mv(rl.ones(3)).tolist()
        [3.0, 3.0]
        """
    def nan_to_num(self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None, variant: str = '') -> Tensor:
        """
        x with numbers in place of NaN and infinities. One launch.
        
        `x` is this tensor.
        
        Parameters
        ----------
        nan : float
            In place of NaN.
        posinf, neginf : float, optional
            In place of the infinities; by default the largest and smallest number of the dtype.
        variant : str
            A rung of rl.variants("nan_to_num"); the fastest when empty.
        
        Returns
        -------
        Tensor
            (...); a copy of integers and bool. The gradient is 0 where a number was put.
        
        Raises
        ------
        TypeError
            For anything but a tensor, and for anything but a number.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([float('nan'), 1.0]).nan_to_num().tolist()
        [0.0, 1.0]
        """
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """
        Some slices along a dimension, a view.
        
        `x` is this tensor.
        
        Parameters
        ----------
        dim : int
            The dimension.
        start, length : int
            The first and how many.
        
        Returns
        -------
        Tensor
            A view.
        
        Raises
        ------
        ValueError
            For a dimension that x lacks, or slices out of range.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.arange(5).narrow(0, 1, 3).tolist()
        [1, 2, 3]
        """
    def ne(self, other: typing.Any) -> Tensor:
        """
        a != b, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).ne(rl.tensor([1.0, 3.0])).tolist()
        [False, True]
        """
    def neg(self) -> Tensor:
        """
        -x, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([1.0, -2.0]).neg().tolist()
        [-1.0, 2.0]
        """
    def new_empty(self, *size: builtins.int | typing.Sequence[builtins.int], dtype: typing.Any = None, device: typing.Any = None) -> Tensor:
        """
        Elements that are not set, by default of this dtype and on this device. Nothing is launched.
        
            Parameters
            ----------
            *size : int, or one sequence of int
                The shape.
            dtype : dtype or str, optional
                By default that of this tensor.
            device : str, optional
                By default that of this tensor.
        
            Returns
            -------
            Tensor
                With memory of its own, which holds anything.
        
            Raises
            ------
            ValueError
                For a negative size. For what is not a dtype or device.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.tensor([1, 2]).new_empty(3).shape
            (3,)
            
        """
    def new_full(self, size: typing.Sequence[builtins.int], fill_value: builtins.float | Tensor, *, dtype: typing.Any = None, device: typing.Any = None) -> Tensor:
        """
        One number everywhere, by default of this dtype and on this device. One launch.
        
            Parameters
            ----------
            size : sequence of int
                The shape.
            fill_value : float or Tensor
                One that the dtype can hold. A tensor has no dimensions, and is converted.
            dtype : dtype or str, optional
                By default that of this tensor.
            device : str, optional
                By default that of this tensor.
        
            Returns
            -------
            Tensor
                With memory of its own.
        
            Raises
            ------
            ValueError
                For a negative size, and a number that integers cannot hold. For what is not a dtype or device.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.tensor([1, 2]).new_full((3,), 7).tolist()
            [7, 7, 7]
            
        """
    def new_ones(self, *size: builtins.int | typing.Sequence[builtins.int], dtype: typing.Any = None, device: typing.Any = None) -> Tensor:
        """
        Ones of another size, by default of this dtype and on this device. One launch.
        
            Parameters
            ----------
            *size : int, or one sequence of int
                The shape.
            dtype : dtype or str, optional
                By default that of this tensor.
            device : str, optional
                By default that of this tensor.
        
            Returns
            -------
            Tensor
                With memory of its own.
        
            Raises
            ------
            ValueError
                For a negative size. For what is not a dtype or device.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.tensor([1, 2]).new_ones(3).tolist()
            [1, 1, 1]
            
        """
    def new_tensor(self, data: typing.Any, *, dtype: typing.Any = None, device: typing.Any = None) -> Tensor:
        """
        `rl.tensor` of data, by default of this dtype and on this device.
        
            Parameters
            ----------
            data : number, nested lists, NumPy array or Tensor
                What is copied.
            dtype : dtype or str, optional
                By default that of this tensor.
            device : str, optional
                By default that of this tensor.
        
            Returns
            -------
            Tensor
                Contiguous, with memory of its own.
        
            Raises
            ------
            ValueError
                For rows of different lengths, and what is no number. For what is not a dtype or device.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.tensor([1.5]).new_tensor([3, 4]).tolist()
            [3.0, 4.0]
            
        """
    def new_zeros(self, *size: builtins.int | typing.Sequence[builtins.int], dtype: typing.Any = None, device: typing.Any = None) -> Tensor:
        """
        Zeros of another size, by default of this dtype and on this device. One launch.
        
            Parameters
            ----------
            *size : int, or one sequence of int
                The shape.
            dtype : dtype or str, optional
                By default that of this tensor.
            device : str, optional
                By default that of this tensor.
        
            Returns
            -------
            Tensor
                With memory of its own.
        
            Raises
            ------
            ValueError
                For a negative size. For what is not a dtype or device.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.tensor([1, 2]).new_zeros(3).tolist()
            [0, 0, 0]
            
        """
    def nonzero(self, variant: str = '') -> Tensor:
        """
        The places of elements that are not 0.
        
        They are counted in one launch, a number for each portion of `x`, and the numbers are read from the device. Another
        launch writes the places. Before, other dtypes than bool are compared with 0 in one.
        
        `x` is this tensor.
        
        Parameters
        ----------
        variant : str
            A rung of rl.variants("nonzero"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            (N, dimensions of x), int64, in order.
        
        Raises
        ------
        ValueError
            For tensors without memory; while a graph is captured.
        
        Examples
        --------
        >>> rl.tensor([[0, 1], [2, 0]]).nonzero().tolist()
        [[0, 1], [1, 0]]
        """
    def numel(self) -> builtins.int:
        """
        How many elements it has.
        
        Returns
        -------
        int
            The product of the sizes of all dimensions.
        
        Examples
        --------
        >>> rl.ones(2, 3).numel()
        6
        """
    def numpy(self) -> numpy.ndarray[typing.Any, typing.Any]:
        """
        A NumPy array that shares the tensor's memory.
        
        Returns
        -------
        numpy.ndarray
            Of the same shape, strides and dtype; ml_dtypes.bfloat16 for bfloat16. Read-only if the tensor is expanded.
        
        Raises
        ------
        ValueError
            For a tensor that is not on the CPU, one that requires grad, and while a graph is captured.
        
        Examples
        --------
        >>> x = rl.ones(2)
        >>> x.numpy()[0] = 5
        >>> x.tolist()
        [5.0, 1.0]
        """
    def outer(self, b: Tensor) -> Tensor:
        """
        a[i] b[j], one launch.
        
        `a` is this tensor: (M,).
        
        Parameters
        ----------
        b : Tensor
            (N,).
        
        Returns
        -------
        Tensor
            (M, N).
        
        Raises
        ------
        ValueError
            For other dimensions.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1.0, 2.0]).outer(rl.tensor([3.0, 4.0])).tolist()
        [[3.0, 4.0], [6.0, 8.0]]
        """
    def permute(self, *args) -> Tensor:
        """
        The dimensions in another order. A view: nothing is launched.
        
        Parameters
        ----------
        *args : int, or one sequence of int
            Each dimension once, in the order of the result.
        
        Returns
        -------
        Tensor
            A view.
        
        Raises
        ------
        ValueError
            For a dimension that is missing, appears twice, or that the tensor lacks.
        
        Examples
        --------
        >>> rl.ones(4, 2, 3).permute(2, 0, 1).shape
        (3, 4, 2)
        """
    def pow(self, exponent: typing.Any) -> Tensor:
        """
        a to the power b, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        `a` is this tensor, and `b` is `exponent`.
        
        Parameters
        ----------
        exponent : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([3.0, 2.0]).pow(rl.tensor([2.0, 3.0])).tolist()
        [9.0, 8.0]
        """
    def prod(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, dtype: typing.Any = None, variant: str = '') -> Tensor:
        """
        The product over one or all dimensions, formed in double or int64. One launch; a cast takes one more.
        
        `x` is this tensor.
        
        Parameters
        ----------
        dim : int, optional
            The dimension; by default all.
        keepdim : bool
            Whether the dimension stays, with size 1.
        dtype : dtype, optional
            What x is cast to first, and the result's; by default that of x, int64 for integers and bool.
        variant : str
            A rung of rl.variants("prod"); the fastest when empty.
        
        Returns
        -------
        Tensor
            1 where there is no element.
        
        Raises
        ------
        ValueError
            For a dimension that x lacks, and for keepdim without one.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([[1, 2], [3, 4]]).prod(1).tolist()
        [2, 12]
        """
    def ravel(self) -> Tensor:
        """
        One dimension of all, a view if the layout allows it.
        
        `x` is this tensor.
        
        Returns
        -------
        Tensor
            (N,).
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(2, 3).ravel().shape
        (6,)
        """
    def reciprocal(self) -> Tensor:
        """
        1 / x, one launch.
        
        `x` is this tensor.
        
        Returns
        -------
        Tensor
            (...).
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([2.0, 4.0]).reciprocal().tolist()
        [0.5, 0.25]
        """
    def register_hook(self, hook: typing.Callable[[Tensor], Tensor | None]) -> rooflab._handles.Handle:
        """
        Let `backward` call ``hook(gradient)`` with the whole gradient of this tensor, before it goes on.
        
            Parameters
            ----------
            hook : callable
                What it returns, unless None, takes the gradient's place. Return a new tensor: other gradients may have the
                memory of the one that it gets.
        
            Returns
            -------
            Handle
                Its `remove()` takes the hook away.
        
            Raises
            ------
            ValueError
                When the tensor does not require grad. In backward, for a hook that writes into a gradient whose memory others
                use too.
            TypeError
                For a hook that cannot be called.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> x = rl.ones(2, requires_grad=True)
            >>> handle = x.register_hook(lambda gradient: gradient * 10)
            >>> x.sum().backward()
            >>> x.grad.tolist()
            [10.0, 10.0]
            
        """
    def relu(self) -> Tensor:
        """
        max(x, 0), elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([1.0, -2.0]).relu().tolist()
        [1.0, 0.0]
        """
    def remainder(self, other: typing.Any) -> Tensor:
        """
        a - b * floor(a / b), of b's sign, elementwise; shapes broadcast. One launch.
        
        Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
        takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
        
        An integer divided by zero raises ZeroDivisionError: on the CPU before anything is written, also in a replay
        of a graph. On a GPU and on "meta" only a divisor that is a number is checked, because the host does not see a
        tensor's elements; the result is 0 where one is 0. Floats give inf or NaN.
        
        `a` is this tensor, and `b` is `other`.
        
        Parameters
        ----------
        other : Tensor or number
            Of shapes that broadcast; one of both may be a number.
        
        Returns
        -------
        Tensor
            Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
        
        Raises
        ------
        ValueError
            For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
            cannot hold.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([7.0, -7.0]).remainder(rl.tensor([4.0, 4.0])).tolist()
        [3.0, 1.0]
        """
    def repeat(self, *sizes: builtins.int | typing.Sequence[builtins.int]) -> Tensor:
        """
        `tile` with a number for each dimension, as PyTorch's method.
        
        `x` is this tensor.
        
        Parameters
        ----------
        *sizes : int, or one sequence of int
            How often; at least as many as x has dimensions.
        
        Returns
        -------
        Tensor
            A copy.
        
        Raises
        ------
        ValueError
            For too few or negative numbers.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1, 2]).repeat(2, 1).tolist()
        [[1, 2], [1, 2]]
        """
    def repeat_interleave(self, repeats: typing.SupportsIndex, dim: typing.SupportsIndex | None = None) -> Tensor:
        """
        Repeats each slice along a dimension several times.
        
        Made of an expanded view and one copy; counted as the copy. It turns H_kv key heads into H for grouped-query attention.
        
        `x` is this tensor: of any dtype.
        
        Parameters
        ----------
        repeats : int
            How often each slice appears.
        dim : int or None
            Along which dimension; None takes the tensor as flattened.
        
        Returns
        -------
        Tensor
            As `x`, with `dim` `repeats` times as long.
        
        Raises
        ------
        ValueError
            When `repeats` is negative; for a `dim` that `x` lacks.
        
        Examples
        --------
        >>> rl.tensor([1, 2]).repeat_interleave(2).tolist()
        [1, 1, 2, 2]
        """
    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor:
        """
        Set `requires_grad` of a leaf.
        
        Parameters
        ----------
        requires_grad : bool
            Whether ops on it are recorded from now on.
        
        Returns
        -------
        Tensor
            The tensor itself.
        
        Raises
        ------
        ValueError
            For integers, and for False on a result of a recorded op.
        
        Examples
        --------
        >>> rl.ones(2).requires_grad_().requires_grad
        True
        """
    def reshape(self, *args) -> Tensor:
        """
        The same elements under another shape, copied only if the layout needs it.
        
        Parameters
        ----------
        *args : int, or one sequence of int
            The new shape. One size may be -1; it follows from the others.
        
        Returns
        -------
        Tensor
            A view where possible; else a copy, which takes one launch.
        
        Raises
        ------
        ValueError
            For a shape of another number of elements.
        
        Examples
        --------
        >>> rl.arange(6).reshape(3, 2).T.reshape(6).tolist()
        [0, 2, 4, 1, 3, 5]
        """
    def reshape_as(self, other: Tensor) -> Tensor:
        """
        `reshape` to the shape of another tensor.
        
            Parameters
            ----------
            other : Tensor
                With as many elements.
        
            Returns
            -------
            Tensor
                A view where possible; else a copy, which takes one launch.
        
            Raises
            ------
            ValueError
                For another number of elements.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.arange(4).reshape_as(rl.ones(2, 2)).tolist()
            [[0, 1], [2, 3]]
            
        """
    def retain_grad(self) -> None:
        """
        Let `backward` keep the gradient of a result in `.grad`, as it does for a leaf.
        
        Raises
        ------
        ValueError
            When the tensor does not require grad.
        
        Examples
        --------
        >>> x = rl.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> y.retain_grad()
        >>> y.sum().backward()
        >>> y.grad.tolist()
        [1.0, 1.0]
        """
    def roll(self, shifts: builtins.int | typing.Sequence[builtins.int], dims: builtins.int | typing.Sequence[builtins.int] | None = None) -> Tensor:
        """
        x with its elements moved along dimensions; what leaves at the end enters at the front.
        
        One launch a dimension, and one if nothing moves.
        
        `x` is this tensor.
        
        Parameters
        ----------
        shifts : int or sequence of int
            By how much.
        dims : int or sequence of int, optional
            Along which dimensions; by default x is flattened first.
        
        Returns
        -------
        Tensor
            A copy, of the shape of x.
        
        Raises
        ------
        ValueError
            For dimensions that x lacks, or another number of shifts.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1, 2, 3]).roll(1).tolist()
        [3, 1, 2]
        """
    def round(self, decimals: builtins.int = 0, variant: str = '') -> Tensor:
        """
        The nearest integer; halfway between two, the even one. One launch, and six with decimals.
        
        `x` is this tensor.
        
        Parameters
        ----------
        decimals : int
            Digits after the point that stay, or zeros before it if negative: -308 to 308. x is multiplied by 10^decimals,
            or divided by 10^-decimals, and back after: in float32 for numbers of 16 bits, and in float64 where float32
            cannot hold the factor.
        variant : str
            A rung of rl.variants("round"), without decimals; the fastest when empty.
        
        Returns
        -------
        Tensor
            (...), of x's dtype. It has no gradient.
        
        Raises
        ------
        ValueError
            For bool, for decimals of integers, for decimals out of range, and for a rung with decimals.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([0.5, 1.5, 2.6, -0.5]).round().tolist()
        [0.0, 2.0, 3.0, -0.0]
        >>> rl.tensor([1.25]).round(decimals=1).tolist()  # doctest: +ELLIPSIS
        [1.2...]
        """
    def rsqrt(self) -> Tensor:
        """
        1 / sqrt(x), elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([4.0, 16.0]).rsqrt().tolist()
        [0.5, 0.25]
        """
    def scatter(self, dim: builtins.int, index: Tensor, src: Tensor | builtins.float) -> Tensor:
        """
        x with elements of src, or one number, at places along a dimension.
        
        Two launches on the CPU, for a number, and on a GPU where x is not long along `dim`; else four there, to find the
        last element for each place.
        
        `x` is this tensor.
        
        Parameters
        ----------
        dim : int
            The dimension.
        index : Tensor
            int64 or int32: which place each element of src goes to; sizes as for `rl.scatter_add`. Of elements that go to
            one place, the last one stays.
        src : Tensor or float
            What is written. A tensor has the dtype of x, and the sizes of index or more.
        
        Returns
        -------
        Tensor
            A copy of x. Gradients go to what is left of x, and to what stays of src.
        
        Raises
        ------
        ValueError
            For sizes and dtypes that do not fit; for an index out of range. On a GPU this is raised at the next wait (see
            rl.cuda.synchronize), and the element is ignored.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.zeros(3).scatter(0, rl.tensor([2]), 5.0).tolist()
        [0.0, 0.0, 5.0]
        """
    def scatter_add(self, dim: typing.SupportsIndex, index: Tensor, src: Tensor, variant: str = '') -> Tensor:
        """
        x with each element of `src` added where an index says, along `dim`.
        
        y = x; y[index[i, j, k], j, k] += src[i, j, k] for dim 0 of three. Elements with the same destination are summed: on the
        CPU in their order, on a GPU by atomics, in any order, so the last bits of floating sums may differ between runs. 16-bit
        sums are kept in float32 and rounded once. Where `src` has more elements than `x`, sums of float32 and of 16 bits are kept
        in float64. Two launches, or three where sums are kept in another dtype. 1 FLOP per element of `src`.
        
        `x` is this tensor: what is added to; it stays as it is.
        
        Parameters
        ----------
        dim : int
            The dimension that the index counts.
        index : Tensor
            int64 or int32, of the shape of `src`.
        src : Tensor
            Of the dtype of `x`, no longer than `x` along any dimension but `dim`.
        variant : str
            A rung of rl.variants("scatter_add"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`.
        
        Raises
        ------
        ValueError
            When shapes or dtypes do not fit; for an index out of range. On a GPU this is raised at the next wait (see
            rl.cuda.synchronize), and the element is ignored.
        
        Examples
        --------
        >>> rl.zeros(3).scatter_add(0, rl.tensor([2, 0, 2]), rl.tensor([1.0, 2.0, 3.0])).tolist()
        [2.0, 0.0, 4.0]
        """
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """
        One slice along a dimension, a view.
        
        `x` is this tensor.
        
        Parameters
        ----------
        dim : int
            The dimension.
        index : int
            Which slice.
        
        Returns
        -------
        Tensor
            Without that dimension.
        
        Raises
        ------
        ValueError
            For a dimension that x lacks.
        IndexError
            For an index out of range.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
    def sigmoid(self) -> Tensor:
        """
        1 / (1 + exp(-x)), elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([0.0, 100.0]).sigmoid().tolist()
        [0.5, 1.0]
        """
    def sign(self, variant: str = '') -> Tensor:
        """
        -1, 0 or 1, one launch.
        
        `x` is this tensor.
        
        Parameters
        ----------
        variant : str
            A rung of rl.variants("sign"); the fastest when empty.
        
        Returns
        -------
        Tensor
            (...), of x's dtype; 0 for NaN, as in PyTorch. A copy of bools. It has no gradient.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([-3.0, 0.0, 2.0]).sign().tolist()
        [-1.0, 0.0, 1.0]
        """
    def silu(self) -> Tensor:
        """
        x / (1 + exp(-x)), elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([0.0, 0.0]).silu().tolist()
        [0.0, 0.0]
        """
    def sin(self) -> Tensor:
        """
        sine of x radians, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([0.0, 0.0]).sin().tolist()
        [0.0, 0.0]
        """
    def size(self, dim: typing.SupportsIndex | None = None) -> typing.Any:
        """
        The size of one dimension, or of all.
        
        Parameters
        ----------
        dim : int, optional
            Which dimension; a negative one is counted from the last.
        
        Returns
        -------
        int or tuple of int
            The whole `shape` without `dim`.
        
        Raises
        ------
        ValueError
            For a dimension that the tensor lacks.
        
        Examples
        --------
        >>> rl.ones(2, 3).size(-1), rl.ones(2, 3).size()
        (3, (2, 3))
        """
    def softmax(self, dim: typing.SupportsIndex = -1) -> Tensor:
        """
        exp(x - max) / sum(exp(x - max)) along a dimension.
        
        5 FLOPs per element; one launch, or two for few long rows on a GPU. Along another dimension than the last, columns that
        are many enough are read as they lie; otherwise a copy comes first.
        
        `x` is this tensor: of any shape, in a floating dtype.
        
        Parameters
        ----------
        dim : int
            Along which dimension the results add up to 1.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`.
        
        Raises
        ------
        ValueError
            For integers, and for a `dim` that `x` lacks.
        
        Examples
        --------
        >>> rl.zeros(2, 4).softmax()[0].tolist()
        [0.25, 0.25, 0.25, 0.25]
        """
    def softplus(self) -> Tensor:
        """
        log(1 + exp(x)), to the last digits for large |x| too, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([-200.0, 100.0]).softplus().tolist()
        [0.0, 100.0]
        """
    def sort(self, dim: typing.SupportsIndex = -1, descending: builtins.bool = False, variant: str = '') -> ValuesAndIndices:
        """
        Sorts the elements along a dimension, and tells where each one was.
        
        Equal elements keep their order; a NaN is larger than any number. One launch.
        
        `x` is this tensor: of any dtype.
        
        Parameters
        ----------
        dim : int
            Along which dimension.
        descending : bool
            Whether the largest come first.
        variant : str
            A rung of rl.variants("sort"); the fastest that fits when empty.
        
        Returns
        -------
        ValuesAndIndices
            A named tuple, both of the shape of `x`: values, and indices (int64). The gradient goes to where elements were.
        
        Raises
        ------
        ValueError
            For a `dim` that `x` lacks.
        
        Examples
        --------
        >>> values, indices = rl.tensor([3.0, 1.0, 2.0]).sort()
        >>> values.tolist(), indices.tolist()
        ([1.0, 2.0, 3.0], [1, 2, 0])
        """
    @typing.overload
    def split(self, size: typing.SupportsIndex, dim: typing.SupportsIndex = 0) -> tuple[Tensor, ...]:
        """
        A tensor cut into parts along a dimension. Views: nothing is launched.
        
        Backward joins the gradients of the parts as rl.cat does, one launch for up to 32, with zeros for parts that have none.
        If less than half of the tensor has a gradient, it fills with zeros and copies each part, one launch each.
        
        `x` is this tensor: what to cut.
        
        Parameters
        ----------
        size : int or sequence of int
            The size of each part, the last of which may be smaller; or all sizes.
        dim : int
            Along which dimension.
        
        Returns
        -------
        tuple of Tensor
            Views of `x`.
        
        Raises
        ------
        ValueError
            When sizes do not add up; for a `dim` that `x` lacks.
        
        Examples
        --------
        >>> [part.tolist() for part in rl.arange(5).split(2)]
        [[0, 1], [2, 3], [4]]
        """
    @typing.overload
    def split(self, size: collections.abc.Sequence[typing.SupportsIndex], dim: typing.SupportsIndex = 0) -> tuple[Tensor, ...]:
        ...
    def sqrt(self) -> Tensor:
        """
        square root of x, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([4.0, 9.0]).sqrt().tolist()
        [2.0, 3.0]
        """
    def square(self) -> Tensor:
        """
        x x, one launch, and one more for bool.
        
        `x` is this tensor.
        
        Returns
        -------
        Tensor
            (...).
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([-2.0, 3.0]).square().tolist()
        [4.0, 9.0]
        """
    def squeeze(self, dim: typing.SupportsIndex | None = None) -> Tensor:
        """
        The tensor without dimensions of size 1. A view.
        
        `x` is this tensor: of any shape.
        
        Parameters
        ----------
        dim : int, optional
            Only this dimension, which stays when its size is not 1; all when absent.
        
        Returns
        -------
        Tensor
            The same elements.
        
        Raises
        ------
        ValueError
            For a dimension that `x` lacks.
        
        Examples
        --------
        >>> rl.zeros(2, 1, 3).squeeze().shape
        (2, 3)
        """
    def std(self, dim: typing.Any = None, *, correction: typing.SupportsFloat | typing.SupportsIndex = 1, keepdim: builtins.bool = False, variant: str = '') -> Tensor:
        """
        The standard deviation over one, several or all dimensions.
        
        One launch, 4 FLOPs per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU
        accumulates in float64.
        
        `x` is this tensor: of a floating dtype.
        
        Parameters
        ----------
        dim : int, tuple of int or None
            What to go over; None is all.
        correction : float
            The divisor is the number of elements minus this: 1 as in PyTorch, 0 as in NumPy.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        variant : str
            A rung of rl.variants("std"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            Of the dtype of `x`; NaN where there is nothing to divide by.
        
        Raises
        ------
        ValueError
            For integers; for a `dim` that `x` lacks or that appears twice.
        
        Examples
        --------
        >>> rl.tensor([1.0, 2.0, 3.0, 6.0]).std(correction=0).item()
        1.870...
        """
    def stride(self) -> tuple[builtins.int, ...]:
        """
        How far neighbours along each dimension lie apart in memory, as `strides` says.
        
        Returns
        -------
        tuple of int
            In elements, not in bytes.
        
        Examples
        --------
        >>> rl.ones(2, 3).stride()
        (3, 1)
        """
    def sub(self, other: typing.Any, *, alpha: builtins.float = 1) -> Tensor:
        """
        self - alpha other, elementwise; shapes broadcast. One launch, and one more for another `alpha` than 1.
        
            Parameters
            ----------
            other : Tensor or number
                Of a shape that broadcasts with this one's.
            alpha : float
                What `other` is multiplied by first.
        
            Returns
            -------
            Tensor
                Of the shape that both broadcast to, and of their common dtype.
        
            Raises
            ------
            ValueError
                For shapes that do not broadcast, and a number that the dtype cannot hold.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.tensor([1.0, 6.0]).sub(rl.tensor([4.0, 2.0]), alpha=2).tolist()
            [-7.0, 2.0]
            
        """
    def sub_(self, other: typing.Any, *, alpha: typing.Any = 1) -> Tensor:
        """
        self -= alpha other, in place. One launch.
        
        Parameters
        ----------
        other : Tensor or number
            Of a shape that broadcasts to this one's. The result is rounded to this tensor's dtype.
        alpha : number
            What `other` is multiplied by; if it is not 1, that takes one more launch.
        
        Returns
        -------
        Tensor
            The tensor itself.
        
        Raises
        ------
        ValueError
            For a shape that does not broadcast, a dtype that cannot hold the result, and a leaf that requires grad, unless
            under rl.no_grad().
        TypeError
            For what is neither tensor nor number.
        
        Examples
        --------
        >>> rl.tensor([3.0, 6.0]).sub_(3).tolist()
        [0.0, 3.0]
        """
    def sum(self, dim: typing.Any = None, keepdim: builtins.bool = False, variant: str = '', dtype: typing.Any = None) -> Tensor:
        """
        The sum over one, several or all dimensions.
        
        One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. The error is at most a small
        multiple of log2(n) eps times the sum of absolute values.
        
        `x` is this tensor: of any shape.
        
        Parameters
        ----------
        dim : int, tuple of int or None
            What to reduce over; None is all.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        variant : str
            A rung of rl.variants("sum"); the fastest that fits when empty.
        dtype : dtype, optional
            What `x` is cast to first, which is one launch more.
        
        Returns
        -------
        Tensor
            Of `dtype`, or that of `x`; int64 for bool.
        
        Raises
        ------
        ValueError
            For a `dim` that `x` lacks or that appears twice.
        
        Examples
        --------
        >>> rl.tensor([[1.0, 5.0], [7.0, 3.0]]).sum(dim=1).tolist()
        [6.0, 10.0]
        """
    def swapaxes(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """
        ``x.transpose(dim0, dim1)``, a view.
        
        `x` is this tensor.
        
        Parameters
        ----------
        dim0, dim1 : int
            What changes places.
        
        Returns
        -------
        Tensor
            A view.
        
        Raises
        ------
        ValueError
            For dimensions that x lacks.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(2, 3).swapaxes(0, 1).shape
        (3, 2)
        """
    def t(self) -> Tensor:
        """
        The transpose of a matrix; a vector or a number as it is. A view.
        
        `x` is this tensor: up to two dimensions.
        
        Returns
        -------
        Tensor
            A view.
        
        Raises
        ------
        ValueError
            For more dimensions.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(2, 3).t().shape
        (3, 2)
        """
    def tanh(self) -> Tensor:
        """
        hyperbolic tangent of x, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([0.0, 100.0]).tanh().tolist()
        [0.0, 1.0]
        """
    def tile(self, *dims: builtins.int | typing.Sequence[builtins.int]) -> Tensor:
        """
        x several times in each dimension, counted from the last. One launch, a copy.
        
        What requires grad takes one for each dimension that grows.
        
        `x` is this tensor.
        
        Parameters
        ----------
        *dims : int, or one sequence of int
            How often; missing ones in front are 1.
        
        Returns
        -------
        Tensor
            A copy.
        
        Raises
        ------
        ValueError
            For a negative number.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.tensor([1, 2]).tile(2).tolist()
        [1, 2, 1, 2]
        """
    def to(self, *args, dtype: typing.Any = None, device: typing.Any = None) -> Tensor:
        """
        The tensor in another dtype, on another device, or both.
        
        Parameters
        ----------
        *args : dtype, device or Tensor
            In any order. A tensor stands for its dtype and its device.
        dtype : dtype or str, optional
            Such as rl.bfloat16 or "float16".
        device : str, optional
            "cpu", "cuda", "cuda:1" or "meta".
        
        Returns
        -------
        Tensor
            The tensor itself if it is that already. Otherwise a copy; gradients pass through it.
        
        Raises
        ------
        ValueError
            For what is neither dtype nor device.
        CudaError
            For a GPU that is not there.
        
        Examples
        --------
        >>> rl.ones(2).to("float16").dtype, rl.ones(2).to("cpu", rl.int64).tolist()
        (rooflab.float16, [1, 1])
        """
    def tolist(self) -> typing.Any:
        """
        The elements as numbers of Python, in nested lists.
        
        On a GPU this waits for the results.
        
        Returns
        -------
        list or number
            Nested as deep as there are dimensions; a number without any.
        
        Raises
        ------
        ValueError
            On "meta", where there are no values, and while a graph is captured.
        
        Examples
        --------
        >>> rl.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
    def topk(self, k: typing.SupportsIndex, dim: typing.SupportsIndex = -1, largest: builtins.bool = True, variant: str = '') -> ValuesAndIndices:
        """
        The k largest elements along a dimension in order, and their positions.
        
        Equal elements keep their order; a NaN is larger than any number. One launch.
        
        `x` is this tensor: of any dtype.
        
        Parameters
        ----------
        k : int
            How many, at most the size of `dim`.
        dim : int
            Along which dimension.
        largest : bool
            False for the k smallest, the smallest first.
        variant : str
            A rung of rl.variants("topk"); the fastest that fits when empty.
        
        Returns
        -------
        ValuesAndIndices
            A named tuple, both with size k along `dim`: values, and indices (int64). The gradient goes to where elements were.
        
        Raises
        ------
        ValueError
            For a `dim` that `x` lacks, and a `k` larger than its size.
        
        Examples
        --------
        >>> values, indices = rl.tensor([3.0, 1.0, 2.0]).topk(2)
        >>> values.tolist(), indices.tolist()
        ([3.0, 2.0], [0, 2])
        """
    def trace(self) -> Tensor:
        """
        The sum of the main diagonal. Composed of `diag` and a sum: two launches.
        
        `x` is this tensor: (M, N).
        
        Returns
        -------
        Tensor
            A number.
        
        Raises
        ------
        ValueError
            For other dimensions.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> rl.ones(2, 2).trace().item()
        2.0
        """
    def transpose(self, dim0: typing.SupportsIndex, dim1: typing.SupportsIndex) -> Tensor:
        """
        Two dimensions change places. A view: nothing is launched.
        
        Parameters
        ----------
        dim0, dim1 : int
            Which dimensions; negative ones are counted from the last.
        
        Returns
        -------
        Tensor
            A view.
        
        Raises
        ------
        ValueError
            For a dimension that the tensor lacks.
        
        Examples
        --------
        >>> rl.ones(4, 2, 3).transpose(0, 2).shape
        (3, 2, 4)
        """
    def tril(self, diagonal: typing.SupportsIndex = 0, variant: str = '') -> Tensor:
        """
        The part of a matrix on and below a diagonal; zeros elsewhere.
        
        y[i, j] = x[i, j] where j <= i + diagonal. One launch.
        
        `x` is this tensor: (..., M, N): a matrix, or a batch of them; of any dtype.
        
        Parameters
        ----------
        diagonal : int
            0 for the main diagonal, larger for those above it.
        variant : str
            A rung of rl.variants("tril"); the fastest when empty.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`, contiguous. The gradient is zeroed in the same way.
        
        Raises
        ------
        ValueError
            When `x` has fewer than two dimensions.
        
        Examples
        --------
        >>> rl.ones(2, 3, dtype="int64").tril().tolist()
        [[1, 0, 0], [1, 1, 0]]
        """
    def triu(self, diagonal: typing.SupportsIndex = 0, variant: str = '') -> Tensor:
        """
        The part of a matrix on and above a diagonal; zeros elsewhere.
        
        y[i, j] = x[i, j] where j >= i + diagonal. One launch.
        
        `x` is this tensor: (..., M, N): a matrix, or a batch of them; of any dtype.
        
        Parameters
        ----------
        diagonal : int
            0 for the main diagonal, larger for those above it.
        variant : str
            A rung of rl.variants("triu"); the fastest when empty.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`, contiguous. The gradient is zeroed in the same way.
        
        Raises
        ------
        ValueError
            When `x` has fewer than two dimensions.
        
        Examples
        --------
        >>> rl.ones(2, 3, dtype="int64").triu().tolist()
        [[1, 1, 1], [0, 1, 1]]
        """
    def trunc(self) -> Tensor:
        """
        x without its fractional part, rounded towards zero; it has no gradient, elementwise. One launch.
        
        `x` is this tensor: of any shape.
        
        Returns
        -------
        Tensor
            Of the shape and dtype of `x`; float32 where a function of floats is given integers.
        
        Raises
        ------
        ValueError
            For a dtype that the op is not defined for.
        
        Examples
        --------
        >>> rl.tensor([1.5, -1.5]).trunc().tolist()
        [1.0, -1.0]
        """
    def type_as(self, other: Tensor) -> Tensor:
        """
        The tensor in the dtype of another one, and on its device.
        
            Parameters
            ----------
            other : Tensor
                Of any shape.
        
            Returns
            -------
            Tensor
                The tensor itself if it is that already; else a copy.
        
            Raises
            ------
            ValueError
                For a tensor on "meta" and another one that is not, because there are no values to copy.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.ones(2).type_as(rl.tensor([1, 2])).tolist()
            [1, 1]
            
        """
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """
        The slices along a dimension, views. Backward is that of `rl.split`.
        
        `x` is this tensor.
        
        Parameters
        ----------
        dim : int
            The dimension.
        
        Returns
        -------
        tuple of Tensor
            Without that dimension.
        
        Raises
        ------
        ValueError
            For a dimension that x lacks.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> [y.tolist() for y in rl.tensor([[1, 2], [3, 4]]).unbind(1)]
        [[1, 3], [2, 4]]
        """
    def unique(self, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False) -> typing.Any:
        """
        The distinct elements, in order. Composed of six launches; its sort takes more of long rows.
        
        Inverses take four more, counts three. The number of elements is read from the device.
        
        `x` is this tensor: (...), flattened.
        
        Parameters
        ----------
        sorted : bool
            They are sorted in any case.
        return_inverse : bool
            Also return where each element of x went: int64, the shape of x.
        return_counts : bool
            Also return how often each occurs: int64.
        
        Returns
        -------
        Tensor or tuple of Tensor
            (N,), and what was asked for beside it. 0.0 and -0.0 are one element, with either sign.
        
        Raises
        ------
        ValueError
            For tensors without memory.
        
        Examples
        --------
        >>> import rooflab as rl
        >>> [y.tolist() for y in rl.tensor([3, 1, 3]).unique(return_counts=True)]
        [[1, 3], [1, 2]]
        """
    def unsqueeze(self, dim: typing.SupportsIndex) -> Tensor:
        """
        The tensor with a new dimension of size 1. A view.
        
        `x` is this tensor: of any shape.
        
        Parameters
        ----------
        dim : int
            Where the new dimension lies in the result.
        
        Returns
        -------
        Tensor
            The same elements.
        
        Raises
        ------
        ValueError
            For a place outside the result.
        
        Examples
        --------
        >>> rl.zeros(2, 3).unsqueeze(1).shape
        (2, 1, 3)
        """
    def var(self, dim: typing.Any = None, *, correction: typing.SupportsFloat | typing.SupportsIndex = 1, keepdim: builtins.bool = False, variant: str = '') -> Tensor:
        """
        The variance over one, several or all dimensions.
        
        One launch, 4 FLOPs per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU
        accumulates in float64.
        
        `x` is this tensor: of a floating dtype.
        
        Parameters
        ----------
        dim : int, tuple of int or None
            What to go over; None is all.
        correction : float
            The divisor is the number of elements minus this: 1 as in PyTorch, 0 as in NumPy.
        keepdim : bool
            Whether reduced dimensions stay, with size 1.
        variant : str
            A rung of rl.variants("var"); the fastest that fits when empty.
        
        Returns
        -------
        Tensor
            Of the dtype of `x`; NaN where there is nothing to divide by.
        
        Raises
        ------
        ValueError
            For integers; for a `dim` that `x` lacks or that appears twice.
        
        Examples
        --------
        >>> rl.tensor([1.0, 2.0, 3.0, 6.0]).var(correction=0).item()
        3.5
        """
    def view(self, *args) -> Tensor:
        """
        The same elements under another shape. Nothing is copied.
        
        Parameters
        ----------
        *args : int, or one sequence of int
            The new shape. One size may be -1; it follows from the others.
        
        Returns
        -------
        Tensor
            A view.
        
        Raises
        ------
        ValueError
            For a shape of another number of elements, and for a layout that needs a copy; `reshape` makes one.
        
        Examples
        --------
        >>> rl.arange(6).view(2, -1).tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
    def view_as(self, other: Tensor) -> Tensor:
        """
        A view with the shape of another tensor.
        
            Parameters
            ----------
            other : Tensor
                With as many elements.
        
            Returns
            -------
            Tensor
                A view; nothing is launched.
        
            Raises
            ------
            ValueError
                For another number of elements, and for a layout that needs a copy.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.arange(4).view_as(rl.ones(2, 2)).tolist()
            [[0, 1], [2, 3]]
            
        """
    def where(self, condition: Tensor, other: typing.Any) -> Tensor:
        """
        self where the condition holds, else other; shapes broadcast. One launch.
        
            Parameters
            ----------
            condition : Tensor
                bool.
            other : Tensor or number
                Of a shape that broadcasts with the others.
        
            Returns
            -------
            Tensor
                Of the shape that all three broadcast to, and of the common dtype of both tensors.
        
            Raises
            ------
            ValueError
                For a condition that is not bool, and shapes that do not broadcast.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.ones(2).where(rl.tensor([True, False]), 0.0).tolist()
            [1.0, 0.0]
            
        """
    def zero_(self) -> Tensor:
        """
        Write 0 to all elements, in place. One launch.
        
        Returns
        -------
        Tensor
            The tensor itself.
        
        Raises
        ------
        ValueError
            For a tensor that requires grad, unless under rl.no_grad().
        
        Examples
        --------
        >>> rl.ones(2).zero_().tolist()
        [0.0, 0.0]
        """
    @property
    def T(self) -> Tensor:
        """
        The transpose of a matrix (M, N). A view: nothing is launched.
        
        Returns
        -------
        Tensor
            (N, M); a tensor of fewer than 2 dimensions as it is.
        
        Raises
        ------
        AttributeError
            For more than 2 dimensions.
        
        Examples
        --------
        >>> rl.ones(2, 3).T.shape
        (3, 2)
        """
    @property
    def __cuda_array_interface__(self) -> dict:
        ...
    @property
    def data(self) -> Tensor:
        """
        The same memory, outside of any graph.
        
            It can be set: that gives a leaf other values, of any shape, dtype or device, in its own Python object.
        
            Returns
            -------
            Tensor
                A view that does not require grad.
        
            Raises
            ------
            ValueError
                When it is set on a result of a recorded op, or to integers where the tensor requires grad.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> x = rl.ones(2, requires_grad=True)
            >>> x.data = rl.zeros(3)
            >>> x
            tensor([0., 0., 0.], requires_grad=True)
            
        """
    @data.setter
    def data(self, value: Tensor) -> None:
        ...
    @property
    def device(self) -> rooflab._device.device:
        """
        Where its memory is.
        
        Returns
        -------
        device
            A str, such as "cpu", "cuda:0" or "meta:H200", that has `type` and `index` too.
        
        Examples
        --------
        >>> x = rl.ones(2)
        >>> x.device == "cpu", x.device.type
        (True, 'cpu')
        """
    @property
    def dtype(self) -> DType:
        """
        The type of its elements.
        
        Returns
        -------
        DType
            rl.float32, rl.bfloat16, rl.int64 ...
        
        Examples
        --------
        >>> rl.ones(2).dtype, rl.tensor([1, 2]).dtype
        (rooflab.float32, rooflab.int64)
        """
    @property
    def grad(self) -> Tensor | None:
        """
        The sum of the gradients that `backward` has computed for this tensor.
        
        It can be set, and set to None.
        
        Returns
        -------
        Tensor or None
            Of the shape, dtype and device of the tensor; None before the first `backward`.
        
        Raises
        ------
        ValueError
            When it is set to a tensor of another shape, dtype or device.
        
        Examples
        --------
        >>> x = rl.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 4.0]
        """
    @grad.setter
    def grad(self, arg1: Tensor | None) -> None:
        ...
    @property
    def grad_fn(self) -> _autograd.Node:
        """
        The recorded op that made the tensor.
        
        Returns
        -------
        Node or None
            With the op's `name`; None for a leaf.
        
        Examples
        --------
        >>> (rl.ones(2, requires_grad=True) + 1).grad_fn
        <add>
        """
    @property
    def is_cuda(self) -> builtins.bool:
        """
        Whether it lies on a GPU.
        
            Returns
            -------
            bool
                False on "meta", where there is no memory.
        
            Examples
            --------
            >>> import rooflab as rl
            >>> rl.ones(2).is_cuda
            False
            
        """
    @property
    def is_leaf(self) -> builtins.bool:
        """
        Whether no recorded op made the tensor.
        
        Returns
        -------
        bool
            Leaves are what users make; only they get a `grad` by themselves.
        
        Examples
        --------
        >>> x = rl.ones(2, requires_grad=True)
        >>> x.is_leaf, (x + 1).is_leaf
        (True, False)
        """
    @property
    def itemsize(self) -> builtins.int:
        """
        How many bytes an element has.
        
        Returns
        -------
        int
            Bytes.
        
        Examples
        --------
        >>> rl.ones(2).itemsize, rl.ones(2).half().itemsize
        (4, 2)
        """
    @property
    def mT(self) -> Tensor:
        """
        The transpose of each matrix of a batch (..., M, N). A view: nothing is launched.
        
        Returns
        -------
        Tensor
            (..., N, M).
        
        Raises
        ------
        AttributeError
            For fewer than 2 dimensions.
        
        Examples
        --------
        >>> rl.ones(4, 2, 3).mT.shape
        (4, 3, 2)
        """
    @property
    def nbytes(self) -> builtins.int:
        """
        How many bytes its elements have.
        
        Returns
        -------
        int
            Bytes: the number of elements times the size of one. A view has as many as a copy of it would.
        
        Examples
        --------
        >>> rl.ones(2, 3).nbytes
        24
        """
    @property
    def ndim(self) -> builtins.int:
        """
        How many dimensions it has.
        
        Returns
        -------
        int
            0 for a tensor of one element without dimensions.
        
        Examples
        --------
        >>> rl.ones(2, 3).ndim
        2
        """
    @property
    def requires_grad(self) -> builtins.bool:
        """
        Whether ops on the tensor are recorded, so that it gets a gradient.
        
        It can be set on a leaf.
        
        Returns
        -------
        bool
            True as well for results of recorded ops.
        
        Raises
        ------
        ValueError
            When it is set on integers, or set to False on a result.
        
        Examples
        --------
        >>> x = rl.ones(2)
        >>> x.requires_grad = True
        >>> (x * 2).requires_grad
        True
        """
    @requires_grad.setter
    def requires_grad(self, arg1: builtins.bool) -> None:
        ...
    @property
    def shape(self) -> tuple[builtins.int, ...]:
        """
        The size of each dimension.
        
        Returns
        -------
        tuple of int
            Empty for a tensor without dimensions, which has one element.
        
        Examples
        --------
        >>> rl.ones(2, 3).shape
        (2, 3)
        """
    @property
    def strides(self) -> tuple[builtins.int, ...]:
        """
        How far neighbours along each dimension lie apart in memory.
        
        Returns
        -------
        tuple of int
            In elements, not in bytes; 0 along a dimension that `expand` repeats.
        
        Examples
        --------
        >>> rl.ones(2, 3).strides, rl.ones(2, 3).T.strides
        ((3, 1), (1, 3))
        """
class Cost:
    """
    What one op has to do.
    
    Costs can be added, multiplied by a number and compared.
    
    Attributes
    ----------
    macs, flops : int
        Multiply-accumulates, and all floating-point operations, 2 for each MAC.
    bytes_read, bytes_written, bytes : int
        Compulsory bytes: each distinct piece of memory once; `bytes` is the sum.
    
    Examples
    --------
    >>> cost = rl.Cost(macs=4, flops=8, bytes_read=32, bytes_written=16)
    >>> cost.bytes, (2 * cost).flops
    (48, 16)
    """
    @classmethod
    def __init_subclass__(cls) -> None:
        ...
    @classmethod
    def from_dict(cls, values: collections.abc.Mapping[str, typing.Any]) -> typing.Any:
        """
        The cost from what `to_dict` gave.
        
                Parameters
                ----------
                values : mapping of str to object
                    All fields, and no others.
        
                Returns
                -------
                Cost
                    Equal to the one that was saved.
        
                Raises
                ------
                ValueError
                    When a field is missing, unknown or of another type.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> rl.Cost.from_dict({"macs": 4, "flops": 8, "bytes_read": 0, "bytes_written": 0}).flops
                8
                
        """
    @classmethod
    def from_json(cls, text: str) -> typing.Self:
        """
        The result from what `to_json` gave.
        
                Parameters
                ----------
                text : str
                    JSON.
        
                Returns
                -------
                result
                    Equal to the one that was saved.
        
                Raises
                ------
                ValueError
                    When the text is not JSON, or a field is missing, unknown or of another type.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> rl.Cost.from_json(cost.to_json()) == cost
                True
                
        """
    def __add__(self, arg0: Cost) -> Cost:
        ...
    def __eq__(self, arg0: Cost) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, *, macs: typing.SupportsIndex = 0, flops: typing.SupportsIndex = 0, bytes_read: typing.SupportsIndex = 0, bytes_written: typing.SupportsIndex = 0) -> None:
        ...
    def __mul__(self, arg0: typing.SupportsIndex) -> Cost:
        ...
    def __post_init__(self) -> None:
        """
        One that is read again is equal to the first one because both hold numbers of the same types.
        """
    def __repr__(self) -> str:
        ...
    def __rmul__(self, arg0: typing.SupportsIndex) -> Cost:
        ...
    def __setstate__(self, state: dict[str, typing.Any]) -> None:
        """
        A copy and one that is unpickled cannot be written to either: NumPy would make arrays that can.
        """
    def _figures(self) -> rooflab.results.Table:
        ...
    def _repr_html_(self) -> str:
        ...
    def _table(self) -> rooflab.results.Table:
        ...
    def _values(self) -> dict[str, typing.Any]:
        ...
    def to_csv(self) -> str:
        """
        The exact figures as CSV.
        
                Returns
                -------
                str
                    A header with units in the names, and a line for each row, in full precision. Empty cells are not known.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> cost.to_csv()
                'macs,flops,bytes_read,bytes_written\\n4,8,0,0\\n'
                
        """
    def to_dict(self) -> dict[str, typing.Any]:
        """
        Everything as plain values.
        
                Returns
                -------
                dict of str to object
                    Dicts, lists, numbers and texts, under the names of the attributes.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> cost.to_dict()
                {'macs': 4, 'flops': 8, 'bytes_read': 0, 'bytes_written': 0}
                
        """
    def to_json(self, indent: int | None = None) -> str:
        """
        What `to_dict` gives, as JSON.
        
                Parameters
                ----------
                indent : int, optional
                    How many spaces a level is indented by. By default all is one line.
        
                Returns
                -------
                str
                    Numbers that are not finite are the texts "NaN", "Infinity" and "-Infinity".
        
                Raises
                ------
                TypeError
                    For an `indent` that is no integer.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> cost.to_json()
                '{"macs": 4, "flops": 8, "bytes_read": 0, "bytes_written": 0}'
                
        """
    def to_markdown(self) -> str:
        """
        The table that people read, in Markdown.
        
                Returns
                -------
                str
                    A line for each row, below the names of the columns with their units.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> print(cost.to_markdown())
                | macs | flops | bytes_read | bytes_written |
                |---:|---:|---:|---:|
                | 4 | 8 | 0 | 0 |
                
        """
    def to_pandas(self) -> pandas.DataFrame:
        """
        The rows of `to_csv` as a table of pandas.
        
                Returns
                -------
                pandas.DataFrame
                    A row for each row, with units in the names of the columns.
        
                Raises
                ------
                ImportError
                    When pandas is not installed.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> frame = cost.to_pandas()  # doctest: +SKIP
                >>> frame["flops"].tolist()  # doctest: +SKIP
                [8]
                
        """
    @property
    def arithmetic_intensity(self) -> float:
        """
        FLOPs per byte.
        """
    @property
    def bytes(self) -> int:
        ...
    @property
    def bytes_read(self) -> int:
        ...
    @property
    def bytes_written(self) -> int:
        ...
    @property
    def flops(self) -> int:
        ...
    @property
    def macs(self) -> int:
        ...
class Counts:
    """
    Exact counts of launches, work, bytes and allocations.
    
    Attributes
    ----------
    ops : int
        Calls of ops, the same on every device.
    launches, host_calls : int
        Kernels that ran, and submissions to the driver: a replay of a graph is one.
    macs, flops : int
        Arithmetic that the ops declare; a MAC is 2 FLOPs.
    bytes_read, bytes_written : int
        Compulsory bytes that the ops declare.
    allocations, bytes_allocated : int
        Memory given to tensors, scratch and workspaces.
    
    Examples
    --------
    >>> with rl.count() as c:
    ...     y = rl.exp(rl.ones(10, 10))
    >>> c.by_op["exp"].launches, c.by_op["exp"].flops
    (1, 100)
    """
    @classmethod
    def __init_subclass__(cls) -> None:
        ...
    @classmethod
    def from_dict(cls, values: collections.abc.Mapping[str, typing.Any]) -> typing.Any:
        """
        The saved counts from what `to_dict` gave.
        
                Parameters
                ----------
                values : mapping of str to object
                    All fields, and no others.
        
                Returns
                -------
                SavedCounts
                    Equal to the counts that were saved.
        
                Raises
                ------
                ValueError
                    When a field is missing, unknown or of another type.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> with rl.count() as c:
                ...     y = rl.ones(3) + 1
                >>> rl.Counts.from_dict(c.by_op["add"].to_dict()).flops
                3
                
        """
    @classmethod
    def from_json(cls, text: str) -> typing.Self:
        """
        The result from what `to_json` gave.
        
                Parameters
                ----------
                text : str
                    JSON.
        
                Returns
                -------
                result
                    Equal to the one that was saved.
        
                Raises
                ------
                ValueError
                    When the text is not JSON, or a field is missing, unknown or of another type.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> rl.Cost.from_json(cost.to_json()) == cost
                True
                
        """
    def __eq__(self, other: typing.Any) -> bool:
        """
        Whether the other ones hold the same numbers; saved ones are equal to those of the core.
        """
    def __hash__(self) -> int:
        ...
    def __post_init__(self) -> None:
        """
        One that is read again is equal to the first one because both hold numbers of the same types.
        """
    def __repr__(self) -> str:
        ...
    def __setstate__(self, state: dict[str, typing.Any]) -> None:
        """
        A copy and one that is unpickled cannot be written to either: NumPy would make arrays that can.
        """
    def _figures(self) -> rooflab.results.Table:
        ...
    def _repr_html_(self) -> str:
        ...
    def _table(self) -> rooflab.results.Table:
        ...
    def _values(self) -> dict[str, typing.Any]:
        ...
    def to_csv(self) -> str:
        """
        The exact figures as CSV.
        
                Returns
                -------
                str
                    A header with units in the names, and a line for each row, in full precision. Empty cells are not known.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> cost.to_csv()
                'macs,flops,bytes_read,bytes_written\\n4,8,0,0\\n'
                
        """
    def to_dict(self) -> dict[str, typing.Any]:
        """
        Everything as plain values.
        
                Returns
                -------
                dict of str to object
                    Dicts, lists, numbers and texts, under the names of the attributes.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> cost.to_dict()
                {'macs': 4, 'flops': 8, 'bytes_read': 0, 'bytes_written': 0}
                
        """
    def to_json(self, indent: int | None = None) -> str:
        """
        What `to_dict` gives, as JSON.
        
                Parameters
                ----------
                indent : int, optional
                    How many spaces a level is indented by. By default all is one line.
        
                Returns
                -------
                str
                    Numbers that are not finite are the texts "NaN", "Infinity" and "-Infinity".
        
                Raises
                ------
                TypeError
                    For an `indent` that is no integer.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> cost.to_json()
                '{"macs": 4, "flops": 8, "bytes_read": 0, "bytes_written": 0}'
                
        """
    def to_markdown(self) -> str:
        """
        The table that people read, in Markdown.
        
                Returns
                -------
                str
                    A line for each row, below the names of the columns with their units.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> print(cost.to_markdown())
                | macs | flops | bytes_read | bytes_written |
                |---:|---:|---:|---:|
                | 4 | 8 | 0 | 0 |
                
        """
    def to_pandas(self) -> pandas.DataFrame:
        """
        The rows of `to_csv` as a table of pandas.
        
                Returns
                -------
                pandas.DataFrame
                    A row for each row, with units in the names of the columns.
        
                Raises
                ------
                ImportError
                    When pandas is not installed.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> frame = cost.to_pandas()  # doctest: +SKIP
                >>> frame["flops"].tolist()  # doctest: +SKIP
                [8]
                
        """
    @property
    def allocations(self) -> int:
        ...
    @property
    def bytes_allocated(self) -> int:
        ...
    @property
    def bytes_read(self) -> int:
        ...
    @property
    def bytes_written(self) -> int:
        ...
    @property
    def flops(self) -> int:
        ...
    @property
    def host_calls(self) -> int:
        ...
    @property
    def launches(self) -> int:
        ...
    @property
    def macs(self) -> int:
        ...
    @property
    def ops(self) -> int:
        ...
class count:
    """
    Counts what the runtime does inside `with rl.count() as c:`.
    
    It has the figures of `rl.Counts` in total, and can be read inside of the block too. It counts what all threads of the
    process do. Another `rl.count()` may count inside of the block, and one that has ended may begin again from 0.
    
    Attributes
    ----------
    by_op, by_range : dict of str to Counts
        The same for each op, and for each range that `rl.range` opened.
    
    Raises
    ------
    RuntimeError
        On entry, while it counts already: in the same thread or another one.
    ValueError
        On entry inside a function that `rl.compile` records, which runs nothing; `rl.compile` then calls it as it is written.
    
    Examples
    --------
    >>> a = rl.ones(512, 512)
    >>> with rl.count() as c:
    ...     b = a @ a
    >>> c.launches, c.macs, c.bytes_read + c.bytes_written
    (1, 134217728, 2097152)
    """
    __hash__: typing.ClassVar[None] = None
    @classmethod
    def __init_subclass__(cls) -> None:
        ...
    @classmethod
    def from_dict(cls, values: collections.abc.Mapping[str, typing.Any]) -> typing.Any:
        """
        The saved counter from what `to_dict` gave.
        
                Parameters
                ----------
                values : mapping of str to object
                    All fields, and no others.
        
                Returns
                -------
                SavedCounter
                    Equal to the counter that was saved.
        
                Raises
                ------
                ValueError
                    When a field is missing, unknown or of another type.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> with rl.count() as c:
                ...     y = rl.ones(3) + 1
                >>> rl.count.from_dict(c.to_dict()) == c
                True
                
        """
    @classmethod
    def from_json(cls, text: str) -> typing.Self:
        """
        The result from what `to_json` gave.
        
                Parameters
                ----------
                text : str
                    JSON.
        
                Returns
                -------
                result
                    Equal to the one that was saved.
        
                Raises
                ------
                ValueError
                    When the text is not JSON, or a field is missing, unknown or of another type.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> rl.Cost.from_json(cost.to_json()) == cost
                True
                
        """
    def __enter__(self) -> count:
        ...
    def __eq__(self, other: typing.Any) -> bool:
        """
        Whether the other one counted the same; a saved one is equal to the one that it was made of.
        """
    def __exit__(self, *args) -> None:
        ...
    def __init__(self) -> None:
        ...
    def __post_init__(self) -> None:
        """
        One that is read again is equal to the first one because both hold numbers of the same types.
        """
    def __repr__(self) -> str:
        ...
    def __setstate__(self, state: dict[str, typing.Any]) -> None:
        """
        A copy and one that is unpickled cannot be written to either: NumPy would make arrays that can.
        """
    def _figures(self) -> rooflab.results.Table:
        ...
    def _has_counted(self) -> bool:
        """
        False if nothing ran: zeros would look like a measurement of something.
        """
    def _repr_html_(self) -> str:
        ...
    def _table(self) -> rooflab.results.Table:
        ...
    def _values(self) -> dict[str, typing.Any]:
        ...
    def to_csv(self) -> str:
        """
        The exact figures as CSV.
        
                Returns
                -------
                str
                    A header with units in the names, and a line for each row, in full precision. Empty cells are not known.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> cost.to_csv()
                'macs,flops,bytes_read,bytes_written\\n4,8,0,0\\n'
                
        """
    def to_dict(self) -> dict[str, typing.Any]:
        """
        Everything as plain values.
        
                Returns
                -------
                dict of str to object
                    Dicts, lists, numbers and texts, under the names of the attributes.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> cost.to_dict()
                {'macs': 4, 'flops': 8, 'bytes_read': 0, 'bytes_written': 0}
                
        """
    def to_json(self, indent: int | None = None) -> str:
        """
        What `to_dict` gives, as JSON.
        
                Parameters
                ----------
                indent : int, optional
                    How many spaces a level is indented by. By default all is one line.
        
                Returns
                -------
                str
                    Numbers that are not finite are the texts "NaN", "Infinity" and "-Infinity".
        
                Raises
                ------
                TypeError
                    For an `indent` that is no integer.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> cost.to_json()
                '{"macs": 4, "flops": 8, "bytes_read": 0, "bytes_written": 0}'
                
        """
    def to_markdown(self) -> str:
        """
        The table that people read, in Markdown.
        
                Returns
                -------
                str
                    A line for each row, below the names of the columns with their units.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> print(cost.to_markdown())
                | macs | flops | bytes_read | bytes_written |
                |---:|---:|---:|---:|
                | 4 | 8 | 0 | 0 |
                
        """
    def to_pandas(self) -> pandas.DataFrame:
        """
        The rows of `to_csv` as a table of pandas.
        
                Returns
                -------
                pandas.DataFrame
                    A row for each row, with units in the names of the columns.
        
                Raises
                ------
                ImportError
                    When pandas is not installed.
        
                Examples
                --------
                >>> import rooflab as rl
                >>> cost = rl.Cost(macs=4, flops=8)
                >>> frame = cost.to_pandas()  # doctest: +SKIP
                >>> frame["flops"].tolist()  # doctest: +SKIP
                [8]
                
        """
    @property
    def allocations(self) -> int:
        ...
    @property
    def by_op(self) -> dict[str, Counts]:
        ...
    @property
    def by_range(self) -> dict[str, Counts]:
        """
        Keys are paths: 'mlp' and 'mlp/gate'; a path includes its inner ranges. What a graph replays has the range of its capture, inside of the one that is open.
        """
    @property
    def bytes_allocated(self) -> int:
        ...
    @property
    def bytes_read(self) -> int:
        ...
    @property
    def bytes_written(self) -> int:
        ...
    @property
    def flops(self) -> int:
        ...
    @property
    def host_calls(self) -> int:
        ...
    @property
    def launches(self) -> int:
        ...
    @property
    def macs(self) -> int:
        ...
    @property
    def ops(self) -> int:
        ...
    @property
    def peak_bytes(self) -> int:
        """
        Highest memory in tensors above what was held on entry.
        """
class _PrivateCount:
    """
    Counts this thread's calls on tensors without memory inside of a with-block, and nobody else does; `rooflab.cost` is built on it. With `is_seen=True` others count them as well.
    """
    def __enter__(self) -> _PrivateCount:
        ...
    def __exit__(self, *args) -> None:
        ...
    def __init__(self, *, is_seen: bool = False) -> None:
        ...
    @property
    def by_op(self) -> dict[str, Counts]:
        ...
    @property
    def total(self) -> Counts:
        ...
class range:
    """
    Names what runs inside `with rl.range('mlp'):`, for counters, profiles and Nsight Systems. A graph's replay belongs to it too: the ranges of the capture are then inside of it.
    """
    def __enter__(self) -> None:
        ...
    def __exit__(self, *args) -> None:
        ...
    def __init__(self, name: str) -> None:
        ...
class Variant:
    """
    One rung of an op's ladder; `rl.variants` lists them.
    
    Attributes
    ----------
    name, device : str
        What `variant=` takes, and "cpu" or "cuda".
    idea : str
        What this rung does differently, in one line.
    
    Examples
    --------
    >>> rl.variants("gelu", "cpu")[-1].name
    'v0_reference'
    """
    def __repr__(self) -> str:
        ...
    @property
    def device(self) -> str:
        ...
    @property
    def idea(self) -> str:
        ...
    @property
    def kernel(self) -> str:
        """
        The function's name, as profiles show it.
        """
    @property
    def name(self) -> str:
        ...
class _Capture:
    def __enter__(self) -> typing.Any:
        ...
    def __exit__(self, arg0: typing.Any, arg1: typing.Any, arg2: typing.Any) -> None:
        ...
class Graph:
    """
    Ops that are captured once and replayed by one host call each time.
    
    What runs inside `with graph.capture():` is captured and not run: results hold no values before the first replay().
    Replays read and write the tensors of the capture, so new inputs are copied into them with copy_(), and results are read
    from them. On a GPU it is a CUDA graph; on the CPU the list of kernels. Random numbers differ from replay to replay.
    Counters and profiles see the kernels of every replay. What a graph cannot hold, such as reading a value, raises
    ValueError with the op's name.
    
    Parameters
    ----------
    device : str, optional
        Where the captured ops run. By default the GPU if there is one, otherwise the CPU.
    
    Raises
    ------
    ValueError
        For what is neither the CPU nor a GPU.
    CudaError
        For a GPU that is not there.
    
    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(4)
    >>> graph = rl.Graph(device="cpu")
    >>> with graph.capture():
    ...     y = rl.exp(x * 0)
    >>> graph.replay()
    >>> y.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    @staticmethod
    def is_capturing() -> bool:
        """
        Whether this thread captures ops into a graph.
        
        Returns
        -------
        bool
            True inside `with graph.capture():`.
        
        Examples
        --------
        >>> rl.Graph.is_capturing()
        False
        """
    def __init__(self, device: typing.Any = None) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def capture(self) -> _Capture:
        """
        Capture what runs inside `with graph.capture():`.
        
        Returns
        -------
        context manager
            It gives the graph. An error inside ends the capture, and the graph stays empty.
        
        Raises
        ------
        ValueError
            On entering, when the graph holds a capture already, and when this thread captures another one. Inside, for an op
            that a graph cannot hold.
        
        Examples
        --------
        >>> x = rl.ones(2)
        >>> with rl.Graph(device="cpu").capture() as graph:
        ...     y = x + 1
        >>> graph.launches
        1
        """
    def replay(self) -> None:
        """
        Run what was captured once more, on the current stream.
        
        It reads and writes the tensors of the capture. Those that it writes to were changed in place: `rl.autocast` casts them
        again, and backward refuses what ops had saved of them before, unless these ops were captured too. It is one host call.
        Counters and profiles see each call in the range that was open at its capture, inside of the one that is open now.
        
        Raises
        ------
        ValueError
            When nothing was captured, and inside the capture of another graph.
        
        Examples
        --------
        >>> x = rl.ones(2)
        >>> with rl.Graph(device="cpu").capture() as graph:
        ...     y = x + 1
        >>> _ = x.fill_(5)
        >>> graph.replay()
        >>> y.tolist()
        [6.0, 6.0]
        """
    @property
    def device(self) -> str:
        """
        Where the captured ops run.
        
        Returns
        -------
        str
            Such as "cpu" or "cuda:0".
        
        Examples
        --------
        >>> rl.Graph(device="cpu").device
        'cpu'
        """
    @property
    def launches(self) -> int:
        """
        How many kernels each replay runs.
        
        Returns
        -------
        int
            0 before the capture.
        
        Examples
        --------
        >>> rl.Graph(device="cpu").launches
        0
        """
class ProfilerSession:
    """
    Records the kernels of its steps; rooflab.profile() is built on it.
    """
    @staticmethod
    def has_nvtx() -> bool:
        """
        Whether tools such as Nsight Systems can see ranges.
        """
    def __init__(self, source: str = 'auto', hears_host: bool = True, wants_shapes: bool = False) -> None:
        ...
    def begin_step(self, number: typing.SupportsIndex) -> None:
        ...
    def end_step(self) -> None:
        ...
    def host(self) -> list:
        ...
    def kernels(self) -> list:
        ...
    def ranges(self) -> list:
        ...
    def start(self) -> None:
        ...
    def steps(self) -> list:
        ...
    def stop(self) -> None:
        ...
    @property
    def dropped(self) -> int:
        ...
    @property
    def reason(self) -> str:
        ...
    @property
    def source(self) -> str:
        ...
    @property
    def unfinished(self) -> int:
        ...
    @property
    def without_memory(self) -> int:
        ...
def _apart_from_earlier(sources: collections.abc.Sequence[Tensor], destinations: collections.abc.Sequence[Tensor]) -> list[Tensor]:
    """
    The sources of copies that follow each other: one that lies in an earlier destination is copied first.
    """
def _check_adamw(params: collections.abc.Sequence[Tensor], grads: collections.abc.Sequence[Tensor], exp_avgs: collections.abc.Sequence[Tensor], exp_avg_sqs: collections.abc.Sequence[Tensor], *, step: Tensor | typing.SupportsIndex, lr: Tensor | typing.SupportsFloat | typing.SupportsIndex = 0.001, beta1: typing.SupportsFloat | typing.SupportsIndex = 0.9, beta2: typing.SupportsFloat | typing.SupportsIndex = 0.999, eps: typing.SupportsFloat | typing.SupportsIndex = 1e-08, weight_decay: typing.SupportsFloat | typing.SupportsIndex = 0.01, decay: str = 'before', variant: str = '') -> None:
    """
    Raises what adamw would raise, and changes nothing.
    """
def _kinds(tensors: collections.abc.Sequence[Tensor]) -> list[int]:
    """
    For each tensor, the place of the first that has its dtype and its device.
    """
def _one_hot(index: Tensor, classes: typing.SupportsIndex) -> Tensor:
    """
    1 at the class of each element, else 0: rl.nn.functional.one_hot for a number of classes that is known.
    """
def _overlaps_itself(x: Tensor) -> bool:
    """
    Whether elements of x share memory, so that none can be written to alone.
    """
def _pad(x: Tensor, before: tuple[int, ...], after: tuple[int, ...], value: float) -> Tensor:
    """
    x with one number around it: rl.nn.functional.pad where nothing is cut.
    """
def _rand_at(state: tuple[typing.SupportsIndex, typing.SupportsIndex], shape: tuple[int, ...], *, dtype: typing.Any = 'float32', device: typing.Any = 'cpu') -> Tensor:
    """
    Like rand, from a position in a sequence that is not that of manual_seed.
    """
def _rebuild(values: typing.Any, dtype: typing.Any, device: typing.Any, requires_grad: bool, is_parameter: bool = False) -> Tensor:
    """
    What pickle calls.
    """
def _scale_tensors(tensors: collections.abc.Sequence[Tensor], factor: Tensor, variant: str = '') -> None:
    """
    Multiply tensors of one dtype in place by `factor`, float64 () on their device. One launch for 192 tensors.
    """
@typing.overload
def _scatter(x: Tensor, dim: typing.SupportsIndex, index: Tensor, src: Tensor, variant: str = '') -> Tensor:
    """
    x with the elements of `src` written where an index says, along `dim`: rl.scatter with tensors that fit.
    """
@typing.overload
def _scatter(x: Tensor, dim: typing.SupportsIndex, index: Tensor, src: float, variant: str = '') -> Tensor:
    ...
def _searchsorted(sorted: Tensor, values: Tensor) -> Tensor:
    """
    How many numbers of each sorted row (..., N) are at most each value of (..., M), int64 (..., M).
    """
def _sort_values(x: Tensor, variant: str = '') -> Tensor:
    """
    rl.sort along the last dimension without positions, nor a gradient: zeros of both signs come in any order.
    """
def _strided(base: Tensor, shape: typing.Any, strides: typing.Any, offset: typing.SupportsIndex) -> Tensor:
    """
    A view of what lies between the first and the last element of base; strides and offset in elements.
    """
def _sum_squares(tensors: collections.abc.Sequence[Tensor], variant: str = '') -> Tensor:
    """
    float64 (): the sum of the squares of all elements of tensors of one dtype on one device. One launch on the CPU and two on a GPU for 192 tensors.
    """
def _unbind(x: Tensor, dim: typing.SupportsIndex) -> tuple[Tensor, ...]:
    """
    The slices along a dimension, views: rl.unbind.
    """
def abs(x: Tensor, variant: str = '') -> Tensor:
    """
    |x|, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.abs(rl.tensor([1.0, -2.0])).tolist()
    [1.0, 2.0]
    """
def adamw(params: collections.abc.Sequence[Tensor], grads: collections.abc.Sequence[Tensor], exp_avgs: collections.abc.Sequence[Tensor], exp_avg_sqs: collections.abc.Sequence[Tensor], *, step: Tensor | typing.SupportsIndex, lr: Tensor | typing.SupportsFloat | typing.SupportsIndex = 0.001, beta1: typing.SupportsFloat | typing.SupportsIndex = 0.9, beta2: typing.SupportsFloat | typing.SupportsIndex = 0.999, eps: typing.SupportsFloat | typing.SupportsIndex = 1e-08, weight_decay: typing.SupportsFloat | typing.SupportsIndex = 0.01, decay: str = 'before', variant: str = '') -> None:
    """
    One step of AdamW, in place: what `rl.optim.AdamW` calls.
    
    For a parameter p with the gradient g and the moments m and v, at step t::
    
        p = p - lr weight_decay p                 after the update with decay="after"
        m = m + (g - m) (1 - beta1), or g - (g - m) beta1 where beta1 < 0.5
        v = v beta2 + g^2 (1 - beta2)
        p = p - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
    
    Parameters
    ----------
    params, grads, exp_avgs, exp_avg_sqs : sequence of Tensor
        p, g, m and v: those of a parameter have one shape. All have one floating dtype and device. p, m and v are written.
    step : int or Tensor
        t, from 1. A tensor is int64 () on the parameters' device: a graph reads it again at each replay.
    lr : float or Tensor
        If step is a tensor, lr may be one too: float64 ().
    beta1, beta2, eps, weight_decay : float
        Host numbers: a graph that is replayed keeps the ones it was captured with.
    decay : str
        "before" the update, as PyTorch's AdamW, or "after" it, as textbooks write it.
    variant : str
        A rung of rl.variants("adamw").
    
    Raises
    ------
    ValueError
        When tensors do not fit, for a number out of its range, and for a parameter that requires grad outside rl.no_grad().
    
    Notes
    -----
    Cost: one launch for 64 tensors; 28 bytes and 14 FLOPs per float32 parameter. "v0_composed": 14 launches per tensor.
    Source: Loshchilov and Hutter, arXiv:1711.05101, algorithm 2.
    
    Examples
    --------
    >>> p, m, v = rl.ones(2), rl.zeros(2), rl.zeros(2)
    >>> rl.adamw([p], [rl.ones(2)], [m], [v], step=1, lr=0.5, weight_decay=0.0)
    >>> [round(number, 4) for number in p.tolist()]
    [0.5, 0.5]
    """
@typing.overload
def add(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a + b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.add(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()
    [5.0, 8.0]
    >>> (rl.arange(3) + 2).tolist()
    [2, 3, 4]
    >>> (rl.arange(3) + 0.5).tolist()
    [0.5, 1.5, 2.5]
    """
@typing.overload
def add(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def add(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def add_library_directory(path: str) -> None:
    """
    Adds a folder that is searched for CUDA libraries before the system's own.
    """
def all(x: Tensor, dim: typing.Any = None, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    Whether all elements are true (not 0), over one, several or all dimensions.
    
    One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU takes two for few results.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype; NaN is true.
    dim : int, tuple of int or None
        What to go over; None and an empty tuple are all.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    
    Returns
    -------
    Tensor
        bool; True if there is no element.
    
    Raises
    ------
    ValueError
        For a `dim` that `x` lacks or that appears twice.
    
    Examples
    --------
    >>> rl.all(rl.tensor([[1, 0], [1, 1]]), dim=1).tolist()
    [False, True]
    """
def allclose(a: Tensor, b: Tensor, rtol: typing.SupportsFloat | typing.SupportsIndex = 1e-05, atol: typing.SupportsFloat | typing.SupportsIndex = 1e-08, equal_nan: bool = False) -> bool:
    """
    Whether all elements are close: |a - b| <= atol + rtol |b|, or equal.
    
    Made of abs, sub, mul, add, comparisons and where, in float32 for 16 bits and in float64 for integers; counted as these.
    
    Parameters
    ----------
    a, b : Tensor
        Of one dtype and device; shapes broadcast.
    rtol, atol : float
        The relative and the absolute tolerance.
    equal_nan : bool
        Whether NaN is close to NaN.
    
    Returns
    -------
    bool
        Read back from the device: on a GPU this waits for it.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit, or a tolerance is negative.
    
    Examples
    --------
    >>> rl.allclose(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 2.1]))
    False
    """
def amax(x: Tensor, dim: typing.Any = None, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    The largest element over one, several or all dimensions.
    
    One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype and shape.
    dim : int, tuple of int or None
        What to reduce over; None is all.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    
    Returns
    -------
    Tensor
        Of the dtype of `x`; NaN where there is one. Equal largest elements share the gradient evenly.
    
    Raises
    ------
    ValueError
        When there is no element to choose from; for a `dim` that `x` lacks or that appears twice.
    
    Examples
    --------
    >>> rl.amax(rl.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
    [5.0, 7.0]
    """
def amin(x: Tensor, dim: typing.Any = None, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    The smallest element over one, several or all dimensions.
    
    One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype and shape.
    dim : int, tuple of int or None
        What to reduce over; None is all.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    
    Returns
    -------
    Tensor
        Of the dtype of `x`; NaN where there is one. Equal smallest elements share the gradient evenly.
    
    Raises
    ------
    ValueError
        When there is no element to choose from; for a `dim` that `x` lacks or that appears twice.
    
    Examples
    --------
    >>> rl.amin(rl.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
    [1.0, 2.0]
    """
def any(x: Tensor, dim: typing.Any = None, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    Whether any element is true (not 0), over one, several or all dimensions.
    
    One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU takes two for few results.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype; NaN is true.
    dim : int, tuple of int or None
        What to go over; None and an empty tuple are all.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    
    Returns
    -------
    Tensor
        bool; False if there is no element.
    
    Raises
    ------
    ValueError
        For a `dim` that `x` lacks or that appears twice.
    
    Examples
    --------
    >>> rl.any(rl.tensor([[1, 0], [1, 1]]), dim=1).tolist()
    [True, True]
    """
def arange(start: typing.Any, end: typing.Any = None, step: typing.Any = 1, *, dtype: typing.Any = None, device: typing.Any = 'cpu', requires_grad: bool = False) -> Tensor:
    """
    Numbers from `start` up to, but not including, `end`, in steps of `step`.
    
    Computed in float64, as NumPy does, and in int64 where all are integers. One launch.
    
    Parameters
    ----------
    start, end, step : int or float
        A single number is the end, and the start is 0. `step` may be negative.
    dtype, device : optional
        Of the result: int64 when all are integers, else float32.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        (N,), with N = ceil((end - start) / step).
    
    Raises
    ------
    ValueError
        For a step of 0, numbers that are not finite, and fractions with a dtype of integers.
    
    Examples
    --------
    >>> rl.arange(3).tolist(), rl.arange(0, 1, 0.25).tolist()
    ([0, 1, 2], [0.0, 0.25, 0.5, 0.75])
    """
def argmax(x: Tensor, dim: typing.SupportsIndex | None = None, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    The position of the largest element along a dimension, or in the whole tensor.
    
    One launch, 1 FLOP per element of `x`.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype and shape.
    dim : int or None
        Along which dimension; None takes the tensor as flattened.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    variant : str
        A rung of rl.variants("argmax"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        int64: the first among equal elements; the first NaN, if there is one.
    
    Raises
    ------
    ValueError
        When there is no element to choose from; for a `dim` that `x` lacks.
    
    Examples
    --------
    >>> rl.argmax(rl.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
    [1, 0]
    """
def argmin(x: Tensor, dim: typing.SupportsIndex | None = None, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    The position of the smallest element along a dimension, or in the whole tensor.
    
    One launch, 1 FLOP per element of `x`.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype and shape.
    dim : int or None
        Along which dimension; None takes the tensor as flattened.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    variant : str
        A rung of rl.variants("argmin"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        int64: the first among equal elements; the first NaN, if there is one.
    
    Raises
    ------
    ValueError
        When there is no element to choose from; for a `dim` that `x` lacks.
    
    Examples
    --------
    >>> rl.argmin(rl.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).tolist()
    [0, 1]
    """
def argsort(x: Tensor, dim: typing.SupportsIndex = -1, descending: bool = False) -> Tensor:
    """
    The indices that sort the elements along a dimension.
    
    These are the indices of rl.sort, and they are counted like it.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype.
    dim : int
        Along which dimension.
    descending : bool
        Whether the largest come first.
    
    Returns
    -------
    Tensor
        int64, of the shape of `x`.
    
    Raises
    ------
    ValueError
        For a `dim` that `x` lacks.
    
    Examples
    --------
    >>> rl.argsort(rl.tensor([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
def attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, *, is_causal: bool = False, window: typing.SupportsIndex | None = None, scale: typing.SupportsFloat | typing.SupportsIndex | None = None, kv_length: Tensor | None = None, return_lse: bool = False, return_lse_rest: bool = False, deterministic: bool = False, variant: str = '') -> typing.Any:
    """
    softmax(scale q k^T + mask) v for each batch and head, like torch.nn.functional.scaled_dot_product_attention.
    
    Parameters
    ----------
    q : Tensor
        (B, H, L_q, D_h), or (H, L_q, D_h).
    k, v : Tensor
        (B, H_kv, L_kv, D_h); H_kv divides H, and query head h reads key head h // (H / H_kv). A hidden key adds nothing,
        whatever k and v hold there.
    attn_mask : Tensor, optional
        Broadcasts to (B, H, L_q, L_kv). bool: True may be seen; otherwise q's dtype, added to the scaled scores. One that
        requires grad makes the call run "v0_composed".
    is_causal : bool
        The last query is aligned with the last key (query i at position i + L_kv - L_q) and sees no later key. PyTorch
        counts from the first query and key instead; for L_q = L_kv both are the same.
    window : int, optional
        Only keys at a smaller distance than this are seen, including the query's own.
    scale : float, optional
        1 / sqrt(D_h) when None.
    kv_length : Tensor, optional
        (1,), int64: how many keys there are. k and v end there, as if they were sliced, but the device reads the number
        when the kernel runs, so a graph that is replayed can see one key more each time. No gradient goes through it, and
        the counted work is that of all L_kv keys.
    return_lse : bool
        Also return the natural log of the sum of exponentials of the scores; no gradient flows through it.
    return_lse_rest : bool
        Also return that, and then what rounding it to its dtype has left out. attention_backward takes both; without the
        rest, an error of |lse| 2^-24 of the log-sum-exp is a relative error of the weights.
    deterministic : bool
        The gradients have the same bits on every run, at some cost in time.
    variant : str
        A rung of rl.variants("attention"). "v0_composed" is the textbook form: L_q x L_kv matrices, one op per step. Its
        backward pass computes them again. It is the only rung for float64.
    
    Returns
    -------
    Tensor, or (Tensor, Tensor), or (Tensor, Tensor, Tensor)
        (B, H, L_q, D_h), laid out like q; zeros where a query sees no key. With return_lse also (B, H, L_q), float32
        (float64 for float64), -inf where a query sees no key. With return_lse_rest also the same of the rest, 0 there.
    
    Cost: one launch, or on a GPU two where the keys are split or a bool mask is packed first; 2 D_h MACs and 5 more FLOPs
    for each pair that causality and the window allow.
    Source: Dao, FlashAttention-2 (arXiv:2307.08691).
    
    Raises
    ------
    ValueError
        For shapes or dtypes that do not fit, and a rung that does not take them.
    
    Examples
    --------
    >>> q = rl.randn(1, 4, 8, 16)
    >>> rl.attention(q, q, q, is_causal=True).shape
    (1, 4, 8, 16)
    """
def attention_backward(dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, attn_mask: Tensor | None = None, *, is_causal: bool = False, window: typing.SupportsIndex | None = None, scale: typing.SupportsFloat | typing.SupportsIndex | None = None, lse_rest: Tensor | None = None, deterministic: bool = False, variant: str = '') -> tuple[Tensor, Tensor, Tensor]:
    """
    The gradients of attention, with the scores recomputed.
    
    5 D_h MACs per visible pair; no L_q x L_kv tensor except in "v0_composed". v and dout of hidden pairs add nothing, NaN or
    not; q and k must be finite. Source: Dao, FlashAttention-2 (arXiv:2307.08691), algorithm 2.
    
    Parameters
    ----------
    dout, out : Tensor
        The gradient of the result, and the result; like q.
    q, k, v : Tensor
        What `attention` got, and so with attn_mask, is_causal, window and scale.
    lse, lse_rest : Tensor
        What attention(..., return_lse_rest=True) returned; without the rest it counts as 0, which costs digits where |lse| is
        large.
    deterministic : bool
        The same bits on every run.
    variant : str
        A rung of rl.variants("attention_backward"); the fastest that fits when empty.
    
    Returns
    -------
    tuple of Tensor
        (dq, dk, dv), laid out like q, k and v.
    
    Raises
    ------
    ValueError
        For shapes or dtypes that do not fit.
    
    Examples
    --------
    >>> q = rl.randn(1, 4, 8, 16)
    >>> out, lse = rl.attention(q, q, q, return_lse=True)
    >>> [gradient.shape for gradient in rl.attention_backward(rl.ones_like(out), q, q, q, out, lse)]
    [(1, 4, 8, 16), (1, 4, 8, 16), (1, 4, 8, 16)]
    """
def attention_mask(q_length: typing.SupportsIndex, kv_length: typing.SupportsIndex, *, is_causal: bool = True, window: typing.SupportsIndex | None = None, device: str = 'cpu') -> Tensor:
    """
    The keys that each query may see. One launch.
    
    Parameters
    ----------
    q_length, kv_length : int
        L_q and L_kv. The last query stands beside the last key.
    is_causal : bool
        Whether a query sees no later key.
    window : int, optional
        Only keys nearer than this are seen.
    device : str
        Where the mask lies.
    
    Returns
    -------
    Tensor
        (L_q, L_kv), bool: True may be seen.
    
    Raises
    ------
    ValueError
        For a negative length, or a window below 1.
    
    Examples
    --------
    >>> rl.attention_mask(2, 3).tolist()
    [[True, True, False], [True, True, True]]
    """
@typing.overload
def bitwise_and(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a & b, bit by bit; for bools, whether both hold, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.bitwise_and(rl.tensor([12, 10]), rl.tensor([10, 3])).tolist()
    [8, 2]
    """
@typing.overload
def bitwise_and(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def bitwise_and(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def bitwise_not(x: Tensor, variant: str = '') -> Tensor:
    """
    ~x, bit by bit; for a bool, its opposite, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.bitwise_not(rl.tensor([True, False])).tolist()
    [False, True]
    """
@typing.overload
def bitwise_or(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a | b, bit by bit; for bools, whether one holds, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.bitwise_or(rl.tensor([12, 10]), rl.tensor([10, 3])).tolist()
    [14, 11]
    """
@typing.overload
def bitwise_or(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def bitwise_or(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
@typing.overload
def bitwise_xor(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a ^ b, bit by bit; for bools, whether they differ, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.bitwise_xor(rl.tensor([12, 10]), rl.tensor([10, 3])).tolist()
    [6, 9]
    """
@typing.overload
def bitwise_xor(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def bitwise_xor(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def cast(x: Tensor, dtype: typing.Any, variant: str = '') -> Tensor:
    """
    x in another dtype; itself when it has it already. One launch otherwise, no FLOPs.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype and shape.
    dtype : dtype or str
        rl.float16, "float16" ...
    variant : str
        A rung of rl.variants("cast"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Rounded to the nearest for floating dtypes, towards zero for integers.
    
    Raises
    ------
    ValueError
        For what is no dtype.
    
    Examples
    --------
    >>> rl.cast(rl.tensor([1.5, -1.5]), "int64").tolist()
    [1, -1]
    """
def cat(tensors: collections.abc.Sequence[Tensor], dim: typing.SupportsIndex = 0, variant: str = '') -> Tensor:
    """
    Joins tensors along a dimension.
    
    One op. Up to 32 tensors take one launch. Where their dtypes differ, or the elements of a row are not adjacent in
    memory, each tensor that is not empty takes a launch of its own.
    
    Parameters
    ----------
    tensors : sequence of Tensor
        At least one, all on one device; their shapes differ along `dim` alone.
    dim : int
        The dimension that grows.
    variant : str
        A rung of rl.variants("cat"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Contiguous; each tensor gets its part of the gradient.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit, or there is no tensor.
    
    Examples
    --------
    >>> rl.cat([rl.tensor([1, 2]), rl.tensor([3])]).tolist()
    [1, 2, 3]
    """
def ceil(x: Tensor, variant: str = '') -> Tensor:
    """
    the smallest integer that is not below x; it has no gradient, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.ceil(rl.tensor([1.5, -1.5])).tolist()
    [2.0, -1.0]
    """
def chunk(x: Tensor, chunks: typing.SupportsIndex, dim: typing.SupportsIndex = 0) -> tuple[Tensor, ...]:
    """
    Splits a tensor into a number of equal parts along a dimension. Views: nothing is launched, and backward is that of
    rl.split.
    
    Parameters
    ----------
    x : Tensor
        What to cut.
    chunks : int
        How many parts. The size of a part is rounded up, so there may be fewer.
    dim : int
        Along which dimension.
    
    Returns
    -------
    tuple of Tensor
        Views of `x`; the last may be smaller.
    
    Raises
    ------
    ValueError
        When `chunks` is not positive; for a `dim` that `x` lacks.
    
    Examples
    --------
    >>> [part.tolist() for part in rl.arange(5).chunk(2)]
    [[0, 1, 2], [3, 4]]
    """
def clamp(x: Tensor, min: float | None = None, max: float | None = None, variant: str = '') -> Tensor:
    """
    The elements, limited to the range from `min` to `max`.
    
    One launch, 2 FLOPs per element; with one bound it is rl.maximum or rl.minimum, and counted as that. Only elements
    between the bounds have a gradient: at a bound it is 0, as in PyTorch 2.15. For bounds that are tensors, use rl.maximum
    and rl.minimum.
    
    Parameters
    ----------
    x : Tensor
        Of any numeric dtype; NaN stays.
    min, max : float, optional
        At least one of them; where they cross, `max` wins.
    variant : str
        A rung of rl.variants("clamp"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape of `x`, and of its dtype; float32 for integers with a bound that is a float.
    
    Raises
    ------
    ValueError
        Without a bound; for one that the dtype cannot hold.
    
    Examples
    --------
    >>> rl.clamp(rl.tensor([-2.0, 0.5, 3.0]), 0, 1).tolist()
    [0.0, 0.5, 1.0]
    """
def copy(x: Tensor, variant: str = '') -> Tensor:
    """
    A contiguous copy of x. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype and layout.
    variant : str
        A rung of rl.variants("copy"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        With memory of its own.
    
    Raises
    ------
    ValueError
        For a rung that does not take `x`.
    
    Examples
    --------
    >>> rl.copy(rl.ones(2, 3).T).is_contiguous()
    True
    """
def cos(x: Tensor, variant: str = '') -> Tensor:
    """
    cosine of x radians, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.cos(rl.tensor([0.0, 0.0])).tolist()
    [1.0, 1.0]
    """
def cpu_isa() -> str:
    """
    The instruction set that CPU kernels use here.
    
    Returns
    -------
    str
        "avx512_bf16", "avx512", "avx2", "neon_bf16", "neon" or "baseline".
    
    Examples
    --------
    >>> rl.cpu_isa().partition("_")[0] in ("avx512", "avx2", "neon", "baseline")
    True
    """
def cross_entropy(logits: Tensor, target: Tensor, ignore_index: typing.SupportsIndex = -100, reduction: str = 'mean', variant: str = '') -> Tensor:
    """
    The loss of a classifier: -log softmax(logits)[target], per example or reduced.
    
    Computed as log(sum(exp(logits))) - logits[target] with the maximum subtracted from both, in float32 for 16 bits, in one
    pass over the logits. The graph keeps the logits, which are there anyway, and the log-sum-exp of each example; the
    gradient, (softmax - one hot) / N, computes the probabilities again (`cross_entropy_backward`).
    
    Parameters
    ----------
    logits : Tensor
        (N, V), N examples and V classes; or (V,), or (N, V, ...).
    target : Tensor
        (N,), or the shape of the logits without V: the right class, int64 or int32.
    ignore_index : int
        Examples with this target have no loss and no gradient, and do not count in the mean.
    reduction : str
        "mean" over the examples that count, "sum" or "none".
    variant : str
        A rung of rl.variants("cross_entropy"). "v0_composed" is made of other ops, forward and backward.
    
    Returns
    -------
    Tensor
        Of the dtype of the logits: one number; of the shape of `target` for "none". The mean of no example is NaN.
        Cost: one launch, and on a GPU one more where losses are summed; 4 FLOPs per logit. The gradient is one launch.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit; for a target out of range. On a GPU this is raised at the next wait
        (see rl.cuda.synchronize), and its row holds NaN.
    
    Examples
    --------
    >>> rl.cross_entropy(rl.tensor([[0.0, 0.0], [9.0, 0.0]]), rl.tensor([1, -100])).item()
    0.693...
    """
def cross_entropy_backward(dloss: Tensor, logits: Tensor, target: Tensor, lse: Tensor, count: Tensor | None = None, ignore_index: typing.SupportsIndex = -100, variant: str = '', *, lse_rest: Tensor | None = None) -> Tensor:
    """
    The gradient of cross_entropy's logits, from the log-sum-exp of each example.
    
    (exp(logits - lse - lse_rest) - one hot) dloss / count: what `cross_entropy` records. An error of the log-sum-exp,
    |lse| 2^-24 in float32 without the rest, is a relative error of the probabilities.
    
    Parameters
    ----------
    dloss : Tensor
        The gradient of the loss: () for all examples, or of the shape of `target`. Of the dtype of the logits or of `lse`.
    logits, target : Tensor
        As `cross_entropy` took them.
    lse : Tensor
        log(sum(exp(logits))), of the shape of `target`; float32, or float64 for float64 logits.
    count : Tensor, optional
        (): what the loss was divided by, in the dtype of `lse`. The number of examples that count, for a mean.
    ignore_index : int
        Examples with this target have no gradient.
    variant : str
        A rung of rl.variants("cross_entropy_backward").
    lse_rest : Tensor, optional
        What the rounding of `lse` has left out, like `lse`; 0 if not given.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of the logits. Cost: one launch, 3 FLOPs per logit.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit; for a target out of range. On a GPU this is raised at the next wait
        (see rl.cuda.synchronize), and its row holds NaN.
    
    Examples
    --------
    >>> logits, lse = rl.zeros(1, 4), rl.tensor([4.0]).log()
    >>> rl.cross_entropy_backward(rl.tensor(1.0), logits, rl.tensor([1]), lse).tolist()
    [[0.25, -0.75, 0.25, 0.25]]
    """
def cumsum(x: Tensor, dim: typing.SupportsIndex, variant: str = '') -> Tensor:
    """
    Running sums along a dimension: y[k] = x[0] + ... + x[k].
    
    One launch, 1 FLOP per element. Accumulated in double on the CPU and in float32 on a GPU (float64 in double). A GPU adds
    in another order: an infinity or NaN may stand where numbers near the largest of a dtype cancel each other.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype.
    dim : int
        Along which dimension.
    variant : str
        A rung of rl.variants("cumsum"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape of `x`; int64 for integers and bool, else of its dtype.
    
    Raises
    ------
    ValueError
        For a `dim` that `x` lacks.
    
    Examples
    --------
    >>> rl.cumsum(rl.tensor([1, 2, 3]), dim=0).tolist()
    [1, 3, 6]
    """
@typing.overload
def div(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a / b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says. Integers are divided as float32.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.div(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()
    [0.25, 3.0]
    """
@typing.overload
def div(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def div(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def einsum(equation: str, *args) -> Tensor:
    """
    Sums of products named by letters, as in Einstein's notation.
    
    Operands are combined from the left. Each pair takes one matmul, or one mul where nothing is summed; letters of only one
    operand are summed first, and a letter twice in one term means the diagonal, a view. Counted as these, and as copies
    where dimensions must move.
    
    Parameters
    ----------
    equation : str
        A term of letters for each operand, "->" and the result's: "bqd,bkd->bqk". Spaces do not count. "..." in a term stands
        for the dimensions that its letters leave, which broadcast as NumPy's do: "...qd,...kd->...qk". Without an arrow the
        result has the dimensions of "...", then the letters that appear once, in alphabetical order.
    *operands : Tensor
        One for each term, of one dtype and device.
    
    Returns
    -------
    Tensor
        With a dimension for each letter of the result.
    
    Raises
    ------
    ValueError
        When the equation does not fit the operands, or leaves "..." out of the result. Sizes of one letter must be equal.
    
    Examples
    --------
    >>> rl.einsum("ij,j->i", rl.tensor([[1.0, 2.0], [3.0, 4.0]]), rl.ones(2)).tolist()
    [3.0, 7.0]
    """
@typing.overload
def elu(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a where it is positive, else b * (exp(a) - 1), elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.elu(rl.tensor([2.0, -100.0]), 0.5).tolist()
    [2.0, -0.5]
    """
@typing.overload
def elu(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def elu(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def embedding(index: Tensor, weight: Tensor, variant: str = '') -> Tensor:
    """
    A row of `weight` for each number of `index`.
    
    One launch; it reads only the chosen rows.
    
    Parameters
    ----------
    index : Tensor
        (B, L) or any other shape, int64 or int32: which row.
    weight : Tensor
        (V, D): V rows.
    variant : str
        A rung of rl.variants("embedding"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        (B, L, D), of the dtype of `weight`, whose gradient is a scatter_add: rows chosen twice get both gradients.
    
    Raises
    ------
    ValueError
        When `weight` is not a matrix; for an index out of range. On a GPU this is raised at the next wait (see
        rl.cuda.synchronize), and the row holds NaN, -1 for integers and True for bool.
    
    Examples
    --------
    >>> rl.embedding(rl.tensor([2, 0]), rl.tensor([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])).tolist()
    [[2.0, 2.5], [0.0, 0.5]]
    """
def empty(*args, dtype: typing.Any = 'float32', device: typing.Any = 'cpu', requires_grad: bool = False) -> Tensor:
    """
    A tensor whose elements are not set.
    
    Parameters
    ----------
    args : int
        The sizes, or one tuple of them.
    dtype : dtype or str
        Of the elements.
    device : str
        "cpu", "cuda:N" or "meta:NAME".
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a negative size, a dtype or device that there is not, and a dtype that cannot require grad.
    OutOfMemoryError
        When the device has not as much memory.
    
    Examples
    --------
    >>> rl.empty(2, 3).shape
    (2, 3)
    """
def empty_like(x: Tensor, *, dtype: typing.Any = None, device: typing.Any = None, requires_grad: bool = False) -> Tensor:
    """
    A tensor of the shape, dtype and device of another, whose elements are not set.
    
    Parameters
    ----------
    x : Tensor
        Whose shape is taken.
    dtype, device : optional
        Used instead of those of `x`.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a dtype that cannot hold such elements, or cannot require grad.
    
    Examples
    --------
    >>> rl.empty_like(rl.ones(2, 3)).shape
    (2, 3)
    """
@typing.overload
def eq(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a == b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.eq(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()
    [True, False]
    """
@typing.overload
def eq(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def eq(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def exp(x: Tensor, variant: str = '') -> Tensor:
    """
    e to the power x, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.exp(rl.tensor([0.0, 0.0])).tolist()
    [1.0, 1.0]
    """
def eye(n: typing.SupportsIndex, m: typing.SupportsIndex | None = None, *, dtype: typing.Any = 'float32', device: typing.Any = 'cpu', requires_grad: bool = False) -> Tensor:
    """
    A matrix with ones on the diagonal and zeros elsewhere. Two launches, of fill.
    
    Parameters
    ----------
    n : int
        Rows.
    m : int, optional
        Columns; as many as rows when absent.
    dtype, device : optional
        Of the result.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        (n, m).
    
    Raises
    ------
    ValueError
        For negative sizes.
    
    Examples
    --------
    >>> rl.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
def flatten(x: Tensor, start_dim: typing.SupportsIndex = 0, end_dim: typing.SupportsIndex = -1) -> Tensor:
    """
    Joins neighbouring dimensions into one. A view where the strides allow it, else one copy.
    
    Parameters
    ----------
    x : Tensor
        Of any shape; without dimensions it becomes (1,).
    start_dim, end_dim : int
        The first and the last dimension to join.
    
    Returns
    -------
    Tensor
        The same elements in the same order.
    
    Raises
    ------
    ValueError
        For a dimension that `x` lacks, or a start after the end.
    
    Examples
    --------
    >>> rl.flatten(rl.zeros(2, 3, 4), start_dim=1).shape
    (2, 12)
    """
def floor(x: Tensor, variant: str = '') -> Tensor:
    """
    the largest integer that is not above x; it has no gradient, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.floor(rl.tensor([1.5, -1.5])).tolist()
    [1.0, -2.0]
    """
@typing.overload
def floor_divide(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a / b rounded down, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    An integer divided by zero raises ZeroDivisionError: on the CPU before anything is written, also in a replay
    of a graph. On a GPU and on "meta" only a divisor that is a number is checked, because the host does not see a
    tensor's elements; the result is 0 where one is 0. Floats give inf or NaN.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.floor_divide(rl.tensor([7.0, -7.0]), rl.tensor([2.0, 2.0])).tolist()
    [3.0, -4.0]
    """
@typing.overload
def floor_divide(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def floor_divide(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def from_cuda_array(array: typing.Any) -> Tensor:
    """
    A tensor that shares the memory of an object with __cuda_array_interface__.
    
    Parameters
    ----------
    array : object
        Such as an array of Numba or CuPy.
    
    Returns
    -------
    Tensor
        On the GPU that holds the memory, which lives as long as the tensor.
    
    Raises
    ------
    ValueError
        For an object without that interface, a dtype that rooflab lacks, or strides that are not whole elements.
    CudaError
        When there is no GPU.
    
    Examples
    --------
    >>> x = rl.from_cuda_array(numba_array)  # doctest: +SKIP
    """
def from_dlpack(source: typing.Any) -> Tensor:
    """
    A tensor that shares the memory of another library's array, by DLPack.
    
    Parameters
    ----------
    source : object
        An array with __dlpack__, of NumPy, PyTorch, CuPy, JAX; or a capsule.
    
    Returns
    -------
    Tensor
        Of the array's shape, strides, dtype and device. A write to one is seen in the other.
    
    Raises
    ------
    ValueError
        For a dtype or device that rooflab lacks, and a capsule that was used before.
    TypeError
        For an object without __dlpack__.
    
    Examples
    --------
    >>> array = np.zeros(2, np.float32)
    >>> rl.from_dlpack(array).fill_(7).tolist(), array.tolist()
    ([7.0, 7.0], [7.0, 7.0])
    """
def full(shape: tuple[int, ...], value: typing.Any, *, dtype: typing.Any = None, device: typing.Any = 'cpu', requires_grad: bool = False) -> Tensor:
    """
    A tensor of one value.
    
    Parameters
    ----------
    shape : tuple of int or int
        Its sizes.
    value : float or Tensor
        Of every element. A tensor has no dimensions, and is converted.
    dtype : dtype or str, optional
        That of the value when absent: bool, int64 or float32.
    device : str
        "cpu", "cuda:N" or "meta:NAME".
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a value that the dtype cannot hold, for a tensor with dimensions or one that requires grad, and a negative size.
    TypeError
        For a value that is neither a number nor a tensor.
    
    Examples
    --------
    >>> rl.full((2,), 7).dtype, rl.full((2,), 0.5).tolist()
    (rooflab.int64, [0.5, 0.5])
    """
def full_like(x: Tensor, value: typing.Any, *, dtype: typing.Any = None, device: typing.Any = None, requires_grad: bool = False) -> Tensor:
    """
    A tensor of the shape, dtype and device of another, of one value.
    
    Parameters
    ----------
    x : Tensor
        Whose shape is taken.
    value : float or Tensor
        Of every element. A tensor has no dimensions, and is converted.
    dtype, device : optional
        Used instead of those of `x`.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a value that the dtype cannot hold, and for a tensor with dimensions or one that requires grad.
    
    Examples
    --------
    >>> rl.full_like(rl.ones(2), 0.5).tolist()
    [0.5, 0.5]
    """
def gather(x: Tensor, dim: typing.SupportsIndex, index: Tensor, variant: str = '') -> Tensor:
    """
    One element of `x` for each number of an index, along `dim`.
    
    y[i, j, k] = x[index[i, j, k], j, k] for dim 0 of three. One launch.
    
    Parameters
    ----------
    x : Tensor
        What to choose from.
    dim : int
        The dimension that the index counts.
    index : Tensor
        int64 or int32, with as many dimensions as `x`, none longer than that of `x` except `dim`.
    variant : str
        A rung of rl.variants("gather"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape of `index` and the dtype of `x`. Its gradient is a scatter_add.
    
    Raises
    ------
    ValueError
        When shapes do not fit; for an index out of range. On a GPU this is raised at the next wait (see
        rl.cuda.synchronize), and the result holds NaN there, -1 for integers and True for bool.
    
    Examples
    --------
    >>> rl.gather(rl.tensor([[1, 2], [3, 4]]), 1, rl.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
@typing.overload
def ge(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a >= b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.ge(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()
    [True, False]
    """
@typing.overload
def ge(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def ge(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
@typing.overload
def geglu(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    gelu(a) * b with the tanh form of gelu: a gated activation, a the gate, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.geglu(rl.tensor([0.0, 0.0]), rl.tensor([3.0, 4.0])).tolist()
    [0.0, 0.0]
    """
@typing.overload
def geglu(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def geglu(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def geglu_backward(dy: Tensor, a: Tensor, b: Tensor, variant: str = '') -> tuple[Tensor, Tensor]:
    """
    The gradients of both operands of geglu, whose result is act(a) b: da = dy b act'(a) and db = dy act(a). One launch.
    
    Parameters
    ----------
    dy : Tensor
        The gradient of the result, of the shape and dtype of `a`.
    a, b : Tensor
        The gate and what it multiplies, of one shape and dtype.
    variant : str
        A rung of rl.variants("geglu_backward"); the fastest that fits when empty.
    
    Returns
    -------
    (Tensor, Tensor)
        da and db, of the shape and dtype of `a`; 16 FLOPs per element.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Examples
    --------
    >>> da, db = rl.geglu_backward(rl.ones(2), rl.zeros(2), rl.ones(2))
    >>> da.tolist(), db.tolist()
    ([0.5, 0.5], [0.0, 0.0])
    """
def gelu(x: Tensor, variant: str = '') -> Tensor:
    """
    GeLU in its tanh form, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), fused.
    
    One launch, 8 FLOPs per element. Source: Hendrycks and Gimpel, arXiv:1606.08415.
    
    Parameters
    ----------
    x : Tensor
        Of any shape, in a floating dtype.
    variant : str
        A rung of rl.variants("gelu"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.
    
    Raises
    ------
    ValueError
        For integers.
    
    Examples
    --------
    >>> rl.gelu(rl.tensor([0.0, 10.0])).tolist()
    [0.0, 10.0]
    """
def gelu_backward(dy: Tensor, a: Tensor, variant: str = '') -> Tensor:
    """
    The gradient of gelu's operand: dy times the slope of gelu at a. One launch.
    
    Parameters
    ----------
    dy : Tensor
        The gradient of the result, of the shape and dtype of `a`.
    a : Tensor
        What gelu got.
    variant : str
        A rung of rl.variants("gelu_backward"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `a`; 13 FLOPs per element.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Examples
    --------
    >>> rl.gelu_backward(rl.ones(2), rl.zeros(2)).tolist()
    [0.5, 0.5]
    """
def get_float32_matmul_precision() -> str:
    """
    How products of float32 on a GPU may be computed.
    
    See `set_float32_matmul_precision`.
    
    Returns
    -------
    str
        "highest", "high" or "medium".
    
    Examples
    --------
    >>> rl.get_float32_matmul_precision()
    'highest'
    """
def get_rng_state() -> tuple[int, int]:
    """
    The state of the random sequence, for `set_rng_state`.
    
    Returns
    -------
    tuple of int
        The seed, and how many calls have drawn since.
    
    Examples
    --------
    >>> rl.manual_seed(7)
    >>> rl.get_rng_state()
    (7, 0)
    """
@typing.overload
def gt(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a > b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.gt(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()
    [False, False]
    """
@typing.overload
def gt(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def gt(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def index_select(x: Tensor, dim: typing.SupportsIndex, index: Tensor, variant: str = '') -> Tensor:
    """
    Slices of `x` along `dim`, chosen by an index, which may repeat.
    
    One launch.
    
    Parameters
    ----------
    x : Tensor
        What to choose from.
    dim : int
        The dimension that the index counts.
    index : Tensor
        (N,), int64 or int32.
    variant : str
        A rung of rl.variants("index_select"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        As `x`, with size N along `dim`. Its gradient is a scatter_add.
    
    Raises
    ------
    ValueError
        When `index` is not one-dimensional; for an index out of range. On a GPU this is raised at the next wait (see
        rl.cuda.synchronize), and the result holds NaN there, -1 for integers and True for bool.
    
    Examples
    --------
    >>> rl.index_select(rl.tensor([[1, 2], [3, 4]]), 0, rl.tensor([1, 1])).tolist()
    [[3, 4], [3, 4]]
    """
def is_grad_enabled() -> bool:
    """
    Whether ops are recorded now: False inside no_grad.
    
    Returns
    -------
    bool
        Of this thread.
    
    Examples
    --------
    >>> with rl.no_grad():
    ...     rl.is_grad_enabled()
    False
    """
def isclose(a: Tensor, b: Tensor, rtol: typing.SupportsFloat | typing.SupportsIndex = 1e-05, atol: typing.SupportsFloat | typing.SupportsIndex = 1e-08, equal_nan: bool = False) -> Tensor:
    """
    Which elements are close: |a - b| <= atol + rtol |b|, or equal.
    
    Made of abs, sub, mul, add, comparisons and where, in float32 for 16 bits and in float64 for integers; counted as these.
    
    Parameters
    ----------
    a, b : Tensor
        Of one dtype and device; shapes broadcast.
    rtol, atol : float
        The relative and the absolute tolerance.
    equal_nan : bool
        Whether NaN is close to NaN.
    
    Returns
    -------
    Tensor
        bool.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit, or a tolerance is negative.
    
    Examples
    --------
    >>> rl.isclose(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 2.1])).tolist()
    [True, False]
    """
def isfinite(x: Tensor) -> Tensor:
    """
    Whether it is neither NaN nor infinite, element by element.
    
    Made of abs and lt; True for integers and bool.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype.
    
    Returns
    -------
    Tensor
        bool, of the shape of `x`.
    
    Examples
    --------
    >>> rl.isfinite(rl.tensor([1.0, float("inf"), float("nan")])).tolist()
    [True, False, False]
    """
def isinf(x: Tensor) -> Tensor:
    """
    Whether it is infinite, element by element.
    
    Made of abs and eq; False for integers and bool.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype.
    
    Returns
    -------
    Tensor
        bool, of the shape of `x`.
    
    Examples
    --------
    >>> rl.isinf(rl.tensor([1.0, float("inf"), float("nan")])).tolist()
    [False, True, False]
    """
def isnan(x: Tensor) -> Tensor:
    """
    Whether it is NaN, element by element.
    
    Made of ne; False for integers and bool.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype.
    
    Returns
    -------
    Tensor
        bool, of the shape of `x`.
    
    Examples
    --------
    >>> rl.isnan(rl.tensor([1.0, float("inf"), float("nan")])).tolist()
    [False, False, True]
    """
def kv_append(k_cache: Tensor, v_cache: Tensor, k: Tensor, v: Tensor, position: Tensor, variant: str = '') -> None:
    """
    Writes the keys and values of new tokens into their caches.
    
    A cache is a ring: the token at position p goes to place p mod T. Of more than T new tokens the last T are written. The
    position is read on the device, so a captured step writes to the next place at each replay. One launch.
    
    Parameters
    ----------
    k_cache, v_cache : Tensor
        (B, H_kv, T, D_h), written in place.
    k, v : Tensor
        (B, H_kv, L, D_h), of the dtype of the caches.
    position : Tensor
        (1,), int64: the position of the first new token.
    variant : str
        A rung of rl.variants("kv_append"); the fastest that fits when empty.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit; when a gradient would be lost; for a position below 0, where nothing is
        written. On a GPU this is raised at the next wait (see rl.cuda.synchronize).
    
    Examples
    --------
    >>> k_cache, v_cache = rl.zeros(1, 1, 4, 1), rl.zeros(1, 1, 4, 1)
    >>> new = rl.ones(1, 1, 2, 1)
    >>> rl.kv_append(k_cache, v_cache, new, new, rl.tensor([3]))
    >>> k_cache.flatten().tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: typing.SupportsFloat | typing.SupportsIndex = 1e-05, variant: str = '') -> Tensor:
    """
    (x - mean) / sqrt(var + eps) * weight + bias over the last dimension.
    
    One launch, or two for long rows on a GPU; 5 FLOPs per element and 1 each for weight and bias. Rows of huge or tiny
    numbers are scaled first, so that no square overflows or vanishes, except in float64. Source: Ba, Kiros and Hinton,
    arXiv:1607.06450.
    
    Parameters
    ----------
    x : Tensor
        (..., D), in a floating dtype.
    weight, bias : Tensor, optional
        (D,), of the dtype of `x`.
    eps : float
        Keeps the root away from zero.
    variant : str
        A rung of rl.variants("layer_norm"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        (..., D), of the dtype of `x`.
    
    Raises
    ------
    ValueError
        For a weight or bias of another shape or dtype, and for integers.
    
    Examples
    --------
    >>> rl.layer_norm(rl.tensor([1.0, 3.0]), eps=0.0).tolist()
    [-1.0, 1.0]
    """
def layer_norm_backward(dy: Tensor, x: Tensor, weight: Tensor | None = None, eps: typing.SupportsFloat | typing.SupportsIndex = 1e-05, has_bias: bool = False, variant: str = '') -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]:
    """
    The gradients of layer_norm's operands.
    
    With r = 1 / sqrt(var + eps), n = (x - mean) r and dn = dy weight: dx = r (dn - mean(dn) - n mean(dn n)); over all rows,
    dweight is the sum of dy n and dbias that of dy. On the CPU one launch; on a GPU one for dx, or two for long rows, and one
    that finishes the sums, with the same bits on every run. 12 FLOPs per element, 3 more with a weight and 1 with a bias.
    
    Parameters
    ----------
    dy : Tensor
        (..., D), the gradient of the result, of the shape and dtype of `x`.
    x : Tensor
        (..., D), what layer_norm got.
    weight : Tensor, optional
        (D,), of the dtype of `x`; ones when there is none.
    eps : float
        Added to the variance, as in layer_norm.
    has_bias : bool
        Whether the gradient of a bias is wanted too.
    variant : str
        A rung of rl.variants("layer_norm_backward"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor, or a tuple of two or three
        dx, then dweight where there is a weight, then dbias where it is wanted. Of the shapes of `x`, `weight` and the bias.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Examples
    --------
    >>> dx, dbias = rl.layer_norm_backward(rl.ones(2, 4), rl.randn(2, 4), has_bias=True)
    >>> dbias.tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
@typing.overload
def le(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a <= b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.le(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()
    [True, True]
    """
@typing.overload
def le(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def le(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
@typing.overload
def lerp(x: Tensor, end: Tensor, weight: float, variant: str = '') -> Tensor:
    """
    start + weight (end - start), elementwise; shapes broadcast. One launch, 3 FLOPs per element.
    
    From a weight of 0.5 on it is end + (weight - 1) (end - start), so that 1 gives end exactly. 16 bits are computed in
    float32 and rounded once.
    
    Parameters
    ----------
    x, end : Tensor
        Where the weight is 0, and where it is 1.
    weight : float or Tensor
        How far from `x` to `end`.
    variant : str
        A rung of rl.variants("lerp"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape that all broadcast to and their common dtype; float32 for integers.
    
    Raises
    ------
    ValueError
        For shapes that do not broadcast, for a weight that is a tensor of bool, and where `x` and `end` are both bool.
    
    Examples
    --------
    >>> rl.lerp(rl.zeros(1), rl.ones(1), 0.25).tolist()
    [0.25]
    """
@typing.overload
def lerp(x: Tensor, end: Tensor, weight: Tensor, variant: str = '') -> Tensor:
    ...
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """
    x weight^T + bias.
    
    Made of matmul and, for a bias, add; counted as these. A GPU adds a contiguous bias of the dtype of `x`, not float64, in
    the product: that is one launch, counted as `matmul_bias`. Elsewhere the product is rounded to the dtype, which it has to
    fit, before the bias is added.
    
    Parameters
    ----------
    x : Tensor
        (..., I).
    weight : Tensor
        (O, I), of the dtype of `x`.
    bias : Tensor, optional
        (O,).
    
    Returns
    -------
    Tensor
        (..., O).
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Examples
    --------
    >>> rl.linear(rl.ones(1, 2), rl.tensor([[1.0, 2.0], [3.0, 4.0]]), rl.tensor([0.0, 1.0])).tolist()
    [[3.0, 8.0]]
    """
def linspace(start: typing.SupportsFloat | typing.SupportsIndex, end: typing.SupportsFloat | typing.SupportsIndex, steps: typing.SupportsIndex, *, dtype: typing.Any = 'float32', device: typing.Any = 'cpu', requires_grad: bool = False) -> Tensor:
    """
    Numbers at equal distances from `start` to `end`, both included.
    
    One launch. Computed in float64, as NumPy does, and rounded once.
    
    Parameters
    ----------
    start, end : float
        The first and the last number.
    steps : int
        How many.
    dtype, device : optional
        Of the result.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        (steps,).
    
    Raises
    ------
    ValueError
        When `steps` is negative, and for ends that are not finite or whose distance is not.
    
    Examples
    --------
    >>> rl.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
def log(x: Tensor, variant: str = '') -> Tensor:
    """
    natural logarithm of x, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.log(rl.tensor([1.0, 1.0])).tolist()
    [0.0, 0.0]
    """
def log10(x: Tensor, variant: str = '') -> Tensor:
    """
    logarithm of x to the base 10, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.log10(rl.tensor([100.0, 1.0])).tolist()
    [2.0, 0.0]
    """
def log2(x: Tensor, variant: str = '') -> Tensor:
    """
    logarithm of x to the base 2, exact for powers of 2, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.log2(rl.tensor([8.0, 0.5])).tolist()
    [3.0, -1.0]
    """
def log_softmax(x: Tensor, dim: typing.SupportsIndex = -1, variant: str = '') -> Tensor:
    """
    The logarithm of softmax: x - log(sum(exp(x))) along a dimension.
    
    The maximum is subtracted first, so nothing overflows. 5 FLOPs per element; one launch, or two for few long rows on a
    GPU. Along another dimension than the last, columns that are many enough are read as they lie; otherwise a copy comes
    first. The graph keeps only the result.
    
    Parameters
    ----------
    x : Tensor
        Of any shape, in a floating dtype.
    dim : int
        Along which dimension.
    variant : str
        A rung of rl.variants("log_softmax"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.
    
    Raises
    ------
    ValueError
        For integers; for a `dim` that `x` lacks.
    
    Examples
    --------
    >>> rl.log_softmax(rl.zeros(4)).exp().tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
def log_softmax_backward(dy: Tensor, y: Tensor, dim: typing.SupportsIndex = -1, variant: str = '') -> Tensor:
    """
    The gradient of log_softmax's operand: dy - exp(y) sum(dy) along `dim`.
    
    4 FLOPs per element; one launch along the last dim, two for long rows on a GPU; otherwise a copy first.
    
    Parameters
    ----------
    dy : Tensor
        The gradient of the result, of the shape and dtype of `y`.
    y : Tensor
        What log_softmax returned, of any shape with a dimension.
    dim : int
        Along which log_softmax was taken.
    variant : str
        A rung of rl.variants("log_softmax_backward"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `y`.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit, or `y` lacks the dimension.
    
    Examples
    --------
    >>> rl.log_softmax_backward(rl.tensor([1.0, 0.0]), rl.tensor([0.0, float("-inf")])).tolist()
    [0.0, 0.0]
    """
def logsigmoid(x: Tensor, variant: str = '') -> Tensor:
    """
    log(sigmoid(x)), to the last digits for large |x| too, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.logsigmoid(rl.tensor([-100.0, 200.0])).tolist()
    [-100.0, 0.0]
    """
def logsumexp(x: Tensor, dim: typing.Any = None, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    log(sum(exp(x))) over some or all dimensions, without overflow.
    """
@typing.overload
def lt(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a < b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.lt(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()
    [False, True]
    """
@typing.overload
def lt(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def lt(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def manual_seed(seed: typing.SupportsIndex) -> None:
    """
    Restarts the random sequence.
    
    Parameters
    ----------
    seed : int
        Of 64 bits, from 0 on.
    
    Raises
    ------
    TypeError
        For another number.
    
    Examples
    --------
    >>> rl.manual_seed(7)
    >>> first = rl.rand(3)
    >>> rl.manual_seed(7)
    >>> rl.allclose(first, rl.rand(3))
    True
    """
@typing.overload
def masked_fill(x: Tensor, mask: Tensor, value: float) -> Tensor:
    """
    x with a number wherever a mask is True.
    
    Made of where, and counted like it.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype.
    mask : Tensor
        bool, of a shape that broadcasts to that of `x`.
    value : float or Tensor
        The number to put where the mask is True. A tensor has no dimensions, and is converted to the dtype of `x`.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.
    
    Raises
    ------
    ValueError
        When the mask is not bool or does not broadcast; for a number that the dtype cannot hold.
    
    Examples
    --------
    >>> rl.masked_fill(rl.tensor([1.0, 2.0]), rl.tensor([True, False]), 0.0).tolist()
    [0.0, 2.0]
    """
@typing.overload
def masked_fill(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    ...
def matmul(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    The product of matrices, as torch.matmul: a @ b.
    
    One launch; M N K MACs a matrix. Transposed operands cost no copy. Vectors count as matrices of one row or column.
    
    Parameters
    ----------
    a : Tensor
        (..., M, K) or (K,).
    b : Tensor
        (..., K, N) or (K,), of the dtype of `a`. Leading dimensions broadcast.
    variant : str
        A rung of rl.variants("matmul"); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        (..., M, N), of the operands' dtype; float16 and bfloat16 are added up in float32.
    
    Raises
    ------
    ValueError
        For shapes that do not fit, dtypes that differ, and integers.
    
    Examples
    --------
    >>> rl.matmul(rl.ones(2, 3), rl.ones(3, 4)).shape
    (2, 4)
    """
def matmul_bias(a: Tensor, b: Tensor, bias: Tensor, variant: str = '') -> Tensor:
    """
    A product of matrices plus a bias, rounded once where a kernel adds it.
    
    `linear` uses it on a GPU: one launch, which writes the product once. On a CPU it is a product and a sum, which write it
    twice and read it once. M N K MACs, and M N FLOPs for the bias; it has no gradient itself.
    
    Parameters
    ----------
    a : Tensor
        (M, K), floating.
    b : Tensor
        (K, N), of the dtype of `a`.
    bias : Tensor
        (N,), of the dtype of `a`.
    variant : str
        A rung of rl.variants("matmul_bias"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        (M, N), of the operands' dtype.
    
    Raises
    ------
    ValueError
        For integers, dtypes that differ, and shapes that do not fit.
    
    Examples
    --------
    >>> rl.matmul_bias(rl.ones(1, 3), rl.ones(3, 2), rl.tensor([0.0, 1.0])).tolist()
    [[3.0, 4.0]]
    """
def matmul_float32(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    A product of matrices of 16 bits, in float32.
    
    The gradients of `linear` use it under autocast. One launch, M N K MACs; it has no gradient itself.
    
    Parameters
    ----------
    a : Tensor
        (M, K), float16 or bfloat16.
    b : Tensor
        (K, N), of the dtype of `a`.
    variant : str
        A rung of rl.variants("matmul_float32"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        (M, N), float32, not rounded to 16 bits in between.
    
    Raises
    ------
    ValueError
        For other dtypes, and shapes that do not fit.
    
    Examples
    --------
    >>> rl.matmul_float32(rl.ones(2, 3).half(), rl.ones(3, 4).half()).dtype
    rooflab.float32
    """
@typing.overload
def max(x: Tensor) -> Tensor:
    """
    The largest element of the tensor; or, along a dimension, the largest elements and their positions.
    
    `max(x)` is `amax(x)` and is counted as that. `max(x, dim)` gives a named tuple, as in PyTorch: `.values` and
    `.indices`. For the values alone, or over several dimensions, use `amax(x, dim)`. One launch, 1 FLOP per
    element of `x`. `max(x, other)` of two tensors is rl.maximum.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype and shape.
    dim : int
        Along which dimension.
    keepdim : bool
        Whether `dim` stays, with size 1.
    variant : str
        A rung of rl.variants("max"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Without `dim`: one element, NaN if there is one; equal elements share the gradient.
    ValuesAndIndices
        With `dim`: values (of the dtype of `x`, NaN where there is one) and indices (int64, the first among equals). The
        gradient goes to the elements at `indices`.
    
    Raises
    ------
    ValueError
        When there is no element to choose from; for a `dim` that `x` lacks.
    
    Examples
    --------
    >>> values, indices = rl.tensor([[1.0, 5.0], [7.0, 2.0]]).max(dim=1)
    >>> values.tolist(), indices.tolist()
    ([5.0, 7.0], [1, 0])
    """
@typing.overload
def max(x: Tensor, other: Tensor) -> Tensor:
    ...
@typing.overload
def max(x: Tensor, dim: typing.SupportsIndex, keepdim: bool = False, variant: str = '') -> ValuesAndIndices:
    ...
@typing.overload
def maximum(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    the larger of a and b; NaN where either is, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.maximum(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()
    [4.0, 6.0]
    """
@typing.overload
def maximum(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def maximum(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def mean(x: Tensor, dim: typing.Any = None, keepdim: bool = False, variant: str = '', dtype: typing.Any = None) -> Tensor:
    """
    The mean over one, several or all dimensions.
    
    One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. The error is at most a small
    multiple of log2(n) eps times the sum of absolute values.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    dim : int, tuple of int or None
        What to reduce over; None is all.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    variant : str
        A rung of rl.variants("mean"); the fastest that fits when empty.
    dtype : dtype, optional
        What `x` is cast to first, which is one launch more.
    
    Returns
    -------
    Tensor
        Of `dtype`, or that of `x`; NaN where there is no element.
    
    Raises
    ------
    ValueError
        For a `dim` that `x` lacks or that appears twice, and for integers.
    
    Examples
    --------
    >>> rl.mean(rl.tensor([[1.0, 5.0], [7.0, 3.0]]), dim=1).tolist()
    [3.0, 5.0]
    """
def median(x: Tensor, dim: typing.SupportsIndex, keepdim: bool = False, variant: str = '') -> ValuesAndIndices:
    """
    The middle element along a dimension, and where it is; rl.median is in composed/statistics.py.
    """
def meta(name: str = 'cpu') -> str:
    """
    The device of tensors without memory that stand for a machine.
    
    Every op runs on such tensors and is counted as on that machine: ops, launches, work and memory. A vendor's library, which
    runs products on a GPU, counts as one launch without workspace.
    
    Parameters
    ----------
    name : str
        "cpu", this machine's CPU; "cuda:0", its GPU; or a GPU of rl.roofline's table, such as "H200".
    
    Returns
    -------
    str
        The device's name.
    
    Raises
    ------
    ValueError
        For another name; it lists those that there are.
    
    Examples
    --------
    >>> rl.meta("H200"), rl.ones(2, device=rl.meta("H200")).device
    ('meta:H200', 'meta:H200')
    """
@typing.overload
def min(x: Tensor) -> Tensor:
    """
    The smallest element of the tensor; or, along a dimension, the smallest elements and their positions.
    
    `min(x)` is `amin(x)` and is counted as that. `min(x, dim)` gives a named tuple, as in PyTorch: `.values` and
    `.indices`. For the values alone, or over several dimensions, use `amin(x, dim)`. One launch, 1 FLOP per
    element of `x`. `min(x, other)` of two tensors is rl.minimum.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype and shape.
    dim : int
        Along which dimension.
    keepdim : bool
        Whether `dim` stays, with size 1.
    variant : str
        A rung of rl.variants("min"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Without `dim`: one element, NaN if there is one; equal elements share the gradient.
    ValuesAndIndices
        With `dim`: values (of the dtype of `x`, NaN where there is one) and indices (int64, the first among equals). The
        gradient goes to the elements at `indices`.
    
    Raises
    ------
    ValueError
        When there is no element to choose from; for a `dim` that `x` lacks.
    
    Examples
    --------
    >>> values, indices = rl.tensor([[1.0, 5.0], [7.0, 2.0]]).min(dim=1)
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0], [0, 1])
    """
@typing.overload
def min(x: Tensor, other: Tensor) -> Tensor:
    ...
@typing.overload
def min(x: Tensor, dim: typing.SupportsIndex, keepdim: bool = False, variant: str = '') -> ValuesAndIndices:
    ...
@typing.overload
def minimum(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    the smaller of a and b; NaN where either is, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.minimum(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()
    [1.0, 2.0]
    """
@typing.overload
def minimum(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def minimum(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
@typing.overload
def mul(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a * b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.mul(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()
    [4.0, 12.0]
    >>> (rl.arange(3) * 2.0).dtype
    rooflab.float32
    >>> (rl.tensor([1.5, 2.5]) * rl.tensor([True, False])).tolist()
    [1.5, 0.0]
    """
@typing.overload
def mul(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def mul(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def nan_to_num(x: Tensor, nan: typing.SupportsFloat | typing.SupportsIndex = 0.0, posinf: typing.SupportsFloat | typing.SupportsIndex | None = None, neginf: typing.SupportsFloat | typing.SupportsIndex | None = None, variant: str = '') -> Tensor:
    """
    x, but numbers in place of NaN and infinities, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape, floating.
    nan : float
        In place of NaN.
    posinf, neginf : float, optional
        In place of the infinities; by default the largest and the smallest number of the dtype.
    variant : str
        A rung of rl.variants("nan_to_num"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`. The gradient is 0 where a number was put.
    
    Raises
    ------
    ValueError
        For integers and bool.
    
    Examples
    --------
    >>> rl.nan_to_num(rl.tensor([float("nan"), 1.0])).tolist()
    [0.0, 1.0]
    """
@typing.overload
def ne(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a != b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.ne(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 3.0])).tolist()
    [False, True]
    """
@typing.overload
def ne(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def ne(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def neg(x: Tensor, variant: str = '') -> Tensor:
    """
    -x, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.neg(rl.tensor([1.0, -2.0])).tolist()
    [-1.0, 2.0]
    """
def nonzero(x: Tensor, variant: str = '') -> Tensor:
    """
    The places of elements that are not 0.
    
    They are counted in one launch, a number for each portion of `x`, and the numbers are read from the device. Another
    launch writes the places. Before, other dtypes than bool are compared with 0 in one.
    
    Parameters
    ----------
    x : Tensor
        (...).
    variant : str
        A rung of rl.variants("nonzero"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        (N, dimensions of x), int64, in order.
    
    Raises
    ------
    ValueError
        For tensors without memory; while a graph is captured.
    
    Examples
    --------
    >>> rl.nonzero(rl.tensor([[0, 1], [2, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
def num_threads() -> int:
    """
    How many CPU threads kernels use.
    
    Returns
    -------
    int
        1 or more.
    
    Examples
    --------
    >>> rl.num_threads() >= 1
    True
    """
def ones(*args, dtype: typing.Any = 'float32', device: typing.Any = 'cpu', requires_grad: bool = False) -> Tensor:
    """
    A tensor of ones.
    
    Parameters
    ----------
    args : int
        The sizes, or one tuple of them.
    dtype : dtype or str
        Of the elements.
    device : str
        "cpu", "cuda:N" or "meta:NAME".
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a negative size, a dtype or device that there is not, and a dtype that cannot require grad.
    OutOfMemoryError
        When the device has not as much memory.
    
    Examples
    --------
    >>> rl.ones(2).tolist()
    [1.0, 1.0]
    """
def ones_like(x: Tensor, *, dtype: typing.Any = None, device: typing.Any = None, requires_grad: bool = False) -> Tensor:
    """
    A tensor of the shape, dtype and device of another, of ones.
    
    Parameters
    ----------
    x : Tensor
        Whose shape is taken.
    dtype, device : optional
        Used instead of those of `x`.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a dtype that cannot hold such elements, or cannot require grad.
    
    Examples
    --------
    >>> rl.ones_like(rl.zeros(2)).tolist()
    [1.0, 1.0]
    """
def ops() -> list[str]:
    """
    The names of all ops that have a ladder of kernels.
    
    Returns
    -------
    list of str
        In alphabetic order.
    
    Examples
    --------
    >>> "matmul" in rl.ops()
    True
    """
@typing.overload
def pow(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a to the power b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.pow(rl.tensor([3.0, 2.0]), rl.tensor([2.0, 3.0])).tolist()
    [9.0, 8.0]
    """
@typing.overload
def pow(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def pow(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
@typing.overload
def prelu(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a where it is positive, else a * b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.prelu(rl.tensor([2.0, -2.0]), 0.25).tolist()
    [2.0, -0.5]
    """
@typing.overload
def prelu(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def prelu(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def prod(x: Tensor, dim: typing.Any = None, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    The product over some or all dimensions; int64 for integers and bool.
    """
def rand(*args, dtype: typing.Any = 'float32', device: typing.Any = 'cpu', requires_grad: bool = False) -> Tensor:
    """
    Uniform numbers in [0, 1); the same on every device for a seed.
    
    Parameters
    ----------
    args : int
        The sizes, or one tuple of them.
    dtype : dtype or str
        Of the elements.
    device : str
        "cpu", "cuda:N" or "meta:NAME".
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a negative size, a dtype or device that there is not, and a dtype that cannot require grad.
    OutOfMemoryError
        When the device has not as much memory.
    
    Examples
    --------
    >>> rl.rand(2, 3).shape
    (2, 3)
    """
def rand_like(x: Tensor, *, dtype: typing.Any = None, device: typing.Any = None, requires_grad: bool = False) -> Tensor:
    """
    A tensor of the shape, dtype and device of another, of uniform numbers in [0, 1).
    
    Parameters
    ----------
    x : Tensor
        Whose shape is taken.
    dtype, device : optional
        Used instead of those of `x`.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a dtype that cannot hold such elements, or cannot require grad.
    
    Examples
    --------
    >>> rl.rand_like(rl.ones(2, 3)).shape
    (2, 3)
    """
def randint(low: typing.SupportsIndex, high: typing.SupportsIndex, shape: tuple[int, ...], *, dtype: typing.Any = 'int64', device: typing.Any = 'cpu') -> Tensor:
    """
    Integers drawn uniformly from [low, high); the same on every device for a seed.
    
    Parameters
    ----------
    low, high : int
        The least, and one more than the largest.
    shape : tuple of int or int
        Sizes of the result.
    dtype : dtype or str
        Of the result.
    device : str
        "cpu", "cuda:N" or "meta:NAME".
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        Unless `high` is more than `low`.
    
    Examples
    --------
    >>> rl.randint(3, 4, (2,)).tolist()
    [3, 3]
    """
def randn(*args, dtype: typing.Any = 'float32', device: typing.Any = 'cpu', requires_grad: bool = False) -> Tensor:
    """
    Standard normal numbers; the same on every device for a seed.
    
    Parameters
    ----------
    args : int
        The sizes, or one tuple of them.
    dtype : dtype or str
        Of the elements.
    device : str
        "cpu", "cuda:N" or "meta:NAME".
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a negative size, a dtype or device that there is not, and a dtype that cannot require grad.
    OutOfMemoryError
        When the device has not as much memory.
    
    Examples
    --------
    >>> rl.randn(2, 3).shape
    (2, 3)
    """
def randn_like(x: Tensor, *, dtype: typing.Any = None, device: typing.Any = None, requires_grad: bool = False) -> Tensor:
    """
    A tensor of the shape, dtype and device of another, of standard normal numbers.
    
    Parameters
    ----------
    x : Tensor
        Whose shape is taken.
    dtype, device : optional
        Used instead of those of `x`.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a dtype that cannot hold such elements, or cannot require grad.
    
    Examples
    --------
    >>> rl.randn_like(rl.ones(2, 3)).shape
    (2, 3)
    """
def relu(x: Tensor, variant: str = '') -> Tensor:
    """
    max(x, 0), elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.relu(rl.tensor([1.0, -2.0])).tolist()
    [1.0, 0.0]
    """
@typing.overload
def relu_backward(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    the gradient of relu, with b the result of relu: 0 where b <= 0, else a, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.relu_backward(rl.tensor([3.0, 4.0]), rl.relu(rl.tensor([-1.0, 1.0]))).tolist()
    [0.0, 4.0]
    """
@typing.overload
def relu_backward(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def relu_backward(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
@typing.overload
def remainder(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a - b * floor(a / b), of b's sign, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    An integer divided by zero raises ZeroDivisionError: on the CPU before anything is written, also in a replay
    of a graph. On a GPU and on "meta" only a divisor that is a number is checked, because the host does not see a
    tensor's elements; the result is 0 where one is 0. Floats give inf or NaN.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.remainder(rl.tensor([7.0, -7.0]), rl.tensor([4.0, 4.0])).tolist()
    [3.0, 1.0]
    """
@typing.overload
def remainder(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def remainder(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def repeat_interleave(x: Tensor, repeats: typing.SupportsIndex, dim: typing.SupportsIndex | None = None) -> Tensor:
    """
    Repeats each slice along a dimension several times.
    
    Made of an expanded view and one copy; counted as the copy. It turns H_kv key heads into H for grouped-query attention.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype.
    repeats : int
        How often each slice appears.
    dim : int or None
        Along which dimension; None takes the tensor as flattened.
    
    Returns
    -------
    Tensor
        As `x`, with `dim` `repeats` times as long.
    
    Raises
    ------
    ValueError
        When `repeats` is negative; for a `dim` that `x` lacks.
    
    Examples
    --------
    >>> rl.repeat_interleave(rl.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
def rms_norm(x: Tensor, weight: Tensor | None = None, eps: typing.SupportsFloat | typing.SupportsIndex = 1e-06, zero_centered: bool = False, variant: str = '') -> Tensor:
    """
    x / sqrt(mean(x^2) + eps) * weight over the last dimension.
    
    One launch, or two for long rows on a GPU; 3 FLOPs per element, 1 for the weight and 1 for the offset. Rows of huge or
    tiny numbers are scaled first, so that no square overflows or vanishes, except in float64. Source: Zhang and Sennrich,
    arXiv:1910.07467.
    
    Parameters
    ----------
    x : Tensor
        (..., D), in a floating dtype.
    weight : Tensor, optional
        (D,), of the dtype of `x`.
    eps : float
        Keeps the root away from zero.
    zero_centered : bool
        Whether the gain is 1 + weight, as in Gemma.
    variant : str
        A rung of rl.variants("rms_norm"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        (..., D), of the dtype of `x`.
    
    Raises
    ------
    ValueError
        For a weight of another shape or dtype, and for integers.
    
    Examples
    --------
    >>> rl.rms_norm(rl.tensor([3.0, -3.0]), eps=0.0).tolist()
    [1.0, -1.0]
    """
def rms_norm_add(x: Tensor, residual: Tensor, weight: Tensor, next_weight: Tensor | None = None, eps: typing.SupportsFloat | typing.SupportsIndex = 1e-06, zero_centered: bool = False, variant: str = '') -> Tensor | tuple[Tensor, Tensor]:
    """
    Adds a residual to a norm, and normalises the sum: h = residual + rms_norm(x), y = rms_norm(h).
    
    One launch. 3 FLOPs per element for each norm, 1 for its weight and 1 for `zero_centered`, 1 for the sum. If a gradient
    is wanted, it is made of rms_norm and add.
    
    Parameters
    ----------
    x, residual : Tensor
        (..., D).
    weight : Tensor
        (D,), of the first norm.
    next_weight : Tensor, optional
        (D,), of the second norm. Without it there is none.
    eps, zero_centered
        As in rl.rms_norm.
    variant : str
        A rung of rl.variants("rms_norm_add"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor, or (Tensor, Tensor)
        h; with a next weight (h, y). Each of the shape and dtype of `x`.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Examples
    --------
    >>> rl.rms_norm_add(rl.ones(2), rl.tensor([1.0, 3.0]), rl.ones(2), eps=0.0).tolist()
    [2.0, 4.0]
    """
def rms_norm_backward(dy: Tensor, x: Tensor, weight: Tensor | None = None, eps: typing.SupportsFloat | typing.SupportsIndex = 1e-06, zero_centered: bool = False, variant: str = '') -> Tensor | tuple[Tensor, Tensor]:
    """
    The gradients of rms_norm's operands.
    
    With n = x / sqrt(mean(x^2) + eps) and dn = dy times the gain: dx = (dn - n mean(dn n)) / sqrt(mean(x^2) + eps), and
    dweight is the sum of dy n over all rows. On the CPU one launch; on a GPU one for dx, or two for long rows, and one that
    finishes dweight, with the same bits on every run. 8 FLOPs per element, 3 more with a weight and 4 with a zero-centered
    one.
    
    Parameters
    ----------
    dy : Tensor
        (..., D), the gradient of the result, of the shape and dtype of `x`.
    x : Tensor
        (..., D), what rms_norm got.
    weight : Tensor, optional
        (D,), of the dtype of `x`; ones when there is none.
    eps : float
        Added to the mean square, as in rms_norm.
    zero_centered : bool
        Whether the gain is 1 + weight.
    variant : str
        A rung of rl.variants("rms_norm_backward"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor, or (Tensor, Tensor)
        dx; with a weight (dx, dweight). Of the shapes of `x` and `weight`.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Examples
    --------
    >>> rl.rms_norm_backward(rl.tensor([1.0, 0.0]), rl.tensor([1.0, 1.0]), eps=3.0).tolist()
    [0.4375, -0.0625]
    """
def rms_norm_rope(x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor, eps: typing.SupportsFloat | typing.SupportsIndex = 1e-06, zero_centered: bool = False, variant: str = '') -> Tensor:
    """
    rms_norm over each head, then rope: for models that normalise queries and keys.
    
    One launch, 7 FLOPs per element (8 with `zero_centered`); if a gradient is wanted, it is made of rms_norm and rope.
    
    Parameters
    ----------
    x : Tensor
        (B, H, L, D_h) or (H, L, D_h), with an even D_h.
    weight : Tensor
        (D_h,).
    cos, sin : Tensor
        (L, D_h) or (B, L, D_h).
    eps, zero_centered
        As in rl.rms_norm.
    variant : str
        A rung of rl.variants("rms_norm_rope"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape, dtype and layout of `x`.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Examples
    --------
    >>> x = rl.tensor([[[3.0, 3.0]]])
    >>> rl.rms_norm_rope(x, rl.ones(2), rl.zeros(1, 2), rl.ones(1, 2), eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
def rope(x: Tensor, cos: Tensor, sin: Tensor, variant: str = '') -> Tensor:
    """
    Rotary position embedding: rotates each head's two halves by the token's angles.
    
    ``y[i] = x[i] cos[i] - x[i + h] sin[i]`` and ``y[i + h] = x[i + h] cos[i + h] + x[i] sin[i + h]`` with h = D_h / 2,
    computed in float32 for 16 bits and rounded once. One launch, 3 FLOPs per element.
    
    Parameters
    ----------
    x : Tensor
        (B, H, L, D_h) or (H, L, D_h), with an even D_h. Of a floating dtype.
    cos, sin : Tensor
        (L, D_h) or (B, L, D_h), of the dtype of `x`.
    variant : str
        A rung of rl.variants("rope"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape, dtype and layout of `x`.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Notes
    -----
    Su et al., RoFormer (arXiv:2104.09864), in the order of halves that GPT-NeoX and Hugging Face use.
    
    Examples
    --------
    >>> x = rl.tensor([[[1.0, 2.0]]])
    >>> rl.rope(x, rl.tensor([[0.0, 0.0]]), rl.tensor([[1.0, 1.0]])).tolist()
    [[[-2.0, 1.0]]]
    """
def round(x: Tensor, variant: str = '') -> Tensor:
    """
    the nearest integer; halfway between two, the even one; it has no gradient, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    """
def rsqrt(x: Tensor, variant: str = '') -> Tensor:
    """
    1 / sqrt(x), elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.rsqrt(rl.tensor([4.0, 16.0])).tolist()
    [0.5, 0.25]
    """
def scatter_add(x: Tensor, dim: typing.SupportsIndex, index: Tensor, src: Tensor, variant: str = '') -> Tensor:
    """
    x with each element of `src` added where an index says, along `dim`.
    
    y = x; y[index[i, j, k], j, k] += src[i, j, k] for dim 0 of three. Elements with the same destination are summed: on the
    CPU in their order, on a GPU by atomics, in any order, so the last bits of floating sums may differ between runs. 16-bit
    sums are kept in float32 and rounded once. Where `src` has more elements than `x`, sums of float32 and of 16 bits are kept
    in float64. Two launches, or three where sums are kept in another dtype. 1 FLOP per element of `src`.
    
    Parameters
    ----------
    x : Tensor
        What is added to; it stays as it is.
    dim : int
        The dimension that the index counts.
    index : Tensor
        int64 or int32, of the shape of `src`.
    src : Tensor
        Of the dtype of `x`, no longer than `x` along any dimension but `dim`.
    variant : str
        A rung of rl.variants("scatter_add"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.
    
    Raises
    ------
    ValueError
        When shapes or dtypes do not fit; for an index out of range. On a GPU this is raised at the next wait (see
        rl.cuda.synchronize), and the element is ignored.
    
    Examples
    --------
    >>> rl.scatter_add(rl.zeros(3), 0, rl.tensor([2, 0, 2]), rl.tensor([1.0, 2.0, 3.0])).tolist()
    [2.0, 0.0, 4.0]
    """
def set_cpu_blas(sgemm: typing_extensions.CapsuleType, dgemm: typing_extensions.CapsuleType) -> None:
    """
    The BLAS that matmul's library rung calls: capsules of function pointers.
    """
def set_cpu_isa(isa: str) -> None:
    """
    Makes CPU kernels use another instruction set, for tests and comparisons.
    
    Parameters
    ----------
    isa : str
        "baseline", "avx2" ..., as far as this CPU can run it and kernels are compiled for it.
    
    Raises
    ------
    ValueError
        For any other; the error lists those that can be used.
    
    Examples
    --------
    >>> best = rl.cpu_isa()
    >>> rl.set_cpu_isa(best)
    >>> rl.cpu_isa() == best
    True
    """
def set_float32_matmul_precision(precision: str) -> None:
    """
    Sets how products of float32 on a GPU may be computed.
    
    The setting is that of the whole process. With "high", and "medium", which is the same here, a Hopper GPU splits each
    number into three of bfloat16, and its tensor cores multiply these: large products take down to two fifths of the time.
    The error stays that of float32, which PyTorch's "high" does not promise; only numbers below 2^-110 lose bits. A product
    is 3 launches in place of 1, and takes 6 bytes of scratch for each element of the operands. Small products, other
    dtypes, other GPUs and CPUs are computed as before.
    
    Parameters
    ----------
    precision : str
        "highest", the default, "high" or "medium".
    
    Raises
    ------
    ValueError
        For any other.
    
    Examples
    --------
    >>> rl.set_float32_matmul_precision("high")
    >>> x = rl.empty(1024, 1024, device="meta:H200")
    >>> with rl.count() as c:
    ...     y = x @ x
    >>> c.launches
    3
    >>> rl.set_float32_matmul_precision("highest")
    """
def set_num_threads(threads: typing.SupportsIndex) -> None:
    """
    Makes kernels use that many CPU threads.
    
    Parameters
    ----------
    threads : int
        1 or more.
    
    Raises
    ------
    ValueError
        For fewer than 1.
    
    Examples
    --------
    >>> before = rl.num_threads()
    >>> rl.set_num_threads(1)
    >>> rl.num_threads()
    1
    >>> rl.set_num_threads(before)
    """
def set_rng_state(state: tuple[typing.SupportsIndex, typing.SupportsIndex]) -> None:
    """
    Continues the random sequence from where `get_rng_state` was called.
    
    Parameters
    ----------
    state : tuple of int
        What that returned.
    
    Raises
    ------
    TypeError
        For anything else.
    
    Examples
    --------
    >>> state = rl.get_rng_state()
    >>> first = rl.rand(3)
    >>> rl.set_rng_state(state)
    >>> rl.allclose(first, rl.rand(3))
    True
    """
def sigmoid(x: Tensor, variant: str = '') -> Tensor:
    """
    1 / (1 + exp(-x)), elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.sigmoid(rl.tensor([0.0, 100.0])).tolist()
    [0.5, 1.0]
    """
@typing.overload
def sigmoid_backward(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    the gradient of sigmoid, with b its result: a b (1 - b), elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.sigmoid_backward(rl.tensor([3.0, 4.0]), rl.tensor([1.0, 0.5])).tolist()
    [0.0, 1.0]
    """
@typing.overload
def sigmoid_backward(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def sigmoid_backward(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def sign(x: Tensor, variant: str = '') -> Tensor:
    """
    -1, 0 or 1; 0 for NaN; it has no gradient, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    """
def silu(x: Tensor, variant: str = '') -> Tensor:
    """
    x / (1 + exp(-x)), elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.silu(rl.tensor([0.0, 0.0])).tolist()
    [0.0, 0.0]
    """
def silu_backward(dy: Tensor, a: Tensor, variant: str = '') -> Tensor:
    """
    The gradient of silu's operand: dy times the slope of silu at a. One launch.
    
    Parameters
    ----------
    dy : Tensor
        The gradient of the result, of the shape and dtype of `a`.
    a : Tensor
        What silu got.
    variant : str
        A rung of rl.variants("silu_backward"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `a`; 6 FLOPs per element.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Examples
    --------
    >>> rl.silu_backward(rl.ones(2), rl.zeros(2)).tolist()
    [0.5, 0.5]
    """
def sin(x: Tensor, variant: str = '') -> Tensor:
    """
    sine of x radians, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.sin(rl.tensor([0.0, 0.0])).tolist()
    [0.0, 0.0]
    """
def softmax(x: Tensor, dim: typing.SupportsIndex = -1, variant: str = '') -> Tensor:
    """
    exp(x - max) / sum(exp(x - max)) along a dimension.
    
    5 FLOPs per element; one launch, or two for few long rows on a GPU. Along another dimension than the last, columns that
    are many enough are read as they lie; otherwise a copy comes first.
    
    Parameters
    ----------
    x : Tensor
        Of any shape, in a floating dtype.
    dim : int
        Along which dimension the results add up to 1.
    variant : str
        A rung of rl.variants("softmax"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.
    
    Raises
    ------
    ValueError
        For integers, and for a `dim` that `x` lacks.
    
    Examples
    --------
    >>> rl.softmax(rl.zeros(2, 4))[0].tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
def softmax_backward(dy: Tensor, y: Tensor, dim: typing.SupportsIndex = -1, variant: str = '') -> Tensor:
    """
    The gradient of softmax's operand: y (dy - sum(dy y)) along `dim`.
    
    4 FLOPs per element; one launch along the last dim, two for long rows on a GPU; otherwise a copy first.
    
    Parameters
    ----------
    dy : Tensor
        The gradient of the result, of the shape and dtype of `y`.
    y : Tensor
        What softmax returned, of any shape with a dimension.
    dim : int
        Along which softmax was taken.
    variant : str
        A rung of rl.variants("softmax_backward"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `y`.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit, or `y` lacks the dimension.
    
    Examples
    --------
    >>> rl.softmax_backward(rl.tensor([1.0, 0.0]), rl.tensor([0.5, 0.5])).tolist()
    [0.25, -0.25]
    """
def softplus(x: Tensor, variant: str = '') -> Tensor:
    """
    log(1 + exp(x)), to the last digits for large |x| too, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.softplus(rl.tensor([-200.0, 100.0])).tolist()
    [0.0, 100.0]
    """
def sort(x: Tensor, dim: typing.SupportsIndex = -1, descending: bool = False, variant: str = '') -> ValuesAndIndices:
    """
    Sorts the elements along a dimension, and tells where each one was.
    
    Equal elements keep their order; a NaN is larger than any number. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype.
    dim : int
        Along which dimension.
    descending : bool
        Whether the largest come first.
    variant : str
        A rung of rl.variants("sort"); the fastest that fits when empty.
    
    Returns
    -------
    ValuesAndIndices
        A named tuple, both of the shape of `x`: values, and indices (int64). The gradient goes to where elements were.
    
    Raises
    ------
    ValueError
        For a `dim` that `x` lacks.
    
    Examples
    --------
    >>> values, indices = rl.sort(rl.tensor([3.0, 1.0, 2.0]))
    >>> values.tolist(), indices.tolist()
    ([1.0, 2.0, 3.0], [1, 2, 0])
    """
@typing.overload
def split(x: Tensor, size: typing.SupportsIndex, dim: typing.SupportsIndex = 0) -> tuple[Tensor, ...]:
    """
    A tensor cut into parts along a dimension. Views: nothing is launched.
    
    Backward joins the gradients of the parts as rl.cat does, one launch for up to 32, with zeros for parts that have none.
    If less than half of the tensor has a gradient, it fills with zeros and copies each part, one launch each.
    
    Parameters
    ----------
    x : Tensor
        What to cut.
    size : int or sequence of int
        The size of each part, the last of which may be smaller; or all sizes.
    dim : int
        Along which dimension.
    
    Returns
    -------
    tuple of Tensor
        Views of `x`.
    
    Raises
    ------
    ValueError
        When sizes do not add up; for a `dim` that `x` lacks.
    
    Examples
    --------
    >>> [part.tolist() for part in rl.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
@typing.overload
def split(x: Tensor, size: collections.abc.Sequence[typing.SupportsIndex], dim: typing.SupportsIndex = 0) -> tuple[Tensor, ...]:
    ...
def sqrt(x: Tensor, variant: str = '') -> Tensor:
    """
    square root of x, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.sqrt(rl.tensor([4.0, 9.0])).tolist()
    [2.0, 3.0]
    """
def squeeze(x: Tensor, dim: typing.SupportsIndex | None = None) -> Tensor:
    """
    The tensor without dimensions of size 1. A view.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    dim : int, optional
        Only this dimension, which stays when its size is not 1; all when absent.
    
    Returns
    -------
    Tensor
        The same elements.
    
    Raises
    ------
    ValueError
        For a dimension that `x` lacks.
    
    Examples
    --------
    >>> rl.squeeze(rl.zeros(2, 1, 3)).shape
    (2, 3)
    """
def stack(tensors: collections.abc.Sequence[Tensor], dim: typing.SupportsIndex = 0) -> Tensor:
    """
    Joins tensors of one shape along a new dimension.
    
    Made of cat, and counted like it.
    
    Parameters
    ----------
    tensors : sequence of Tensor
        At least one, all of one shape, dtype and device.
    dim : int
        Where the new dimension lies in the result.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit, or there is no tensor.
    
    Examples
    --------
    >>> rl.stack([rl.tensor([1, 2]), rl.tensor([3, 4])], dim=1).tolist()
    [[1, 3], [2, 4]]
    """
def std(x: Tensor, dim: typing.Any = None, *, correction: typing.SupportsFloat | typing.SupportsIndex = 1, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    The standard deviation over one, several or all dimensions.
    
    One launch, 4 FLOPs per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU
    accumulates in float64.
    
    Parameters
    ----------
    x : Tensor
        Of a floating dtype.
    dim : int, tuple of int or None
        What to go over; None is all.
    correction : float
        The divisor is the number of elements minus this: 1 as in PyTorch, 0 as in NumPy.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    variant : str
        A rung of rl.variants("std"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the dtype of `x`; NaN where there is nothing to divide by.
    
    Raises
    ------
    ValueError
        For integers; for a `dim` that `x` lacks or that appears twice.
    
    Examples
    --------
    >>> rl.std(rl.tensor([1.0, 2.0, 3.0, 6.0]), correction=0).item()
    1.870...
    """
@typing.overload
def sub(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a - b, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.sub(rl.tensor([1.0, 6.0]), rl.tensor([4.0, 2.0])).tolist()
    [-3.0, 4.0]
    """
@typing.overload
def sub(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def sub(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def sum(x: Tensor, dim: typing.Any = None, keepdim: bool = False, variant: str = '', dtype: typing.Any = None) -> Tensor:
    """
    The sum over one, several or all dimensions.
    
    One launch, 1 FLOP per element of `x`; if the dims cannot be merged, `x` is copied first. The error is at most a small
    multiple of log2(n) eps times the sum of absolute values.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    dim : int, tuple of int or None
        What to reduce over; None is all.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    variant : str
        A rung of rl.variants("sum"); the fastest that fits when empty.
    dtype : dtype, optional
        What `x` is cast to first, which is one launch more.
    
    Returns
    -------
    Tensor
        Of `dtype`, or that of `x`; int64 for bool.
    
    Raises
    ------
    ValueError
        For a `dim` that `x` lacks or that appears twice.
    
    Examples
    --------
    >>> rl.sum(rl.tensor([[1.0, 5.0], [7.0, 3.0]]), dim=1).tolist()
    [6.0, 10.0]
    """
@typing.overload
def swiglu(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    silu(a) * b: a gated activation, a the gate, elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.swiglu(rl.tensor([0.0, 0.0]), rl.tensor([3.0, 4.0])).tolist()
    [0.0, 0.0]
    """
@typing.overload
def swiglu(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def swiglu(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def swiglu_backward(dy: Tensor, a: Tensor, b: Tensor, variant: str = '') -> tuple[Tensor, Tensor]:
    """
    The gradients of both operands of swiglu, whose result is act(a) b: da = dy b act'(a) and db = dy act(a). One launch.
    
    Parameters
    ----------
    dy : Tensor
        The gradient of the result, of the shape and dtype of `a`.
    a, b : Tensor
        The gate and what it multiplies, of one shape and dtype.
    variant : str
        A rung of rl.variants("swiglu_backward"); the fastest that fits when empty.
    
    Returns
    -------
    (Tensor, Tensor)
        da and db, of the shape and dtype of `a`; 9 FLOPs per element.
    
    Raises
    ------
    ValueError
        When shapes, dtypes or devices do not fit.
    
    Examples
    --------
    >>> da, db = rl.swiglu_backward(rl.ones(2), rl.zeros(2), rl.ones(2))
    >>> da.tolist(), db.tolist()
    ([0.5, 0.5], [0.0, 0.0])
    """
def take_stacks(source: typing.Any) -> None:
    """
    From here on each call is noted with the number that `source()` gives the stack of its caller; None ends it.
    """
def tanh(x: Tensor, variant: str = '') -> Tensor:
    """
    hyperbolic tangent of x, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.tanh(rl.tensor([0.0, 100.0])).tolist()
    [0.0, 1.0]
    """
@typing.overload
def tanh_backward(a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    the gradient of tanh, with b the result of tanh: a (1 - b) (1 + b), elementwise; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    a, b : Tensor or number
        Of shapes that broadcast; one of both may be a number.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that both broadcast to; bool for a comparison, else of the operands' common dtype.
    
    Raises
    ------
    ValueError
        For dtypes that the op is not defined for, shapes that do not broadcast, and a number that the dtype
        cannot hold.
    
    Examples
    --------
    >>> rl.tanh_backward(rl.tensor([3.0, 4.0]), rl.tensor([0.0, 0.5])).tolist()
    [3.0, 3.0]
    """
@typing.overload
def tanh_backward(a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def tanh_backward(a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
def tensor(data: typing.Any, *, dtype: typing.Any = None, device: typing.Any = None, requires_grad: bool = False) -> Tensor:
    """
    A new tensor with a copy of `data`.
    
    Parameters
    ----------
    data : number, nested lists, NumPy array, CUDA array or Tensor
        Python's floats become float32, its integers int64; arrays and NumPy's numbers keep their dtype, but other integers
        become int64 and long doubles float64.
    dtype : dtype or str, optional
        Of the result.
    device : str, optional
        "cpu" or "cuda:N"; where a CUDA array lies, else the CPU, when absent.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous, with memory of its own.
    
    Raises
    ------
    ValueError
        For rows of different lengths, what is no number, and integers that int64 cannot hold where no float is.
    
    Examples
    --------
    >>> rl.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]], dtype=int64)
    """
def topk(x: Tensor, k: typing.SupportsIndex, dim: typing.SupportsIndex = -1, largest: bool = True, variant: str = '') -> ValuesAndIndices:
    """
    The k largest elements along a dimension in order, and their positions.
    
    Equal elements keep their order; a NaN is larger than any number. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any dtype.
    k : int
        How many, at most the size of `dim`.
    dim : int
        Along which dimension.
    largest : bool
        False for the k smallest, the smallest first.
    variant : str
        A rung of rl.variants("topk"); the fastest that fits when empty.
    
    Returns
    -------
    ValuesAndIndices
        A named tuple, both with size k along `dim`: values, and indices (int64). The gradient goes to where elements were.
    
    Raises
    ------
    ValueError
        For a `dim` that `x` lacks, and a `k` larger than its size.
    
    Examples
    --------
    >>> values, indices = rl.topk(rl.tensor([3.0, 1.0, 2.0]), 2)
    >>> values.tolist(), indices.tolist()
    ([3.0, 2.0], [0, 2])
    """
def tril(x: Tensor, diagonal: typing.SupportsIndex = 0, variant: str = '') -> Tensor:
    """
    The part of a matrix on and below a diagonal; zeros elsewhere.
    
    y[i, j] = x[i, j] where j <= i + diagonal. One launch.
    
    Parameters
    ----------
    x : Tensor
        (..., M, N): a matrix, or a batch of them; of any dtype.
    diagonal : int
        0 for the main diagonal, larger for those above it.
    variant : str
        A rung of rl.variants("tril"); the fastest when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`, contiguous. The gradient is zeroed in the same way.
    
    Raises
    ------
    ValueError
        When `x` has fewer than two dimensions.
    
    Examples
    --------
    >>> rl.tril(rl.ones(2, 3, dtype="int64")).tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
def triu(x: Tensor, diagonal: typing.SupportsIndex = 0, variant: str = '') -> Tensor:
    """
    The part of a matrix on and above a diagonal; zeros elsewhere.
    
    y[i, j] = x[i, j] where j >= i + diagonal. One launch.
    
    Parameters
    ----------
    x : Tensor
        (..., M, N): a matrix, or a batch of them; of any dtype.
    diagonal : int
        0 for the main diagonal, larger for those above it.
    variant : str
        A rung of rl.variants("triu"); the fastest when empty.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`, contiguous. The gradient is zeroed in the same way.
    
    Raises
    ------
    ValueError
        When `x` has fewer than two dimensions.
    
    Examples
    --------
    >>> rl.triu(rl.ones(2, 3, dtype="int64")).tolist()
    [[1, 1, 1], [0, 1, 1]]
    """
def trunc(x: Tensor, variant: str = '') -> Tensor:
    """
    x without its fractional part, rounded towards zero; it has no gradient, elementwise. One launch.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape and dtype of `x`; float32 where a function of floats is given integers.
    
    Raises
    ------
    ValueError
        For a dtype that the op is not defined for.
    
    Examples
    --------
    >>> rl.trunc(rl.tensor([1.5, -1.5])).tolist()
    [1.0, -1.0]
    """
def unsqueeze(x: Tensor, dim: typing.SupportsIndex) -> Tensor:
    """
    The tensor with a new dimension of size 1. A view.
    
    Parameters
    ----------
    x : Tensor
        Of any shape.
    dim : int
        Where the new dimension lies in the result.
    
    Returns
    -------
    Tensor
        The same elements.
    
    Raises
    ------
    ValueError
        For a place outside the result.
    
    Examples
    --------
    >>> rl.unsqueeze(rl.zeros(2, 3), 1).shape
    (2, 1, 3)
    """
def var(x: Tensor, dim: typing.Any = None, *, correction: typing.SupportsFloat | typing.SupportsIndex = 1, keepdim: bool = False, variant: str = '') -> Tensor:
    """
    The variance over one, several or all dimensions.
    
    One launch, 4 FLOPs per element of `x`; if the dims cannot be merged, `x` is copied first. A GPU
    accumulates in float64.
    
    Parameters
    ----------
    x : Tensor
        Of a floating dtype.
    dim : int, tuple of int or None
        What to go over; None is all.
    correction : float
        The divisor is the number of elements minus this: 1 as in PyTorch, 0 as in NumPy.
    keepdim : bool
        Whether reduced dimensions stay, with size 1.
    variant : str
        A rung of rl.variants("var"); the fastest that fits when empty.
    
    Returns
    -------
    Tensor
        Of the dtype of `x`; NaN where there is nothing to divide by.
    
    Raises
    ------
    ValueError
        For integers; for a `dim` that `x` lacks or that appears twice.
    
    Examples
    --------
    >>> rl.var(rl.tensor([1.0, 2.0, 3.0, 6.0]), correction=0).item()
    3.5
    """
def variants(op: str, device: str | None = None) -> list[Variant]:
    """
    The kernels of an op: its ladder, fastest first, v0 (the reference) last.
    
    Parameters
    ----------
    op : str
        One of rl.ops().
    device : str, optional
        "cpu" or "cuda": only the kernels there.
    
    Returns
    -------
    list of Variant
        Each with `name`, `idea` (one line), `device` and `kernel`. Call the op with variant=name to run it.
    
    Raises
    ------
    ValueError
        For an op without a ladder; it lists those that have one.
    
    Examples
    --------
    >>> rl.variants("gelu", "cpu")[-1].name
    'v0_reference'
    """
@typing.overload
def where(condition: Tensor, a: Tensor, b: Tensor, variant: str = '') -> Tensor:
    """
    a where the condition (bool) holds, else b; shapes broadcast. One launch.
    
    Operands of several dtypes meet in a common one, as rl.DType says: a float and integers in float32. A number
    takes the dtype of the tensor, unless it is of a higher kind. One that the dtype cannot hold raises ValueError.
    
    Parameters
    ----------
    condition : Tensor
        bool.
    a, b : Tensor or number
        Two numbers give float32, int64 or bool.
    variant : str
        A rung of rl.variants(op); the fastest that fits when empty. One that does not take the operands raises
        ValueError.
    
    Returns
    -------
    Tensor
        Of the shape that all three broadcast to and the common dtype of `a` and `b`.
    
    Raises
    ------
    ValueError
        For a condition that is not bool, and shapes that do not broadcast.
    
    Examples
    --------
    >>> rl.where(rl.tensor([True, False]), rl.ones(2), 0.0).tolist()
    [1.0, 0.0]
    """
@typing.overload
def where(condition: Tensor, a: Tensor, b: float, variant: str = '') -> Tensor:
    ...
@typing.overload
def where(condition: Tensor, a: float, b: Tensor, variant: str = '') -> Tensor:
    ...
@typing.overload
def where(condition: Tensor, a: float, b: float, variant: str = '') -> Tensor:
    ...
def zeros(*args, dtype: typing.Any = 'float32', device: typing.Any = 'cpu', requires_grad: bool = False) -> Tensor:
    """
    A tensor of zeros.
    
    Parameters
    ----------
    args : int
        The sizes, or one tuple of them.
    dtype : dtype or str
        Of the elements.
    device : str
        "cpu", "cuda:N" or "meta:NAME".
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a negative size, a dtype or device that there is not, and a dtype that cannot require grad.
    OutOfMemoryError
        When the device has not as much memory.
    
    Examples
    --------
    >>> rl.zeros(2).tolist()
    [0.0, 0.0]
    """
def zeros_like(x: Tensor, *, dtype: typing.Any = None, device: typing.Any = None, requires_grad: bool = False) -> Tensor:
    """
    A tensor of the shape, dtype and device of another, of zeros.
    
    Parameters
    ----------
    x : Tensor
        Whose shape is taken.
    dtype, device : optional
        Used instead of those of `x`.
    requires_grad : bool
        Whether ops on it are recorded.
    
    Returns
    -------
    Tensor
        Contiguous.
    
    Raises
    ------
    ValueError
        For a dtype that cannot hold such elements, or cannot require grad.
    
    Examples
    --------
    >>> rl.zeros_like(rl.ones(2)).tolist()
    [0.0, 0.0]
    """
bfloat16: DType
bool_: DType
float16: DType
float32: DType
float64: DType
int32: DType
int64: DType
