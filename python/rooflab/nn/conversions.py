"""Modules in another dtype, or on another device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from .._core import Tensor, empty
from ..autograd import no_grad
from .tree import Tree

__all__ = ["Convertible"]


class Convertible(Tree):
    """A module whose tensors move to another dtype or device, in place."""

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters, gradients and buffers to a device, a dtype or both, in place.

        Parameters
        ----------
        *args, **kwargs
            As for a tensor's `to`. Integers keep their dtype. Parameters stay the same objects. The moments of an
            optimizer stay as they are: make a new one where it has taken a step in another dtype or on another device.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        ValueError, TypeError
            As a tensor's `to`; TypeError for a dtype that is not floating. Nothing changes then.

        Examples
        --------
        >>> import rooflab as rl
        >>> print(rl.nn.Linear(2, 3).to("bfloat16").weight.dtype)
        bfloat16
        """
        dtype = empty(0).to(*args, **kwargs).dtype
        if not dtype.is_floating_point:
            raise TypeError(f"[to] dtype: expected a floating dtype for a module, got {dtype}")

        def moved(x: Tensor) -> Tensor:
            if x.dtype.is_floating_point:
                return x.to(*args, **kwargs)
            return x.to(device=empty(0, device=x.device).to(*args, **kwargs).device)

        with no_grad():
            places = {x.device for x in (*self.parameters(), *self.buffers())}
            for place in places if len(places) > 1 else ():  # of one place alone the first tensor raises
                moved(empty(0, device=place))
            self._replace_all(moved)
        return self

    def _replace_all(self, change: Callable[[Tensor], Tensor]) -> None:
        has_changed = False
        for parameter in self.parameters():
            grad, data = parameter.grad, change(parameter.detach())
            has_changed |= (data.dtype, data.data_ptr()) != (parameter.dtype, parameter.data_ptr())
            parameter.data = data
            if grad is not None:
                parameter.grad = change(grad)
        made: dict[int, Tensor] = {}
        for module in self.modules():
            for name, buffer in tuple(module._own_buffers()):
                if id(buffer) not in made:
                    made[id(buffer)] = change(buffer)
                has_changed |= made[id(buffer)] is not buffer
                object.__setattr__(module, name, made[id(buffer)])
        for module in self.modules() if has_changed else ():
            module._after_conversion()

    def _after_conversion(self) -> None:
        """What a module does once its tensors have another dtype or device."""

    def cuda(self, device: Any = "cuda") -> Self:
        """Move parameters, gradients and buffers to a GPU, in place.

        Parameters
        ----------
        device : int or str
            The number of the GPU, or its name.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        CudaError
            For a GPU that is not there.

        Examples
        --------
        >>> import rooflab as rl
        >>> if rl.cuda.is_available():
        ...     model = rl.nn.Linear(2, 3).cuda()
        """
        return self.to(device=f"cuda:{device}" if isinstance(device, int) else device)

    def cpu(self) -> Self:
        """Move parameters, gradients and buffers to the CPU, in place.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import rooflab as rl
        >>> print(rl.nn.Linear(2, 3).cpu().weight.device)
        cpu
        """
        return self.to(device="cpu")

    def half(self) -> Self:
        """Turn parameters, gradients and buffers into float16, in place; integers stay.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.nn.Linear(2, 3).half().weight.dtype
        rooflab.float16
        """
        return self.to(dtype="float16")

    def bfloat16(self) -> Self:
        """Turn parameters, gradients and buffers into bfloat16, in place; integers stay.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.nn.Linear(2, 3).bfloat16().weight.dtype
        rooflab.bfloat16
        """
        return self.to(dtype="bfloat16")

    def float(self) -> Self:
        """Turn parameters, gradients and buffers into float32, in place; integers stay.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.nn.Linear(2, 3).float().weight.dtype
        rooflab.float32
        """
        return self.to(dtype="float32")

    def double(self) -> Self:
        """Turn parameters, gradients and buffers into float64, in place; integers stay.

        Returns
        -------
        Module
            The module itself.

        Examples
        --------
        >>> import rooflab as rl
        >>> rl.nn.Linear(2, 3).double().weight.dtype
        rooflab.float64
        """
        return self.to(dtype="float64")
