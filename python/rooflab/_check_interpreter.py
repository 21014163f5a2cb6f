"""Refuses subinterpreters before the native module loads, because its import there would wait for a lock for ever."""

import ctypes

_state = ctypes.PYFUNCTYPE(ctypes.c_void_p)
if _state(("PyInterpreterState_Get", ctypes.pythonapi))() != _state(("PyInterpreterState_Main", ctypes.pythonapi))():
    raise ImportError("[rooflab] cannot be imported in a subinterpreter; use the main one, or another process")
