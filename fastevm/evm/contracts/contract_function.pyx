"""Functions of contracts as Python callables."""

from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyObject_GenericGetAttr, PyObject_GenericSetAttr

import inspect
from functools import partial
from operator import getitem
from typing import NamedTuple

from fastevm.core.primitives.suggestion import did_you_mean
from fastevm.evm.contracts.codec cimport AbiType, encode_after

from fastevm.evm.contracts.codec import AbiEncodingError


cdef dict STATIC = {"static": True}
cdef dict COMMIT = {"commit": True}


class Called(NamedTuple):
    """The outcome of a call: the decoded return value, the events and the `ExecutionResult`."""

    value: object
    events: list
    result: object


cdef class WithFunctions:
    """Base class of `Contract`: functions of the ABI are attributes.

    Functions are looked up first: the normal lookup would fail, which takes longer than encoding a
    call. A function is no attribute if the class or the object has an attribute of the same name.
    """

    cdef dict found           # name -> overloads, without the names of other attributes

    def find_functions(self) -> None:
        """Makes the functions of ``interface`` attributes."""
        own, kind = self.__dict__, type(self)
        self.found = {
            name: overloads for name, overloads in self.interface.functions.items()
            if name not in own and not hasattr(kind, name)
        }

    def __getattribute__(self, name):
        cdef PyObject* overloads
        if self.found is not None:
            overloads = PyDict_GetItem(self.found, name)
            if overloads != NULL:
                return function_of(self, <list>overloads)
        try:
            return PyObject_GenericGetAttr(self, name)
        except AttributeError:
            if self.found is None or name[:2] == "__":
                raise
        kind = type(self).__name__
        hint = did_you_mean(name, self.found)
        raise AttributeError(f"{kind} has no function {name!r}{hint}", name=name, obj=self)

    def __setattr__(self, name, value):
        PyObject_GenericSetAttr(self, name, value)
        if self.found is not None:
            self.find_functions()

    def __delattr__(self, name):
        PyObject_GenericSetAttr(self, name, <object>NULL)
        if self.found is not None:
            self.find_functions()


cdef ContractFunction function_of(object contract, list overloads):
    cdef ContractFunction function = ContractFunction.__new__(ContractFunction)
    function.contract, function.overloads = contract, overloads
    return function


cdef class ContractFunction:
    """A function of a contract, or its overloads. Calling it returns the decoded value.

    Arguments are given by position, or by the names of the ABI, with or without leading
    underscores. Other keywords are ``sender``, ``value``, ``gas``, ``trace`` and further arguments
    of the ``EVM`` method. If a parameter of the contract's function has the same name, such as
    ``value``, the keyword sets this parameter, unless the parameter is given by position.

    ``abi`` is the ABI item, ``selector`` the four bytes of its selector.
    """

    cdef object contract
    cdef list overloads

    def __init__(self, contract: object, list overloads not None) -> None:
        self.contract, self.overloads = contract, overloads

    def __call__(self, *args, **terms):
        """Calls the function and returns the decoded value.

        A view or pure function runs as a static call. Otherwise the changes are kept.
        """
        contract = self.contract
        function = self.overloads[0]
        if terms or len(self.overloads) != 1:
            function, args, terms = matched(self.overloads, args, terms)
        if contract.default_sender is not None and "sender" not in terms:
            terms["sender"] = contract.default_sender
        usual = STATIC if function.reads else COMMIT
        terms = {**usual, **terms} if terms else usual
        result = contract.evm.call(contract.raw_address, encoded(function, args), **terms)
        return contract.value_of(function, result)

    def call(self, *args, **terms):
        """Runs ``EVM.call``. Discards changes unless ``commit`` is true."""
        return self.run(self.contract.evm.call, args, terms)

    def transact(self, *args, **terms):
        """Runs ``EVM.transact``, which executes a whole transaction."""
        return self.run(self.contract.evm.transact, args, terms)

    def encode(self, *args, **named):
        """Returns the call data."""
        function = self.overloads[0]
        if named or len(self.overloads) != 1:
            function, args, named = matched(self.overloads, args, named)
        if named:
            raise TypeError(f"{function.name} has no argument {next(iter(named))!r}")
        return encoded(function, args)

    def decode(self, output):
        """Decodes the output of the function."""
        return self.overloads[0].decode(output)

    @property
    def abi(self):
        """The ABI item of the function, or of its first overload."""
        return self.overloads[0].item

    @property
    def selector(self):
        """The four-byte selector of the function, or of its first overload."""
        return self.overloads[0].selector

    @property
    def __name__(self):
        return self.overloads[0].name

    @property
    def __doc__(self):
        return "\n".join([each.described() for each in self.overloads])

    @property
    def __signature__(self):
        return signature_of(self.overloads[0])

    def __getattr__(self, name):
        if name == "__qualname__":  # a class cannot define it as a property
            return f"{self.contract.contract_name}.{self.overloads[0].name}"
        raise AttributeError(f"a function has no attribute {name!r}")

    def __reduce__(self):
        functions = self.overloads
        name = functions[0].signature if len(functions) == 1 else functions[0].name
        return getitem, (self.contract, name)

    def __repr__(self):
        return f"<{self.__doc__} of {self.contract!r}>"

    def run(self, method, args, terms):
        """Runs a method of the EVM and returns a `Called`."""
        contract = self.contract
        function, args, terms = matched(self.overloads, args, terms)
        if contract.default_sender is not None:
            terms.setdefault("sender", contract.default_sender)
        result = method(contract.raw_address, encoded(function, args), **terms)
        return Called(contract.value_of(function, result), contract.events_in(result), result)


cdef bytes encoded(object function, tuple args):
    """Returns the selector and the encoded arguments. Errors name the argument."""
    cdef AbiType inputs
    if len(args) != len(function.inputs):
        return function.encode(args)  # raises
    if not args:
        return function.selector
    inputs = function.input_type
    try:
        return encode_after(inputs, function.selector, args)
    except AbiEncodingError as error:
        raise AbiEncodingError(f"{function.name}: {error}") from None


cdef tuple matched(list overloads, tuple args, dict named):
    """Returns (the overload that fits, all its arguments, the remaining keywords)."""
    if len(overloads) == 1:
        found = filled(overloads[0], args, named)
        return (overloads[0], args, named) if found is None else found
    fits = []
    for function in overloads:
        found = filled(function, args, named)
        if found is not None:
            fits.append(found)
    if len(fits) != 1:
        known = ", ".join([each.signature for each in overloads])
        raise TypeError(f"ambiguous overload: select one with contract[signature]: {known}")
    return fits[0]


cdef tuple filled(object function, tuple args, dict named):
    """Returns all arguments, from positions and keywords, or None if some are missing."""
    if len(args) > len(function.inputs):
        return None
    terms, values = dict(named), list(args)
    for name in function.names[len(args):]:
        key = name if name in terms else name.lstrip("_")
        if not key or key not in terms:
            return None
        values.append(terms.pop(key))
    return function, tuple(values), terms


cdef object signature_of(object function):
    names = [name.lstrip("_") for name in function.names]
    usable = len(set(names)) == len(names) and all([name.isidentifier() for name in names])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if usable else inspect.Parameter.POSITIONAL_ONLY
    parameter = partial(inspect.Parameter, kind=kind)
    shown = names if usable else [f"arg{at}" for at in range(len(names))]
    terms = inspect.Parameter("terms", inspect.Parameter.VAR_KEYWORD)
    return inspect.Signature([*[parameter(name) for name in shown], terms])
