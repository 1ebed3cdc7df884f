// Ctrl-C and the signals that end a process.
//
// Interactively, SIGINT cancels the running statement, or clears the line at the prompt, and the session lives on.
// SIGTERM and SIGHUP, and in a batch SIGINT too, cancel the running statement and end the work, so that the process can
// remove its temporary files before it dies of the signal; a second one kills it at once.
//
// Start at: WatchInterrupts. The main thread; the handlers run on any.
#pragma once

#include "session/session.h"

namespace tessera {

/// Installs the handlers. `session` must live until StopWatchingInterrupts().
void WatchInterrupts(Session* session, bool interactive);
void StopWatchingInterrupts();

/// The signal that came since the last call of TakeInterrupt; 0 if none.
int PendingInterrupt();
int TakeInterrupt();

/// A file descriptor that becomes readable when a signal comes; for poll(). TakeInterrupt() makes it unreadable again.
int InterruptDescriptor();

/// Dies of `signal` as if nothing had caught it.
[[noreturn]] void DieOf(int signal);

}  // namespace tessera
