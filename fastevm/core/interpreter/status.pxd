# Status codes of execution. Each kind is a range of numbers, so that one comparison determines it.


cdef enum Status:
    RUNNING = 0
    # --- success ---
    STOPPED = 1                 # STOP, RETURN, SELFDESTRUCT, or the end of code; output is set
    # --- revert ---
    REVERTED = 2                # state rolled back, gas left and output kept
    # --- halts: state rolled back, all gas consumed, no output ---
    OUT_OF_GAS = 10
    STACK_UNDERFLOW = 11
    STACK_OVERFLOW = 12
    INVALID_JUMP = 13
    UNDEFINED_OPCODE = 14       # not an opcode of the fork
    INVALID_OPCODE = 15         # 0xfe
    STATIC_VIOLATION = 16
    RETURNDATA_OUT_OF_BOUNDS = 17
    ADDRESS_COLLISION = 18
    CODE_TOO_LARGE = 19
    INITCODE_TOO_LARGE = 20
    CODE_DEPOSIT_OUT_OF_GAS = 21
    CODE_STARTS_WITH_EF = 22
    PRECOMPILE_FAILED = 23
    NONCE_OVERFLOW = 24
    # a call or creation that did not start: its gas is returned to the caller
    CALL_TOO_DEEP = 30
    INSUFFICIENT_BALANCE = 31
    # --- requests: the host satisfies the request and calls machine_run again ---
    NEEDS_STATE = 40            # `World.need` says which state is missing
    SUSPENDED = 41              # a pause: Machine.cancel, or the test hook Machine.suspend_always
    TRACE_FULL = 42             # the trace buffer must be read
    HOST_CALL = 43              # code calls a precompile of the host: see machine_answer
    # --- stopped by the host ---
    CANCELLED = 50              # Machine.cancel was set, or the deadline passed
    OUT_OF_MEMORY = 51
    UNSUPPORTED = 52            # a native contract or code cannot run here: see Machine.refused
    # --- inside the machine only ---
    ENTER_CALL = 60             # a call or creation: the child frame is prepared
