"""Functions that are compiled to LLVM's code and no further: they become part of the machine code of their callers."""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class Draft(JITCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """LLVM's code of a function as it was written: neither optimised nor turned into machine code.

    It is linked into its callers, and optimised with the outermost of them; Numba would do both for every function by
    itself as well, which takes a quarter of all compile time.
    """

    @property
    def codegen(self) -> _NoEngine:
        return _NoEngine()

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # as where there is none of that name

    def _optimize_functions(self, module: object) -> None:
        pass

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _NoEngine:
    """What holds machine code, for a function without any."""

    def set_env(self, name: str, environment: object) -> None:
        """Leave out the globals of a function, which Numba hands to machine code for exceptions with arguments."""


class DraftCompiler(Compiler):  # type: ignore[misc]
    """The usual compiler, up to the code of LLVM."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = Draft(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
