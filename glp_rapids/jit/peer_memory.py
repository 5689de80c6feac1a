"""Memory that GPUs of one machine and the host share: how a kernel stores there, and looks."""

from __future__ import annotations

from glp_rapids.jit import cuda as compiler

if compiler.SIMULATED:

    def store_at(address, index, value):
        """Store an element in memory of any GPU; there is none in the simulator."""
        raise NotImplementedError("a simulated GPU has no peers")

    store_released_at = take_one_at = store_at

    def load_of_system(array, index):
        """Read an element; a simulated grid has one block."""
        return array[index]
else:
    from glp_rapids.jit.cuda import cuda_types, intrinsic, ir

    @intrinsic
    def load_of_system(typingctx, array, index):
        """Read an int64 anew each time, as the host or another GPU wrote it."""
        if array.dtype != cuda_types.int64:
            raise TypeError(f"load_of_system reads int64, not {array.dtype}")

        def generate(context, builder, signature, arguments):
            whole = context.make_array(signature.args[0])(context, builder, value=arguments[0])
            pointer = builder.gep(whole.data, [arguments[1]])
            function = ir.FunctionType(ir.IntType(64), [pointer.type])
            load = ir.InlineAsm(
                function, "ld.acquire.sys.b64 $0, [$1];", "=l,l,~{memory}", side_effect=True
            )
            return builder.call(load, [pointer])

        return cuda_types.int64(array, cuda_types.int64), generate

    @intrinsic
    def store_at(typingctx, address, index, value):
        """Store an element of the array at an address, in global memory of any GPU."""

        def generate(context, builder, signature, arguments):
            kind = context.get_data_type(signature.args[2])
            array = builder.inttoptr(arguments[0], ir.PointerType(kind, 1))
            builder.store(arguments[2], builder.gep(array, [arguments[1]]))
            return context.get_dummy_value()

        return cuda_types.void(cuda_types.int64, cuda_types.int64, value), generate

    @intrinsic
    def take_one_at(typingctx, address, index):
        """Take one from an element of the int32 array at an address, in memory of any GPU."""

        def generate(context, builder, signature, arguments):
            array = builder.inttoptr(arguments[0], ir.PointerType(ir.IntType(32), 1))
            pointer = builder.gep(array, [arguments[1]])
            function = ir.FunctionType(ir.VoidType(), [pointer.type])
            taken = ir.InlineAsm(
                function, "red.relaxed.sys.global.add.s32 [$0], -1;", "l,~{memory}",
                side_effect=True,
            )  # fmt: skip
            builder.call(taken, [pointer])
            return context.get_dummy_value()

        return cuda_types.void(cuda_types.int64, cuda_types.int64), generate

    @intrinsic
    def store_released_at(typingctx, address, index, value):
        """Store an int64 on any GPU; who reads it by `load_of_system` sees what came before it."""

        def generate(context, builder, signature, arguments):
            array = builder.inttoptr(arguments[0], ir.PointerType(ir.IntType(64), 1))
            pointer = builder.gep(array, [arguments[1]])
            function = ir.FunctionType(ir.VoidType(), [pointer.type, ir.IntType(64)])
            store = ir.InlineAsm(
                function, "st.release.sys.global.b64 [$0], $1;", "l,l,~{memory}", side_effect=True
            )
            builder.call(store, [pointer, arguments[2]])
            return context.get_dummy_value()

        kinds = cuda_types.int64, cuda_types.int64, cuda_types.int64
        return cuda_types.void(*kinds), generate
