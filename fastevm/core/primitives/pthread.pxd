# POSIX threads, mutexes and condition variables for code without the GIL.
cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_mutex_init(pthread_mutex_t* mutex, void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* mutex)
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)
    int pthread_cond_init(pthread_cond_t* condition, void* attributes)
    int pthread_cond_destroy(pthread_cond_t* condition)
    int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex)
    int pthread_cond_signal(pthread_cond_t* condition)
    int pthread_cond_broadcast(pthread_cond_t* condition)
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_attr_t:
        pass
    int PTHREAD_CREATE_DETACHED
    int pthread_attr_init(pthread_attr_t* attributes)
    int pthread_attr_setdetachstate(pthread_attr_t* attributes, int state)
    int pthread_attr_destroy(pthread_attr_t* attributes)
    int pthread_create(
        pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*) noexcept nogil,
        void* argument,
    )

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    int SIG_SETMASK
    int sigfillset(sigset_t* signals)
    int pthread_sigmask(int how, const sigset_t* signals, sigset_t* before)


# Starts a detached thread. Returns whether it started. The thread blocks all signals, so that the
# other threads of the process receive them.
cdef inline bint start_thread(void* (*run)(void*) noexcept nogil, void* argument) noexcept nogil:
    cdef pthread_attr_t attributes
    cdef pthread_t thread = 0
    cdef sigset_t all_signals, before
    cdef bint started
    if pthread_attr_init(&attributes) != 0:
        return False
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED)
    sigfillset(&all_signals)
    pthread_sigmask(SIG_SETMASK, &all_signals, &before)
    started = pthread_create(&thread, &attributes, run, argument) == 0
    pthread_sigmask(SIG_SETMASK, &before, NULL)
    pthread_attr_destroy(&attributes)
    return started
