"""Runs a call to a native contract of Base: the checks that all contracts share, then its body.

The order of checks and charges is that of the reference client: direct call, value, calldata,
existence of a token, selector, arguments.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from fastevm.core.native.base.abi cimport Slice
from fastevm.core.native.base.activation cimport run_activation_registry
from fastevm.core.native.base.addresses cimport (
    ACTIVATION_REGISTRY, ASSET, FACTORY, POLICY_REGISTRY, STABLECOIN,
)
from fastevm.core.native.base.asset cimport run_token
from fastevm.core.native.base.context cimport BERYL, Context, fail
from fastevm.core.native.base.factory cimport run_factory
from fastevm.core.native.base.names cimport DELEGATE_CALL_NOT_ALLOWED, NON_PAYABLE
from fastevm.core.native.base.policies cimport run_policy_registry
from fastevm.core.native.call cimport (
    NativeCall, native_charge, native_read_account, native_revert_empty,
)
from fastevm.core.primitives.word cimport word_is_zero


cdef enum:
    CALLDATA_WORD_GAS = 6


# Whether the contract accepts ether: only Beryl's ActivationRegistry does.
cdef bint accepts_value(const Context* c) noexcept nogil:
    return c.contract == ACTIVATION_REGISTRY and c.version == BERYL


cdef bint charge_calldata(NativeCall* call) noexcept nogil:
    return native_charge(call, <int64_t>((call.size + 31) >> 5) * CALLDATA_WORD_GAS)


# Ends the call if a token's address has no code, because the token was not created.
cdef bint require_token(Context* c) noexcept nogil:
    if native_read_account(c.call, &c.account.address) == NULL:
        return False
    return c.account.code != NULL or native_revert_empty(c.call)


cdef bint run(Context* c) noexcept nogil:
    cdef Slice input = Slice(c.call.data, c.call.size)
    if c.call.is_delegated:
        return fail(c, DELEGATE_CALL_NOT_ALLOWED)
    if not word_is_zero(&c.call.value) and not accepts_value(c):
        return fail(c, NON_PAYABLE)
    if not charge_calldata(c.call):
        return False
    if c.contract == ASSET or c.contract == STABLECOIN:
        return require_token(c) and run_token(c, input)
    if c.contract == FACTORY:
        return run_factory(c, input)
    if c.contract == POLICY_REGISTRY:
        c.policies = c.account
        return run_policy_registry(c, input)
    return run_activation_registry(c, input)


cdef void base_run(uint32_t number, NativeCall* call) noexcept nogil:
    cdef Context context
    memset(&context, 0, sizeof(context))
    context.call = call
    context.version = <int>call.schedule.b20_version
    context.contract = number
    context.account = call.account
    context.caller = call.caller
    run(&context)
