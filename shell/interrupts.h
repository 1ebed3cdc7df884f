// Ctrl-C and the signals that end a process.
//
// Interactively, SIGINT cancels the running statement, or clears the line at the prompt, and the session lives on.
// SIGTERM and SIGHUP, and in a batch SIGINT too, cancel the running statement and end the work, so that the process can
// remove its temporary files before it dies of the signal; another one kills it at once, but not within a second: when a
// terminal is closed, its shell and the system both say so.
//
// Start at: WatchInterrupts. The main thread; the handlers run on any.
#pragma once

#include "shell/shell_session.h"

namespace tessera {

/// Installs the handlers. `session` must live until StopWatchingInterrupts().
void WatchInterrupts(ShellSession* session, bool interactive);
void StopWatchingInterrupts();

/// The signal that came: one that ends the process, or else a Ctrl-C since the last call of TakeInterrupt; 0 if none.
int PendingInterrupt();
/// Forgets a Ctrl-C. REQUIRES: interactive.
void TakeInterrupt();

/// A file descriptor that becomes readable when a signal comes; for poll(). TakeInterrupt() makes it unreadable again.
int InterruptDescriptor();

/// Dies of `signal` as if nothing had caught it.
[[noreturn]] void DieOf(int signal);

}  // namespace tessera
