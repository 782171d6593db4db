"""What torch.compile writes for the operations of pipec.kernels: calls of their plans, past the
dispatcher of PyTorch. Needs parts of Inductor that are not public; a version without them calls operators.

Compiled code is kept in PyTorch's caches on disk, and imports `calls` from here."""

import sys
import types

calls = types.SimpleNamespace()  # what compiled code calls, by the name of the operation
_ALIAS = "pipec_calls"
_IMPORT = f"from pipec._inductor import calls as {_ALIAS}"
_waiting = []  # (operator, name) of those that Inductor does not know yet


def add(operator, name, call):
    """`call` does what the operator does, of the same arguments, below autograd"""
    setattr(calls, name, call)
    _waiting.append((operator, name))


def ready():
    """Called while an operator is traced, which Inductor does before it writes code"""
    lowering = sys.modules.get("torch._inductor.lowering")
    if lowering is None or not _waiting:
        return
    waiting, _waiting[:] = list(_waiting), ()
    try:
        lower = _lower(lowering)
        constrain = lowering.constrain_to_fx_strides
        for operator, name in waiting:
            lowering.add_layout_constraint(operator, constrain)
            lowering.lowerings[operator] = lower(operator, name)
    except AttributeError:  # another version of Inductor
        for operator, _ in waiting:
            getattr(lowering, "lowerings", {}).pop(operator, None)


def _lower(lowering):
    from torch.utils import _pytree

    ir, virtual = lowering.ir, lowering.V

    class Call(ir.FallbackKernel):
        """A call of an operator, by another name in Python"""

        def codegen(self, wrapper):
            graph, add = virtual.graph, getattr(wrapper, "add_import_once", None)
            if add and not graph.cpp_wrapper and not getattr(graph, "fx_wrapper", False):
                add(_IMPORT)
                self.python_kernel_name = f"{_ALIAS}.{_names[self.op_overload]}"
            super().codegen(wrapper)

    _names = {}

    def lower(operator, name):
        _names[operator] = name
        create = Call.create
        return lambda *args, **named: _pytree.tree_map(
            lambda x: ir.TensorBox.create(x) if isinstance(x, ir.IRNode) else x,
            create(operator, *args, **named))

    return lower
