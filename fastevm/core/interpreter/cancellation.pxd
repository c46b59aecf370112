# What a host writes where Machine.cancel points.


cdef enum CancelRequest:
    NO_REQUEST = 0
    CANCEL_REQUEST = 1          # the run ends with CANCELLED
    PAUSE_REQUEST = 2           # the run gives SUSPENDED; the host clears the request and runs on
    LOOK_REQUEST = 3            # the same, once a run goes back or calls: until then it is short
