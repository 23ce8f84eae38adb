"""All that is used of numba beyond its public names: kernels that are optimised once, and a cache that notices edits.

numba optimises every function by itself and again inside each of its callers, so the last of five functions that call
one another is optimised five times. Here a kernel that another kernel calls is only translated; it is optimised as part
of the kernel that Python calls. A constant or a short integer in a call makes no version of its own: ``f(a, 0)`` and
``f(a, k)`` are the same ``f``. And numba compiles a kernel again if its own file was edited; here also if a file was
that it imports from. Where no folder can be written to, kernels are compiled in every process.

Wheels of a release carry kernels that were compiled for any processor of a kind (``ship``), in the folder ``SHIPPED``.
"""
# mypy: allow-untyped-calls

import gc
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import config, event, types
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
IMPORTED = re.compile(r"^from (bica\.kernels[\w.]*) import", re.MULTILINE)
ROOT = Path(__file__).parents[2]  # the folder that holds the package
SHIPPED = Path(__file__).parent / "precompiled"
ANY_PROCESSOR = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}  # the environment in which kernels are shipped


class _TranslatedLibrary(JITCodeLibrary):
    """Code that is neither optimised nor made ready to run: the callers take it in as it is."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # which older versions of numba do not have
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Translation(NativeLowering):
    """Translates a function for others to call, in place of numba's pass that makes it ready to run."""

    _name = "translation"

    def run_pass(self, state: Any) -> bool:
        state.library = _TranslatedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = state.flags.no_cpython_wrapper = True
        super().run_pass(state)
        state.library.finalize()
        key = object()  # by which the callers find it
        state.targetctx.insert_user_function(key, state["cr"].fndesc, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=key)
        return True


class _Translator(CompilerBase):
    """numba's usual passes, the last one replaced."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [(_Translation, why) if step is NativeLowering else (step, why) for step, why in passes.passes]
        return [passes]


class _Callee(CPUDispatcher):
    """A kernel as other kernels call it."""

    def add_overload(self, cres: Any) -> None:
        self.overloads[tuple(cres.signature.args)] = cres


class _WithShipped:
    """Looks among the kernels that came with the package first."""

    _py_func: Callable[..., Any]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel for these types, None if it was never compiled."""
        if SHIPPED.is_dir():
            target_context.refresh()
            found = _shipped_file(self._py_func, SHIPPED).load((sig, target_context.codegen()._llvm_module.triple))
            if found is not None:
                return CompileResult._rebuild(target_context, *found)
        return super().load_overload(sig, target_context)  # type: ignore[misc]


class _NothingKept(_WithShipped, NullCache):
    """Where no folder can be written to."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self._py_func = py_func


class _SourcesCache(_WithShipped, FunctionCache):
    """What was compiled before, as long as no file of kernels changed that it was made of."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._cache_file._source_stamp = source_stamp(Path(py_func.__code__.co_filename))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As always; what an older version compiled for types that are gone is thrown away."""
        try:
            return super().load_overload(sig, target_context)
        except (ImportError, AttributeError):
            self.flush()
            return None


def _shipped_file(py_func: Callable[..., Any], folder: Path) -> IndexDataCacheFile:
    name = f"{py_func.__module__}.{py_func.__qualname__}.py{sys.version_info.major}{sys.version_info.minor}"
    return IndexDataCacheFile(str(folder), name, source_stamp(Path(py_func.__code__.co_filename)))


def ship(kernels: Iterable[Any], folder: Path) -> None:
    """Write all that this process compiled of ``kernels`` into ``folder``, which becomes ``SHIPPED`` elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for kernel in kernels:
        for signature, found in kernel.overloads.items():
            file = _shipped_file(kernel.py_func, folder)
            file.save((signature, found.codegen._llvm_module.triple), found._reduce())


class Kernel(CPUDispatcher):
    """A kernel as Python calls it; ``callee`` is the same kernel as other kernels call it."""

    _cache: Any
    is_kept = False  # whether what is compiled is kept on disk, if a folder can be written to

    def __init__(self, py_func: Callable[..., Any], *_: Any) -> None:  # numba builds copies with more arguments
        super().__init__(py_func, {}, dict(OPTIONS))
        self.callee = _Callee(py_func, {}, dict(OPTIONS), _Translator)

    def compile(self, sig: Any) -> Any:
        """Load or compile the kernel for these types."""
        if self.is_kept and not isinstance(self._cache, _WithShipped):
            try:
                self._cache = _SourcesCache(self.py_func)
            except RuntimeError:  # neither the package's folder nor the user's cache can be written
                self._cache = _NothingKept(self.py_func)
        with _no_collection():
            return super().compile(sig)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What numba needs to know for a call from another kernel."""
        return self.callee.get_call_template(tuple(map(_usual, args)), {n: _usual(kind) for n, kind in kws.items()})

    def get_overload(self, sig: Any) -> Any:
        """The key of the kernel as others call it."""
        return self.callee.get_overload(sig)


def _usual(kind: Any) -> Any:
    """The type under which an argument is passed on: a constant as any other value, a short integer as a long one."""
    kind = types.unliteral(kind)
    is_signed = isinstance(kind, types.Integer) and kind in types.signed_domain
    return types.int64 if is_signed else kind


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep Python from searching for garbage, which takes an eighth of the time of compiling."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def is_switched_off() -> bool:
    """Whether kernels shall run as plain Python, which a debugger can step through (``NUMBA_DISABLE_JIT=1``)."""
    return bool(getattr(config, "DISABLE_JIT"))  # noqa: B009 (numba adds it when it is loaded)


def before_compiling(announce: Callable[[], None]) -> None:
    """Call ``announce`` whenever a kernel that Python calls is about to be compiled."""

    class Announcer(event.Listener):
        def on_start(self, event: Any) -> None:
            if isinstance(event.data["dispatcher"], Kernel):
                announce()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcer())


@cache
def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


@cache
def source_stamp(path: Path) -> str:
    """A hash of a file and of all files of kernels that it imports from, directly or not."""
    files, left = {path}, [path]
    while left:
        for name in IMPORTED.findall(_text(left.pop())):
            found = ROOT.joinpath(*name.split(".")).with_suffix(".py")
            if found not in files:
                files.add(found)
                left.append(found)
    parts = sorted(hashlib.sha256(_text(file).encode()).hexdigest() for file in files)
    return hashlib.sha256("".join(parts).encode()).hexdigest()
